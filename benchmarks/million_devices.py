"""Rounds of 1,000 devices out of 1,000 and out of a million that all differ: CPU time and memory.

    python benchmarks/million_devices.py

Both federations take turns, each in a process of its own on one core. Every device holds one image
of 14 x 14 pixels, half of the devices are limited to 0.5x, places and speeds are drawn, and the
power is split for each device. CPU time is compared, so that other work on the machine counts less.
"""

import json
import resource
import subprocess
import sys
import time
from statistics import median

DEVICES, COHORT, ROUNDS, TURNS = (1_000, 1_000_000), 1_000, 5, 3
RING = {"distribution": "disc", "radius_m": 289.0, "inner_m": 35.0}
SPEED = {"distribution": "lognormal", "median": 1e8, "sigma": 0.5}
CLASSES = [
    {"name": "capped", "share": 0.5, "max_width": 0.5, "distance_m": RING, "macs_per_s": SPEED},
    {"name": "able", "share": 0.5, "distance_m": RING, "availability": 0.9, "battery_j": 500.0},
]


def serve(devices: int) -> None:
    """Prepare, then run some rounds for every line on standard input."""
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
    sim.step()  # the first round pays for buffers and caches
    print(json.dumps({}), flush=True)
    for _ in sys.stdin:
        began = time.process_time()
        for _ in range(ROUNDS):
            sim.step()
        seconds = (time.process_time() - began) / ROUNDS
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"cpu_s_per_round": seconds, "peak_mb": peak_mb}), flush=True)


def main() -> None:
    """Let both take turns and print what they took."""
    workers = {
        devices: subprocess.Popen(
            [sys.executable, __file__, str(devices)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for devices in DEVICES
    }
    for worker in workers.values():
        assert worker.stdout is not None
        worker.stdout.readline()
    took: dict[int, list[dict[str, float]]] = {devices: [] for devices in DEVICES}
    for _ in range(TURNS):
        for devices, worker in workers.items():
            assert worker.stdin is not None
            assert worker.stdout is not None
            print("go", file=worker.stdin, flush=True)
            took[devices].append(json.loads(worker.stdout.readline()))
    for worker in workers.values():
        worker.communicate()
    seconds = {n: median(turn["cpu_s_per_round"] for turn in turns) for n, turns in took.items()}
    few, many = DEVICES
    print(
        json.dumps(
            {
                "cpu_s_per_round": {str(n): round(s, 4) for n, s in seconds.items()},
                "ratio": round(seconds[many] / seconds[few], 3),
                "peak_mb": {str(n): round(turns[-1]["peak_mb"]) for n, turns in took.items()},
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    serve(int(sys.argv[1])) if len(sys.argv) > 1 else main()
