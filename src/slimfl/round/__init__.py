"""Rounds: who trains, what is merged, what is saved."""

from typing import TYPE_CHECKING

from slimfl.lazy import public_names

if TYPE_CHECKING:
    from slimfl.round.simulation import Simulation as Simulation
    from slimfl.round.stages import Stage as Stage
    from slimfl.round.uploads import Plan as Plan
    from slimfl.round.uploads import Upload as Upload
    from slimfl.runs.callbacks import Callback as Callback
    from slimfl.runs.callbacks import EarlyStopping as EarlyStopping
    from slimfl.runs.converged import converged_round as converged_round
    from slimfl.runs.converged import convergence as convergence
    from slimfl.runs.loop import completed as completed
    from slimfl.runs.loop import finished as finished
    from slimfl.runs.loop import run as run
    from slimfl.runs.storage.record import RoundRecord as RoundRecord
    from slimfl.runs.storage.run_folder import RunFolder as RunFolder
else:
    __getattr__, __dir__, __all__ = public_names(__name__, __file__)
