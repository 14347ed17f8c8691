"""What should have arrived in a run according to its own channel."""

from typing import Any

import numpy as np

from slimfl.devices import Population
from slimfl.experiment import Experiment
from slimfl.methods import method, method_names
from slimfl.radio import build_channel
from slimfl.round.expected import expected_shares, has_formula


def expected_of(experiment: Experiment, provenance: dict[str, Any]) -> list[float] | None:
    """The recorded expected share of every segment; None if unknown.

    Older versions recorded none. They are computed here for built-in parts; nothing that a folder
    names is imported. Other versions recorded shares where there is no formula; these are ignored.
    """
    if not has_formula(experiment):
        return None
    recorded = provenance.get("expected_shares")
    segments = len(experiment.model.widths)
    if isinstance(recorded, list):
        numbers = [each for each in recorded if isinstance(each, int | float) and 0 <= each <= 1]
        return [float(each) for each in numbers] if len(numbers) == segments else None
    widths, radio = experiment.model.widths, experiment.radio
    known = experiment.method in method_names(widths) and radio.model == "outage"
    known = known and radio.rates == "equal"  # otherwise the sizes of the segments are needed
    if not known:
        return None
    population = Population.alike(
        np.ones(min(experiment.federation.devices, 1000), np.int64),
        max_width=segments - 1,
        power_dbm=radio.power_dbm,
        distance_m=radio.distance_m,
    )
    built_in = method(experiment.method, widths)
    return expected_shares(experiment, built_in, build_channel(radio), population)
