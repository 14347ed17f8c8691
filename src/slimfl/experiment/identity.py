"""What the rounds of a run depend on: experiments that agree in it run the same rounds.

A run may be resumed with more rounds, on another number of cores or with its data in another place,
but not with another learning rate.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from slimfl.experiment.experiment import Experiment
from slimfl.experiment.sections import Section

#: What no round depends on: where a run computes, who watches it, how often it is saved, when it
#: ends, and how long it waits. The evaluation interval is not listed, as it affects the metrics.
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

#: Of keys whose default has changed: the value of every run that does not name the key.
FIRST_DEFAULTS = {"radio.rates": "equal"}


def round_dependencies(experiment: Experiment) -> dict[str, Any]:
    """The values that the rounds depend on, as JSON, under dotted keys.

    Keys with default values are left out, so that a key added later changes nothing for earlier
    runs. Of a key whose default has changed, it is the first default that is left out.
    """
    values, defaults = _values(experiment), _values(Experiment()) | FIRST_DEFAULTS
    chosen = {key: value for key, value in values.items() if value != defaults[key]}
    if experiment.training.schedule == "cosine":
        # the only schedule whose rate depends on the number of rounds
        chosen["rounds"] = experiment.rounds
    if experiment.device == "cpu":
        del chosen["device"]  # all runs were on the CPU before there was a choice
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
