"""Rounds of 1,000 devices out of 1,000 and out of a million that all differ: CPU time and memory.

    python -m benchmarks.million_devices

Both federations take turns, each in a process of its own on one core. Every device holds one image
of 14 x 14 pixels, half of the devices are limited to 0.5x, places and speeds are drawn, and the
power is split for each device. CPU time is compared, so that other work on the machine counts less.
"""

import sys
import time
from statistics import median

from benchmarks.runners import STARTED, Runner, interleave
from benchmarks.worker import DoWork, serve

DEVICES, COHORT, ROUNDS, TURNS = (1_000, 1_000_000), 1_000, 5, 3
RING = {"distribution": "disc", "radius_m": 289.0, "inner_m": 35.0}
SPEED = {"distribution": "lognormal", "median": 1e8, "sigma": 0.5}
CLASSES = [
    {"name": "capped", "share": 0.5, "max_width": 0.5, "distance_m": RING, "macs_per_s": SPEED},
    {"name": "able", "share": 0.5, "distance_m": RING, "availability": 0.9, "battery_j": 500.0},
]


def prepare(devices: int) -> DoWork:
    """A federation, and some rounds of it at a time."""
    import numpy as np

    from slimfl.data import Dataset, Samples
    from slimfl.experiment import build
    from slimfl.round import Simulation

    random = np.random.default_rng(0)

    def images(count: int) -> Samples:
        pixels = random.integers(0, 256, (count, 14, 14, 1), dtype=np.uint8)
        return Samples(pixels, random.integers(0, 10, count))

    experiment = build(
        {
            "threads": 1,
            "rounds": 1_000_000,
            "data": {"partition": "iid", "min_samples": 1},
            "training": {"steps": 4, "batch_size": 16, "optimiser_state": "fresh"},
            "radio": {"split": "per-device"},
            "federation": {
                "devices": devices,
                "participation": COHORT / devices,
                "evaluate_every": 1_000_000,
            },
            "population": {"classes": CLASSES},
        }
    )
    sim = Simulation(
        experiment, dataset=Dataset("bench", images(devices), images(100), 10, "random")
    )

    def rounds() -> dict[str, float]:
        began = time.process_time()
        for _ in range(ROUNDS):
            sim.step()
        return {"cpu_s": (time.process_time() - began) / ROUNDS}

    return rounds


def main() -> None:
    """Let both take turns and print what they took."""
    program = [sys.executable, "-m", "benchmarks.million_devices"]
    runners = [Runner(f"{count:,} devices", [[*program, str(count), STARTED]]) for count in DEVICES]
    results = interleave(runners, TURNS)
    few, many = (median(each["cpu_s"] for each in results[r.name]) for r in runners)
    for runner, seconds in zip(runners, (few, many), strict=True):
        print(f"{runner.name}: {seconds:.4f} s of CPU per round, {runner.peak_mb:.0f} MB")
    print(f"ratio: {many / few:.3f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(lambda: prepare(int(sys.argv[1])), float(sys.argv[2]))
    else:
        main()
