"""SlimFL for people who use Flower: a ServerApp, a ClientApp, a Strategy, and a deployment kit.

    server_app      runs the rounds of a run folder, with the round loop of slimfl
    client_app      trains on a device, with the engines of slimfl
    SlimFLStrategy  the methods and the radio of slimfl for a ServerApp of your own

Everything here is a thin layer: methods, radio, training and merging are those of the library. It
needs the extra `flower`.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from slimfl.offline import stay_offline

if TYPE_CHECKING:
    from slimfl.deployment.server import server_app
    from slimfl.deployment.strategy import SlimFLStrategy
    from slimfl.engines.flower.app import client_app

# before anything imports Flower, which reads the settings at import
stay_offline(os.environ)

_HOMES = {
    "SlimFLStrategy": "slimfl.deployment.strategy",
    "client_app": "slimfl.engines.flower.app",
    "server_app": "slimfl.deployment.server",
}

__all__ = ["SlimFLStrategy", "client_app", "server_app"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that a kit can be made without Flower.

    A SuperLink or SuperNode, too, starts without torch: only the tasks that it hands out need it.
    """
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'slimfl.deployment' has no attribute {name!r}")
