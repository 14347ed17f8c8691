"""Run folders made by hand, so that every expected number can be calculated on paper."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slimfl.results.records import RunRecord, load
from slimfl.round import RoundRecord, RunFolder
from tests import asking

MakeRun = Callable[..., RunRecord]
PROVENANCE = {"data_sha256": "ab" * 32, "versions": {"python": "3.11", "torch": "2.13.0"}}


def line(round: int, accuracy: dict[str, float], **changes: Any) -> dict[str, Any]:
    """A round with two devices: both deliver segment 1, one of them segment 2 as well."""
    return {
        "round": round,
        "accuracy": accuracy,
        "loss": {},
        "training_loss": {},
        "learning_rate": 0.001,
        "devices": [0, 1],
        "dropped_out": [],
        "refused": [],
        "gains": [2.0, 0.3, *([1.0] * len(changes.get("devices", ())))][
            : len(changes.get("devices", (0, 1)))
        ],
        "decoded": [2, 1],
        "delivered": [2, 1],
        "bits_sent": [8e6, 16e6],
        "bits_decoded": [8e6, 8e6],
        "bits_dropped": [0.0, 8e6],
        "airtime_s": 0.5,
        "energy_j": 0.25,
        "paper_power_mw": 200.0,
        "images": 100,
        "multiply_adds": 1000,
        "paper_mflops": 4.0,
        "seconds": {"training": 2.0, "evaluation": 0.5},
        **changes,
    }


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """`make_run(method, seed, curves)` with one list of accuracies a width."""

    def make(
        method: str = "slimfl",
        seed: int = 0,
        curves: dict[str, list[float]] | None = None,
        name: str | None = None,
        experiment: dict[str, Any] | None = None,
        **changes: Any,
    ) -> RunRecord:
        curves = {"0.5x": [0.5, 0.6], "1.0x": [0.7, 0.8]} if curves is None else curves
        count = len(next(iter(curves.values()), []))
        keys = {"rounds": max(1, count), "training__epochs": 1, "federation__devices": 2}
        keys |= {"radio__rates": "equal", **(experiment or {})}
        (described,) = asking.load(None, method=method, seed=seed, **keys)
        path = tmp_path / "runs" / (name or f"{method}-seed{seed}")
        folder = RunFolder.create(path, described, PROVENANCE)
        held = [[30, 10], [0, 60], *([[5, 5]] * described.federation.devices)]
        folder.write_partition(held[: described.federation.devices])
        with folder.writing() as writer:
            for i in range(count):
                accuracy = {width: values[i] for width, values in curves.items()}
                writer.append(RoundRecord.model_validate(line(i + 1, accuracy, **changes)))
        return load(path)

    return make


@pytest.fixture
def paper_runs(make_run: MakeRun) -> list[RunRecord]:
    """SlimFL beside both Vanilla FL widths under two seeds."""
    runs = []
    for seed, shift in ((0, 0.0), (1, 0.1)):
        half, full = [0.5 + shift, 0.6 + shift], [0.7 + shift, 0.8 + shift]
        runs += [
            make_run("slimfl", seed, {"0.5x": half, "1.0x": full}),
            make_run(
                "vanilla-0.5x", seed, {"0.5x": [0.4 + shift, 0.5 + shift]},
                decoded=[1, 1], delivered=[2, 0], bits_sent=[8e6, 0.0], bits_decoded=[8e6, 0.0],
                bits_dropped=[0.0, 0.0], energy_j=0.1, paper_mflops=1.0,
            ),
            make_run(
                "vanilla-1.0x", seed, {"1.0x": [0.6 + shift, 0.7 + shift]},
                decoded=[2, 0], delivered=[1, 1], bits_sent=[8e6, 16e6], bits_decoded=[4e6, 8e6],
                bits_dropped=[4e6, 8e6], energy_j=0.2, paper_mflops=3.0,
            ),
        ]  # fmt: skip
    return runs
