"""Each rule once: final accuracy, learned, energy, and what should have arrived.

With C classes and n test samples, guessing is right in a share 1/C of them, with a standard error
of sqrt((1/C)(1 - 1/C)/n). A network has learned when its accuracy exceeds 1/C by more than three of
these errors. Before that, any lead is luck and nothing is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from slimfl.data import SOURCES
from slimfl.devices import Population
from slimfl.devices.computing_energy import presets_used
from slimfl.experiment import Experiment
from slimfl.methods import method, method_names
from slimfl.radio import build_channel
from slimfl.results.records import RunRecord
from slimfl.round import RoundRecord
from slimfl.round.expected import expected_shares, has_formula

#: The number of last evaluated rounds whose mean is the final accuracy.
LAST = 10
#: Standard errors above guessing.
ERRORS = 3.0
#: Test samples of the datasets known by name.
TEST_SAMPLES = {name: source.test_samples for name, source in SOURCES.items()} | {"synthetic": 500}
#: Assumed size of an unknown test set.
UNKNOWN_SAMPLES = 1_000


def accuracy_over(
    record: RunRecord, rounds: int, window: float = 1.0
) -> dict[str, dict[str, float]]:
    """What a run had reached after some rounds, by width; empty if nothing was tested.

    Args:
        record: The run.
        rounds: The number of rounds that count.
        window: The share of the tests, at most `LAST`, whose mean is the final accuracy.
    """
    found = {}
    for width in record.width_names:
        column = record.rounds.get(f"accuracy_{width}")
        tested = [] if column is None else column.loc[:rounds].dropna().tolist()
        if tested:
            found[width] = final_accuracy(tested, window)
    return found


def final_accuracy(tested: Sequence[float], window: float = 1.0) -> dict[str, float]:
    """The final accuracy, its deviation over those tests, and the best of all tests."""
    last = tested[-max(1, round(window * len(tested))) :][-LAST:]
    return {"final": fmean(last), "deviation": pstdev(last), "best": max(tested)}


def learned_above(classes: int, test_samples: int) -> float:
    """The accuracy, as a fraction of 1, that a network exceeds once it has learned.

    >>> f"{learned_above(10, 10_000):.3f}"
    '0.109'
    """
    chance = 1 / classes
    return min(1.0, chance + ERRORS * sqrt(chance * (1 - chance) / test_samples))


def run_learned_above(record: RunRecord) -> float:
    """`learned_above` for a run's data; 0 if it has not begun or has a single class."""
    classes = len(record.class_counts[0]) if record.class_counts else 0
    if classes < 2:
        return 0.0
    data = record.experiment.data
    known = TEST_SAMPLES.get(record.dataset_name, UNKNOWN_SAMPLES)
    return learned_above(classes, min(known, data.test_samples or known))


def computing_counted(run: RunRecord) -> bool:
    """True if the run recorded the energy of computing; older versions did not."""
    return all(line.compute_energy_j is not None for line in run.lines)


def round_energy_j(line: RoundRecord, computing: bool = True) -> float:
    """The energy of all devices in a round: sending and, if `computing`, computing."""
    sending = line.energy_j + (line.cut_off_energy_j or 0.0)
    return sending + ((line.compute_energy_j or 0.0) if computing else 0.0)


def sending_energy_j(lines: Iterable[RoundRecord]) -> float:
    """The energy of all sending in some rounds."""
    return sum(round_energy_j(line, computing=False) for line in lines)


def energy_presets(run: RunRecord) -> list[str]:
    """The computing-energy presets of a run's devices."""
    default = run.experiment.energy.preset
    return [default] if run.devices is None else presets_used(run.devices, default)


def energy_words(runs: Iterable[RunRecord]) -> str:
    """How the joules of some runs are counted; computing only if all of them recorded it."""
    begun = [run for run in runs if run.lines]
    computing = all(map(computing_counted, begun))
    return "; ".join(dict.fromkeys(_words(run, computing) for run in begun))


def _words(run: RunRecord, computing: bool) -> str:
    section = run.experiment.energy
    sending = "sending: radiated"
    if section.amplifier_efficiency != 1 or section.circuit_power_w:
        sending = (
            f"sending: amplifier efficiency {section.amplifier_efficiency:g}, "
            f"circuit {section.circuit_power_w:g} W"
        )
    if not computing:
        return f"{sending}; computing not counted"
    return f"computing: {', '.join(energy_presets(run))}; {sending}"


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
