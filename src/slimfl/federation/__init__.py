"""Rounds: who trains, what is merged, what is saved."""

from slimfl.federation.callbacks import Callback
from slimfl.federation.converged import converged_round, convergence
from slimfl.federation.early_stopping import EarlyStopping
from slimfl.federation.plan import Plan
from slimfl.federation.running import completed, finished, run
from slimfl.federation.simulation import Simulation
from slimfl.federation.storage.record import RoundRecord
from slimfl.federation.storage.run_folder import RunFolder
from slimfl.federation.updates import RefusedUpdateError

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
