"""The energy of rounds in joules: sending includes cut-off uploads, computing is apart."""

from __future__ import annotations

from collections.abc import Iterable

from slimfl.devices.computing_energy import presets_used
from slimfl.results.records import RunRecord
from slimfl.round import RoundRecord


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
