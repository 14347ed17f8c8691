"""Rounds: who trains, what is merged, what is saved."""

from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names

if TYPE_CHECKING:
    from slimfl.federation.callbacks import Callback
    from slimfl.federation.converged import converged_round, convergence
    from slimfl.federation.early_stopping import EarlyStopping
    from slimfl.federation.plan import Plan
    from slimfl.federation.running import completed, finished, run
    from slimfl.federation.simulation import Simulation
    from slimfl.federation.storage.record import RoundRecord
    from slimfl.federation.storage.run_folder import RunFolder
    from slimfl.federation.updates import RefusedUpdateError
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.federation.callbacks": ["Callback"],
            "slimfl.federation.converged": ["converged_round", "convergence"],
            "slimfl.federation.early_stopping": ["EarlyStopping"],
            "slimfl.federation.plan": ["Plan"],
            "slimfl.federation.running": ["completed", "finished", "run"],
            "slimfl.federation.simulation": ["Simulation"],
            "slimfl.federation.storage.record": ["RoundRecord"],
            "slimfl.federation.storage.run_folder": ["RunFolder"],
            "slimfl.federation.updates": ["RefusedUpdateError"],
        },
    )

__all__ = [
    "Callback",
    "EarlyStopping",
    "Plan",
    "RefusedUpdateError",
    "RoundRecord",
    "RunFolder",
    "Simulation",
    "completed",
    "converged_round",
    "convergence",
    "finished",
    "run",
]
