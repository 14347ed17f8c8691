"""The methods: what a device is asked to do, and how the server merges what arrives.

One short file per method, each like its paper's pseudo-code. The round loop is written once, in
`slimfl.round`.
"""

from slimfl.methods.merging import Arrival as Arrival
from slimfl.methods.merging import Merge as Merge
from slimfl.methods.merging import Positions as Positions
from slimfl.methods.merging import RunningMean as RunningMean
from slimfl.methods.merging import State as State
from slimfl.methods.method import Method as Method
from slimfl.methods.method import Random as Random
from slimfl.methods.method import full_work as full_work
from slimfl.methods.names import RIVALS as RIVALS
from slimfl.methods.names import VANILLA_ALL as VANILLA_ALL
from slimfl.methods.names import VANILLA_PAPER as VANILLA_PAPER
from slimfl.methods.names import expand as expand
from slimfl.methods.names import method as method
from slimfl.methods.names import method_names as method_names
from slimfl.methods.names import vanilla_all_name as vanilla_all_name
from slimfl.methods.names import vanilla_name as vanilla_name
from slimfl.methods.server_optimiser import ServerOptimiser as ServerOptimiser
from slimfl.methods.slimfl import SlimFL as SlimFL
from slimfl.methods.vanilla import Vanilla as Vanilla
from slimfl.training import Work as Work
