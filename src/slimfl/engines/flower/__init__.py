"""The `flower` engine: devices in other processes and on other machines, through Flower.

The round loop stays where it is, in `slimfl.federation`. This engine only carries a task to the
device and its update back::

    federation            this room                                   a device
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

from slimfl.offline import stay_offline

# before anything imports Flower, which reads the settings at import
stay_offline(os.environ)
