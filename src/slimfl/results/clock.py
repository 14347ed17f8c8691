"""Time, energy and batteries of groups of runs with a clock or unequal devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slimfl.experiment import EnergySection, TimeSection
from slimfl.results.batteries import Moment, emptied
from slimfl.results.energy import computing_counted, energy_words, sending_energy_j
from slimfl.results.groups import Group
from slimfl.results.records import RunRecord
from slimfl.results.run_summary import run_summary
from slimfl.results.seed_summary import Spread


@dataclass(frozen=True)
class ClockSummary:
    """One group over its seeds."""

    name: str
    scene: str
    clock_s: Spread | None
    """Virtual time of all rounds."""
    sending_j: Spread | None
    computing_j: Spread | None
    counted: str
    """How joules were counted."""
    first_empty_round: Spread | None
    """Round in which the first battery was empty; None unless that happened with every seed."""
    half_empty_round: Spread | None


def clock_summaries(groups: Sequence[Group]) -> list[ClockSummary]:
    """The groups that configure a clock, energy or unequal devices."""
    return [_summary(each) for each in groups if _is_set(each.runs[0])]


def _is_set(run: RunRecord) -> bool:
    experiment = run.experiment
    return (
        run.devices is not None
        or experiment.time != TimeSection()
        or experiment.energy != EnergySection()
    )


def _summary(group: Group) -> ClockSummary:
    rows = [run_summary(run) for run in group.runs]
    computing = all(computing_counted(run) for run in group.runs)
    return ClockSummary(
        group.name,
        group.scene,
        Spread.of(row.clock_s for row in rows),
        Spread.of(sending_energy_j(run.lines) for run in group.runs),
        Spread.of(row.compute_energy_j for row in rows),
        "; ".join(dict.fromkeys(energy_words(run, computing) for run in group.runs)),
        _when(group, 0.0),
        _when(group, 0.5),
    )


def _when(group: Group, share: float) -> Spread | None:
    devices = group.runs[0].experiment.federation.devices
    found: list[Moment | None] = [emptied(run.lines, devices, share) for run in group.runs]
    return Spread.of(None if moment is None else moment.round for moment in found)
