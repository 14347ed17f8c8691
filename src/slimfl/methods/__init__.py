"""The methods: what a device is asked to do, and how the server merges what arrives.

One short file per method, each like its paper's pseudo-code. The round loop is written once, in
`slimfl.round`.
"""

from slimfl.methods.merging import Arrival, Merge, Positions, RunningMean, State
from slimfl.methods.method import Method, Random, full_work
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
from slimfl.training import Work

__all__ = [
    "RIVALS",
    "VANILLA_ALL",
    "VANILLA_PAPER",
    "Arrival",
    "Merge",
    "Method",
    "Positions",
    "Random",
    "RunningMean",
    "ServerOptimiser",
    "SlimFL",
    "State",
    "Vanilla",
    "Work",
    "expand",
    "full_work",
    "method",
    "method_names",
    "vanilla_all_name",
    "vanilla_name",
]
