"""SlimFL and Flower: the `flower` engine, a ServerApp, a ClientApp, a Strategy, a deployment kit.

    server_app      runs the rounds of a run folder, with the round loop of slimfl
    client_app      trains on a device, with the engines of slimfl
    SlimFLStrategy  the methods and the radio of slimfl for a ServerApp of your own

Everything here is a thin layer: methods, radio, training and merging are those of the library. It
needs the extra `flower`.

The round loop stays where it is, in `slimfl.round`. The `flower` engine only carries a task to the
device and its update back::

    slimfl.round          this package                                a device
    Simulation.step  ->   FlowerEngine.train  -> Grid -> Order   ->   work(order)
                     <-   outcomes            <- Grid <- Answer  <-   torch or native engine

A `Grid` is Flower's message service. In a simulation it lives in this process and delivers to Ray
actors (`simulated.py`); in a deployment it is a SuperLink and delivers to SuperNodes.

Devices are stateless. What a device keeps between rounds (its optimiser's moments, with
`training.optimiser_state = "kept"`) travels with the order and comes back with the answer, and the
server's checkpoint stores it. So a device may be killed, restarted or moved at any moment, and a
resumed run gives the same numbers as an uninterrupted one.
"""

import os
from typing import TYPE_CHECKING

from slimfl.lazy import public_names
from slimfl.offline import stay_offline

# before anything imports Flower, which reads the settings at import
stay_offline(os.environ)

if TYPE_CHECKING:
    from slimfl.flower.app import client_app as client_app
    from slimfl.flower.app import server_app as server_app
    from slimfl.flower.strategy import SlimFLStrategy as SlimFLStrategy
else:
    # a kit can be made without Flower, and a SuperLink or SuperNode starts without torch: only the
    # tasks that it hands out need it
    __getattr__, __dir__, __all__ = public_names(__name__, __file__)
