"""What the rounds of a run depend on: two experiments that agree in it run the same rounds.

A run may go on with more rounds, on another number of cores or with its data in another place. It
may not go on with another learning rate.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from slimfl.config.base import Section
from slimfl.config.sections import Experiment

#: What no round depends on: where a run computes, who watches it, how often it is saved, when it
#: ends, and how long it waits. How often it is evaluated counts: it shows in the metrics.
_CIRCUMSTANCES: dict[str, bool | set[str]] = {
    "rounds": True,
    "threads": True,
    "track": True,
    "callbacks": True,
    "data": {"dir"},
    "federation": {
        "checkpoint_every",
        "stop_on_convergence",
        "convergence_window",
        "convergence_accuracy",
        "convergence_deviation",
    },
    "flower": {"quorum", "round_timeout_s", "wait_s", "identity"},
}


def round_dependencies(experiment: Experiment) -> dict[str, Any]:
    """The values that the rounds depend on, as JSON, under dotted keys.

    A key with its default value is left out, so that a key which does not exist yet changes
    nothing for the runs made before it.
    """
    values, defaults = _values(experiment), _values(Experiment())
    chosen = {key: value for key, value in values.items() if value != defaults[key]}
    if experiment.training.schedule == "cosine":
        # the one schedule whose rate depends on how many rounds there will be
        chosen["rounds"] = experiment.rounds
    if experiment.device == "cpu":
        del chosen["device"]  # where all runs were computed before there was a choice
    if experiment.engine != "flower":
        chosen.pop("flower.device_engine", None)
    return chosen


def _values(experiment: Experiment) -> dict[str, Any]:
    tree = experiment.model_dump(mode="json", exclude=_CIRCUMSTANCES)
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(getattr(experiment, key), Section):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat


def round_identity(experiment: Experiment) -> str:
    """The digest of what the rounds of an experiment depend on."""
    text = json.dumps(round_dependencies(experiment), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
