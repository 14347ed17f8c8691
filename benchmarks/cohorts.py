"""Where does training devices as one cohort pay on a CPU, against one device a core?

    python -m benchmarks.cohorts

prints, for steps of growing size, how many times as fast a cohort is. The torch engine's threshold
`SMALL_STEP` lies where that falls to one.
"""

import time
from statistics import median

from torch import nn

import slimfl
from benchmarks.worker import bench_dataset
from slimfl.experiment import build

REPETITIONS = 5
PERCEPTRONS = [(8, 8), (64, 8), (64, 32), (256, 16), (256, 64), (1024, 64)]
UL_MOBILENETS = [((4, 4, 8), 4), ((8, 8, 16), 8), ((32, 32, 64), 16)]


def measure(name: str, batch_size: int, options: dict, network: nn.Module | None, devices: int):
    """Print the ratio for one network and batch size."""
    experiment = build(
        {
            "engine": "torch",
            "data": {"partition": "iid"},
            "model": {"options": options},
            "training": {"steps": 5, "batch_size": batch_size},
            "federation": {"devices": devices},
        }
    )
    sim = slimfl.round.Simulation(experiment, dataset=bench_dataset(2000), network=network)
    tasks = sim.plan().tasks
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for repetition in range(REPETITIONS):
        for as_cohort in (True, False):
            sim.engine.cohorts_pay = as_cohort
            begin = time.perf_counter()
            list(sim.engine.train(repetition + 1, sim.global_model, tasks))
            seconds[as_cohort].append(time.perf_counter() - begin)
    ratios = [alone / both for both, alone in zip(seconds[True], seconds[False], strict=True)]
    step = batch_size * sim.setting.multiply_adds[-1]
    print(f"{name}, batch {batch_size}: {step:,} multiply-adds a step, {median(ratios):.2f} times")


def main() -> None:
    """Perceptrons, then UL-MobileNets."""
    for hidden, batch_size in PERCEPTRONS:
        layers = (nn.Flatten(), nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))
        network = slimfl.slimmable(nn.Sequential(*layers))
        measure(f"perceptron of {hidden}", batch_size, {}, network, devices=40)
    for channels, batch_size in UL_MOBILENETS:
        measure(f"UL-MobileNet {channels}", batch_size, {"channels": channels}, None, devices=10)


if __name__ == "__main__":
    main()
