"""What `python -m benchmarks` measures."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from benchmarks.methods import method_costs
from benchmarks.runners import Runner, interleave, local_runner, rates, ratio, spread
from benchmarks.work import Work
from slimfl.engines.machine import available_cores
from slimfl.engines.native_engine import native_module
from slimfl.errors import RunError
from slimfl.extras import why_not_flower
from slimfl.nn import ULMobileNet

Results = Sequence[dict[str, float]]

PLAIN, BEST = "bare-torch", "bare-torch-one-core"

#: This package's own rounds through Flower and Ray.
FLOWER = "slimfl-on-flower"

#: Population sizes for the growth of the cost; the cohort stays at 100 devices with 5 images.
POPULATIONS = (100, 1_000, 10_000, 100_000)
LOCAL_IMAGES = (20, 200, 2_000)
#: Total number of images while the number per device grows.
LOCAL_TOTAL = 4_000
#: Devices and images per device on which other frameworks are compared.
PEER_WORK = ((10, 500), (200, 20))
PEER_REPETITIONS = 3
#: The slowest runner does this many times less work.
PLAIN_SHARE = 4
WIDTH_LISTS = ((1.0,), (0.5, 1.0), (0.25, 0.5, 1.0), (0.25, 0.5, 0.75, 1.0))


def benchmark(
    repetitions: int,
    images: int,
    peers: Mapping[str, Callable[[Work], Runner]] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """All measurements as one document of plain values."""
    native = native_module() is not None
    base = _base_work(images)
    document: dict[str, Any] = {"machine": _machine(), "repetitions": repetitions, "rows": {}}
    for kind in ("sustrain", "fedavg"):
        tell(f"{kind}: engines and bare PyTorch in turn")
        document["rows"][kind] = _engines(replace(base, kind=kind), repetitions, native)
    row = document["rows"]["sustrain"]
    document["torch_over_plain_torch"] = row["ratios"][f"torch / {PLAIN}"]["median"]
    document["torch_over_best_torch"] = row["ratios"][f"torch / {BEST}"]["median"]
    if native:
        document["native_over_best_torch"] = row["ratios"][f"native / {BEST}"]["median"]
        document["native_over_plain_torch"] = row["ratios"][f"native / {PLAIN}"]["median"]
        document["fma_fraction"] = row["fma_fraction"]["median"]
        tell("evaluation against training")
        document["evaluation"] = _evaluation(base, repetitions)
        tell("growth with devices, local images and widths")
        document["growth"] = _growth()
    document |= method_benchmark(repetitions, images, tell)
    if peers and why_not_flower() is None:
        peers = {FLOWER: flower_simulation, **peers}
    for devices, images_per_device in PEER_WORK if peers else ():
        tell(f"peers: {devices} devices of {images_per_device} images")
        work = Work("fedavg", devices, images_per_device, min(64, images_per_device))
        row = _peers(work, PEER_REPETITIONS, native, peers or {}, tell)
        document["rows"][f"fedavg {devices} x {images_per_device}"] = row
    return document


def method_benchmark(
    repetitions: int, images: int, tell: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The cost of a round of every method alone."""
    tell("every method, with half of the devices weak")
    return {
        "machine": _machine(),
        "repetitions": repetitions,
        "methods": method_costs(_base_work(images), repetitions, tell),
    }


