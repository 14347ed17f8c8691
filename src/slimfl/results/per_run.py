"""One run as a row of the closing table, computed only from its metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import pandas as pd

from slimfl.results.groups import BUILT_IN_CHANNEL
from slimfl.results.records import RunRecord
from slimfl.results.rules import (
    accuracy_over,
    computing_counted,
    energy_presets,
    run_learned_above,
    sending_energy_j,
)
from slimfl.round import RoundRecord, convergence, finished

#: A run as plain data: dictionaries, lists and numbers.
RunRow = dict[str, Any]


@dataclass(frozen=True)
class Spent:
    """The costs of some rounds."""

    rounds: int
    airtime_s: float
    energy_j: float
    """Of all sending, also of uploads that were cut off."""
    paper_power_w: float
    """Table VII's communication cost: one device's transmit power, added up over the rounds."""
    paper_gflops: float
    """Table VII's computing cost: a forward pass at every trained width, over the rounds."""

    @classmethod
    def of(cls, lines: Sequence[RoundRecord]) -> Self:
        """The sum over these rounds."""
        return cls(
            rounds=len(lines),
            airtime_s=sum(line.airtime_s for line in lines),
            energy_j=sending_energy_j(lines),
            paper_power_w=sum(line.paper_power_mw for line in lines) / 1e3,
            paper_gflops=sum(line.paper_mflops for line in lines) / 1e3,
        )

    def __add__(self, other: Spent) -> Spent:
        return Spent(*(getattr(self, f) + getattr(other, f) for f in self.__dataclass_fields__))


def run_summary(record: RunRecord) -> RunRow:
    """One run as plain data.

    `total` and `until_converged` are costs; `energy_j` there is that of sending. `deviation` of an
    accuracy is over the last tested rounds, whose mean is `final`.
    """
    experiment, radio, rounds = record.experiment, record.experiment.radio, record.rounds
    alpha = experiment.data.alpha if experiment.data.partition.startswith("dirichlet") else None
    reached = convergence(record.lines, experiment.federation)
    devices = experiment.federation.devices
    images = rounds.get("images", pd.Series(dtype=float))
    images_known = len(images) > 0 and not images.hasnans
    training_s = _sum(rounds, "seconds_training")
    counted = bool(record.lines) and computing_counted(record)
    missing = Counter[str]()
    for line in record.lines:
        missing.update(line.missing_counts)
    last = record.lines[-1] if record.lines else None
    return {
        "method": experiment.method,
        "path": str(record.path),
        "seed": experiment.seed,
        "channel": radio.channel if radio.model == BUILT_IN_CHANNEL else radio.model,
        "noise_dbm": radio.noise,
        "alpha": alpha,
        "rounds_done": len(rounds),
        "rounds_asked": experiment.rounds,
        "complete": finished(experiment, record.lines),
        "accuracy": accuracy_over(record, len(rounds)),
        "segments": [_segment(rounds, s + 1) for s in range(len(experiment.model.widths))],
        "total": asdict(Spent.of(record.lines)),
        "converged_round": reached,
        "until_converged": None if reached is None else asdict(Spent.of(record.lines[:reached])),
        "refused": int(_sum(rounds, "refused")),
        "images": int(images.sum()) if images_known else None,
        "training_s": training_s,
        "images_per_s": images.sum() / training_s if images_known and training_s else None,
        "privacy": last.privacy.model_dump() if last and last.privacy else None,
        "own": {kind: entry.get("name", "") for kind, entry in record.own.items()},
        "learned_above": run_learned_above(record),
        **({"missing": dict(sorted(missing.items()))} if missing else {}),
        "clock_s": float(rounds["clock_s"].iloc[-1]) if record.lines else None,
        "compute_energy_j": _sum(rounds, "compute_energy_j") if counted else None,
        "energy_presets": energy_presets(record) if computing_counted(record) else [],
        "first_empty": _emptied(rounds, 1),
        "half_empty": _emptied(rounds, max(1.0, devices / 2)),
    }


def _segment(rounds: pd.DataFrame, number: int) -> dict[str, float | None]:
    """What became of one segment; it was asked for only where the method sends it."""
    sent, decoded, dropped = (
        _sum(rounds, f"bits_{what}_{number}") / 8e6 for what in ("sent", "decoded", "dropped")
    )
    delivered = int(_sum(rounds, f"delivered_{number}"))
    asked = int(_sum(rounds, "asked")) if sent else 0
    return with_share(
        {"sent_mb": sent, "decoded_mb": decoded, "dropped_mb": dropped, "delivered": delivered,
         "asked": asked}
    )  # fmt: skip


def with_share(segment: dict[str, Any]) -> dict[str, float | None]:
    """A segment with the share of the asked devices that delivered it."""
    asked = segment["asked"]
    return {**segment, "delivered_share": segment["delivered"] / asked if asked else None}


def _sum(rounds: pd.DataFrame, key: str) -> float:
    return float(rounds[key].sum()) if key in rounds else 0.0


def _emptied(rounds: pd.DataFrame, devices: float) -> dict[str, float] | None:
    """The first round after which that many batteries were empty; None if there is none."""
    if "empty" not in rounds:
        return None
    found = rounds[rounds["empty"] >= devices]
    if not len(found):
        return None
    return {"round": int(found.index[0]), "clock_s": float(found["clock_s"].iloc[0])}
