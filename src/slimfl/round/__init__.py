"""Rounds: who trains, what is merged, what is saved."""

from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names

if TYPE_CHECKING:
    from slimfl.round.simulation import Simulation
    from slimfl.round.stages import Stage
    from slimfl.round.uploads import Plan, Upload
    from slimfl.runs.callbacks import Callback
    from slimfl.runs.converged import converged_round, convergence
    from slimfl.runs.early_stopping import EarlyStopping
    from slimfl.runs.loop import completed, finished, run
    from slimfl.runs.storage.record import RoundRecord
    from slimfl.runs.storage.run_folder import RunFolder
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.runs.callbacks": ["Callback"],
            "slimfl.runs.converged": ["converged_round", "convergence"],
            "slimfl.runs.early_stopping": ["EarlyStopping"],
            "slimfl.runs.loop": ["completed", "finished", "run"],
            "slimfl.round.simulation": ["Simulation"],
            "slimfl.runs.storage.record": ["RoundRecord"],
            "slimfl.runs.storage.run_folder": ["RunFolder"],
            "slimfl.round.stages": ["Stage"],
            "slimfl.round.uploads": ["Plan", "Upload"],
        },
    )

__all__ = [
    "Callback",
    "EarlyStopping",
    "Plan",
    "RoundRecord",
    "RunFolder",
    "Simulation",
    "Stage",
    "Upload",
    "completed",
    "converged_round",
    "convergence",
    "finished",
    "run",
]
