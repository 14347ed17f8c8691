"""The cell: one run of the reproduction, known by the hash of its experiment.

Two exhibits that need the same run share it, and a run that was made before is not made again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from slimfl import config
from slimfl.config import Experiment
from slimfl.experiments.scale import PAPER_DEVICES, Scale
from slimfl.grids import Job

#: What does not change the numbers of a run: where it ran, and who watched.
_CIRCUMSTANCES: dict[str, bool | set[str]] = {
    "threads": True,
    "track": True,
    "flower": True,
    "data": {"dir"},
}


@dataclass(frozen=True)
class Cell:
    """One experiment of the reproduction."""

    experiment: Experiment

    @cached_property
    def key(self) -> str:
        """The hash of everything in the experiment that its numbers depend on.

        A key with its default value is left out, so that runs made before a key existed are found;
        should a default ever change, the experiment in the folder no longer fits (`grids.job`).
        """
        tree = self.experiment.model_dump(
            mode="json", exclude=_CIRCUMSTANCES, exclude_defaults=True
        )
        tree = {key: value for key, value in tree.items() if value != {}}
        return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """What a person recognises it by; the hash tells apart what the words do not."""
        one = self.experiment
        words = (one.method, one.radio.channel, f"alpha{one.data.alpha:g}", f"seed{one.seed}")
        return "-".join((*words, self.key))

    def job(self, cache: Path) -> Job:
        """The run, in a folder of the cache."""
        return Job(cache / self.name, self.experiment)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and other.key == self.key


def cell(
    scale: Scale,
    method: str = "slimfl",
    *,
    alpha: float,
    seed: int,
    channel: str = "poor",
    devices: int = PAPER_DEVICES,
    **changes: Any,
) -> Cell:
    """A run at a scale; `changes` are further keys with two underscores for the dot."""
    values: dict[str, Any] = {
        "method": method,
        "seed": seed,
        "threads": 1,
        "rounds": scale.rounds[alpha],
        "data__alpha": alpha,
        "data__test_samples": scale.test_samples,
        "radio__channel": channel,
        "federation__devices": devices,
        "federation__evaluate_every": scale.evaluate_every,
        "federation__convergence_window": scale.convergence_window,
        "federation__convergence_accuracy": scale.convergence_accuracy,
        **scale.local_work(devices),
    }
    return Cell(config.load(**(values | changes))[0])
