"""Rounds: who trains, what is merged, what is saved."""

from slimfl.federation.callbacks import Callback
from slimfl.federation.convergence import converged_round, convergence
from slimfl.federation.merge import RefusedUpdateError, SegmentAverage
from slimfl.federation.method import Method
from slimfl.federation.methods import VANILLA_ALL, expand, method, method_names, vanilla_all_name
from slimfl.federation.record import Line
from slimfl.federation.run_folder import RunFolder
from slimfl.federation.simulation import Simulation, completed, finished, run
from slimfl.federation.slimfl import SlimFL
from slimfl.federation.vanilla import Vanilla

__all__ = [
    "VANILLA_ALL",
    "Callback",
    "Line",
    "Method",
    "RefusedUpdateError",
    "RunFolder",
    "SegmentAverage",
    "Simulation",
    "SlimFL",
    "Vanilla",
    "completed",
    "converged_round",
    "convergence",
    "expand",
    "finished",
    "method",
    "method_names",
    "run",
    "vanilla_all_name",
]
