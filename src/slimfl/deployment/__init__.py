"""SlimFL for people who use Flower: a ServerApp, a ClientApp, a Strategy, and a deployment kit.

    server_app      runs the rounds of a run folder, with the round loop of slimfl
    client_app      trains on a device, with the engines of slimfl
    SlimFLStrategy  the methods and the radio of slimfl for a ServerApp of your own

Everything here is a thin layer: methods, radio, training and merging are those of the library. It
needs the extra `flower`.
"""

import os
from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names
from slimfl.offline import stay_offline

# before anything imports Flower, which reads the settings at import
stay_offline(os.environ)

if TYPE_CHECKING:
    from slimfl.deployment.server import server_app
    from slimfl.deployment.strategy import SlimFLStrategy
    from slimfl.engines.flower.app import client_app
else:
    # a kit can be made without Flower, and a SuperLink or SuperNode starts without torch: only the
    # tasks that it hands out need it
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.deployment.server": ["server_app"],
            "slimfl.deployment.strategy": ["SlimFLStrategy"],
            "slimfl.engines.flower.app": ["client_app"],
        },
    )

__all__ = ["SlimFLStrategy", "client_app", "server_app"]
