"""A process that does one runner's work on request.

Runners are processes of their own because thread counts and allocator settings are process-wide. A
worker prints a line of JSON when it is ready, and one for each line it reads; it uses no time while
it waits, so that runners can take turns in one run of the bench. Peers speak the same protocol.
"""

import gc
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.work import Work

if TYPE_CHECKING:
    from slimfl.data import Dataset

#: Does the work once and returns the amounts of work done.
DoWork = Callable[[], dict[str, float]]


def bench_dataset(count: int, test: int = 100) -> "Dataset":
    """Random images of Fashion-MNIST's size: arithmetic takes the same time on any images."""
    import numpy as np

    from slimfl.data import Dataset, Samples
    from slimfl.rng import generator

    random = generator(0, "bench")

    def draw(n: int) -> Samples:
        images = random.integers(0, 256, (n, 28, 28, 1), dtype=np.uint8)
        # every class occurs, so a folder of these images tells how many there are
        return Samples(images, random.permutation(np.arange(n) % 10))

    return Dataset("bench", draw(count), draw(test), 10, "random")


def serve(prepare: Callable[[], DoWork], started: float) -> None:
    """Prepare, then do the work once for every line on standard input."""
    do_work = prepare()
    do_work()  # warm-up: the first round fills buffers and caches
    print(json.dumps({"startup_s": time.time() - started}), flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        done = do_work()
        seconds = time.perf_counter() - begin
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"seconds": seconds, "peak_mb": peak_mb, **done}), flush=True)


def engine_runner(work: Work, engine: str) -> DoWork:
    """Whole rounds of the simulation: training, radio, aggregation and bookkeeping."""
    from slimfl.round import Simulation

    sim = Simulation(work.experiment(engine), dataset=bench_dataset(work.held))

    def round_() -> dict[str, float]:
        return {"images": float(sim.step().images or 0)}

    return round_


def method_runner(work: Work) -> DoWork:
    """Rounds of one method by the fastest engine; also how many multiply-adds a round has."""
    from slimfl.round import Simulation

    sim = Simulation(work.experiment("auto"), dataset=bench_dataset(work.held))
    tasks = sim.plan().tasks
    why_not = getattr(sim.engine, "why_not", None)  # of the native engine
    native = [why_not is not None and why_not(task.work) is None for task in tasks]
    share = sum(native) / len(native)

    def round_() -> dict[str, float]:
        record = sim.step()
        return {
            # one epoch of every device that trained, however many widths learned from a batch
            "images": float(len(record.devices) * work.images_per_device),
            "multiply_adds": float(record.multiply_adds or 0),
            "native_share": share,
        }

    return round_


def flower_runner(work: Work) -> DoWork:
    """The same rounds through Flower's simulation engine on Ray, the device engine being ours."""
    from slimfl.data import save
    from slimfl.round import Simulation

    data = bench_dataset(work.held)
    folder = tempfile.TemporaryDirectory()  # lives as long as the closure; devices read it
    save(Path(folder.name), data.train, data.test)
    experiment = work.experiment("flower")
    section = experiment.data.model_copy(update={"dataset": folder.name})
    sim = Simulation(experiment.model_copy(update={"data": section}))

    def round_() -> dict[str, float]:
        assert folder
        return {"images": float(sim.step().images or 0)}

    return round_


def evaluation_runner(work: Work, engine: str) -> DoWork:
    """Evaluation of both widths on a test set of Fashion-MNIST's size."""
    from slimfl.round import Simulation

    sim = Simulation(work.experiment(engine), dataset=bench_dataset(work.held, test=10_000))

    def evaluate() -> dict[str, float]:
        sim.engine.evaluate(sim.global_model, range(len(work.widths)))
        return {"images": 10_000}

    return evaluate


def bare_runner(work: Work, tuned: bool) -> DoWork:
    """Bare PyTorch; `tuned` is one core's share of the best possible loop."""
    import torch

    from benchmarks.bare_torch import BareLoop
    from slimfl.engines.machine import tune_allocator

    if tuned:
        torch.set_num_threads(1)
        tune_allocator()
    loop = BareLoop(work.kind, work.devices, work.images_per_device, work.batch_size, tuned)

    def round_() -> dict[str, float]:
        loop.round()
        return {"images": work.images}

    return round_


def fma_runner() -> DoWork:
    """The limit that fused multiply-adds set on all cores."""
    from slimfl.engines.machine import available_cores
    from slimfl.engines.native_engine import native_module

    module = native_module()
    assert module is not None
    return lambda: {"gflops": module.fma_peak(available_cores(), 0.3)}


def main() -> None:
    """`python -m benchmarks.worker RUNNER STARTED WORK`."""
    gc.set_threshold(100_000)  # as the command line does
    runner, started, work = sys.argv[1], float(sys.argv[2]), Work(**json.loads(sys.argv[3]))
    runners: dict[str, Callable[[], DoWork]] = {
        "native": lambda: engine_runner(work, "native"),
        "torch": lambda: engine_runner(work, "torch"),
        "method": lambda: method_runner(work),
        "flower": lambda: flower_runner(work),
        "native-evaluation": lambda: evaluation_runner(work, "native"),
        "bare-torch": lambda: bare_runner(work, tuned=False),
        "bare-torch-one-core": lambda: bare_runner(work, tuned=True),
        "fma-limit": fma_runner,
    }
    serve(runners[runner], started)


if __name__ == "__main__":
    main()