def _base_work(images: int) -> Work:
    return Work(images_per_device=max(1, images // Work.devices))


def _machine() -> dict[str, Any]:
    native = native_module()
    return {
        "cores": available_cores(),
        "processor": platform.machine(),
        "native": None if native is None else native.simd_levels()[0],
    }


def _engines(work: Work, repetitions: int, native: bool) -> dict[str, Any]:
    # the plain loop trains one device after the other, so a few devices show its speed
    few = replace(work, devices=max(1, work.devices // PLAIN_SHARE))
    runners = [local_runner("torch", work), local_runner(PLAIN, few)]
    runners.append(local_runner(BEST, work, processes=available_cores()))
    if native:
        runners = [local_runner("native", work), local_runner("fma-limit", work), *runners]
    results = interleave(runners, repetitions)
    speed = {name: rates(each) for name, each in results.items() if name != "fma-limit"}
    ours = [name for name in ("native", "torch") if name in speed]
    row: dict[str, Any] = {
        "work": asdict(work),
        "images_per_s": {name: spread(values) for name, values in speed.items()},
        "ratios": {f"{a} / {b}": ratio(speed[a], speed[b]) for a in ours for b in speed if a != b},
        "startup_s": {r.name: r.startup_s for r in runners if r.name != "fma-limit"},
        "peak_mb": {r.name: r.peak_mb for r in runners if r.name != "fma-limit"},
    }
    if native:
        limit = [result["gflops"] for result in results["fma-limit"]]
        flops = _textbook_flops(work)
        row["fma_limit_gflops"] = spread(limit)
        row["flops_per_image"] = flops
        row["fma_fraction"] = spread(
            [s * flops / (g * 1e9) for s, g in zip(speed["native"], limit, strict=True)]
        )
    return row


def _peers(
    work: Work,
    repetitions: int,
    native: bool,
    peers: Mapping[str, Callable[[Work], Runner]],
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Whole rounds of federated averaging, here and in one other framework at a time.

    One at a time, because some keep polling while they wait for their turn.
    """
    ours = ("native", "torch") if native else ("torch",)
    speed: dict[str, list[float]] = {name: [] for name in ours}
    row: dict[str, Any] = {
        "work": asdict(work), "images_per_s": {}, "ratios": {},
        "startup_s": {}, "startup_ratios": {}, "peak_mb": {}, "failed": {},
    }  # fmt: skip
    for name, make in peers.items():
        tell(f"  {name}")
        try:
            runners = [*(local_runner(own, work) for own in ours), make(work)]
            results = interleave(runners, repetitions)
        except RunError as error:
            row["failed"][name] = str(error)
            continue
        measured = {runner: rates(each) for runner, each in results.items()}
        for own in ours:
            speed[own] += measured[own]
            row["ratios"][f"{own} / {name}"] = ratio(measured[own], measured[name])
        row["images_per_s"][name] = spread(measured[name])
        if name == FLOWER:
            row["flower_overhead_ms"] = _overhead_ms(work, results[name], results[ours[0]])
        row["startup_s"] |= {runner.name: runner.startup_s for runner in runners}
        row["peak_mb"] |= {runner.name: runner.peak_mb for runner in runners}
        row["startup_ratios"][f"{name} / {ours[0]}"] = runners[-1].startup_s / runners[0].startup_s
    own_speed = {own: spread(values) for own, values in speed.items() if values}
    row["images_per_s"] = own_speed | row["images_per_s"]
    return row


def flower_simulation(work: Work) -> Runner:
    """The flower engine as a runner beside other frameworks."""
    runner = local_runner("flower", work)
    runner.name = FLOWER
    return runner


def _overhead_ms(work: Work, through: Results, here: Results) -> dict[str, float]:
    """The extra cost per device and round of Flower over this process."""
    more = [a["seconds"] - b["seconds"] for a, b in zip(through, here, strict=True)]
    return spread([1000 * seconds / work.devices for seconds in more])


def _textbook_flops(work: Work) -> float:
    """Operations of the textbook method for one image, with nothing shared between widths."""
    module = native_module()
    assert module is not None
    model = ULMobileNet()
    network = module.Network(
        1, 28, 28, model.channels, 10, [model.active_channels(w) for w in work.widths]
    )
    if work.kind == "sustrain":
        return float(network.textbook_flops("sustrain"))
    return float(network.textbook_flops("width", len(work.widths) - 1))


def _evaluation(work: Work, repetitions: int) -> dict[str, Any]:
    """10,000 test images at both widths against a round of 60,000 training images."""
    runners = [local_runner("native", work), local_runner("native-evaluation", work)]
    results = interleave(runners, repetitions)
    full_round = [60_000 / rate for rate in rates(results["native"])]
    evaluation = [result["seconds"] for result in results["native-evaluation"]]
    return {"share_of_a_round": ratio(evaluation, full_round)}


def _growth(repetitions: int = 4) -> dict[str, Any]:
    """Native engine: images per second along each axis."""
    populations = {
        f"{count} devices": local_runner(
            "native", Work(devices=count, images_per_device=5, batch_size=5, cohort=100)
        )
        for count in POPULATIONS
    }
    local = {
        f"{count} images": local_runner(
            "native", Work(devices=LOCAL_TOTAL // count, images_per_device=count)
        )
        for count in LOCAL_IMAGES
    }
    widths = {
        f"S = {len(listed)}": local_runner("native", Work(widths=listed)) for listed in WIDTH_LISTS
    }
    return {
        "population": _axis(populations, repetitions),
        "local images": _axis(local, repetitions),
        "widths": _axis(widths, repetitions),
    }


def _axis(runners: dict[str, Runner], repetitions: int) -> dict[str, Any]:
    for name, runner in runners.items():
        runner.name = name
    results = interleave(list(runners.values()), repetitions, launch_together=True)
    return {
        name: {"images_per_s": spread(rates(results[name])), "peak_mb": runner.peak_mb}
        for name, runner in runners.items()
    }
