"""The methods: what a device is asked to do, and how the server merges what arrives.

One short file per method, each like its paper's pseudo-code. The round loop is written once, in
`slimfl.round`.
"""

from slimfl.methods.arrivals import Arrival, Arrivals, OnSums, Positions, RunningMean
from slimfl.methods.method import Assignment, Method, Random, State, full_assignment
from slimfl.methods.names import (
    RIVALS,
    VANILLA_ALL,
    VANILLA_PAPER,
    expand,
    method,
    method_names,
    vanilla_all_name,
    vanilla_name,
)
from slimfl.methods.server_optimiser import ServerOptimiser
from slimfl.methods.slimfl import SlimFL
from slimfl.methods.vanilla import Vanilla

__all__ = [
    "RIVALS",
    "VANILLA_ALL",
    "VANILLA_PAPER",
    "Arrival",
    "Arrivals",
    "Assignment",
    "Method",
    "OnSums",
    "Positions",
    "Random",
    "RunningMean",
    "ServerOptimiser",
    "SlimFL",
    "State",
    "Vanilla",
    "expand",
    "full_assignment",
    "method",
    "method_names",
    "vanilla_all_name",
    "vanilla_name",
]
