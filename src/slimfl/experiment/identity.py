"""What the rounds of a run depend on: experiments that agree in it run the same rounds.

A run may be resumed with more rounds, on another number of cores or with its data in another place,
but not with another learning rate.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from slimfl.experiment.experiment import Experiment
from slimfl.experiment.sections.rounds import FederationSection
from slimfl.experiment.sections.section import Section

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


def flat(experiment: Experiment, exclude: Any = None) -> dict[str, Any]:
    """The values of an experiment as JSON, under dotted keys."""
    tree = experiment.model_dump(mode="json", exclude=exclude)
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(getattr(experiment, key), Section):
            found |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            found[key] = value
    return found


def _values(experiment: Experiment) -> dict[str, Any]:
    return flat(experiment, _CIRCUMSTANCES)


def round_identity(experiment: Experiment) -> str:
    """The digest of what the rounds of an experiment depend on."""
    text = json.dumps(round_dependencies(experiment), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def same_rounds(one: Experiment, other: Experiment) -> bool:
    """True if two experiments have the same rounds, up to the shorter one's end.

    Which engine computes them does not count: a request may leave that open.
    """
    return _asked(one) == _asked(other)


def same_experiment(one: Experiment, other: Experiment) -> bool:
    """True if two experiments also end alike."""
    return same_rounds(one, other) and _end(one) == _end(other)


def _asked(experiment: Experiment) -> dict[str, Any]:
    settled = ("engine", "device", "flower.device_engine")
    return {k: v for k, v in round_dependencies(experiment).items() if k not in settled}


def _end(experiment: Experiment) -> tuple[Any, ...]:
    section = experiment.federation
    convergence = (
        section.convergence_window,
        section.convergence_accuracy,
        section.convergence_deviation,
    )
    stops = convergence if section.stop_on_convergence else None
    return experiment.rounds, experiment.callbacks, stops


def beginning(experiment: Experiment) -> Experiment:
    """An experiment without its length: everything that its rounds depend on.

    Only a cosine schedule depends on the number of rounds.
    """
    if experiment.training.schedule == "cosine":
        return experiment
    section = experiment.federation
    free = {"checkpoint_every"}
    if not section.stop_on_convergence:
        free |= {"convergence_window", "convergence_accuracy", "convergence_deviation"}
    defaults = {key: FederationSection.model_fields[key].default for key in free}
    return experiment.model_copy(
        update={
            "rounds": Experiment.model_fields["rounds"].default,
            "federation": section.model_copy(update=defaults),
        }
    )
