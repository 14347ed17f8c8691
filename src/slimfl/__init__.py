"""SlimFL: federated learning over width-adjustable networks on unreliable radio links.

>>> import slimfl
>>> run = slimfl.run(data__dataset="synthetic", rounds=2, training__steps=2)
>>> sorted(run.final_accuracy)
['0.5x', '1.0x']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slimfl.api import Run, resume, run
    from slimfl.config import Experiment
    from slimfl.errors import RequestError, RunError
    from slimfl.federation import Callback, Simulation
    from slimfl.methods import Method
    from slimfl.naming import trust
    from slimfl.nn import (
        SlimBatchNorm2d,
        SlimConv2d,
        SlimGroupNorm,
        SlimLinear,
        ULMobileNet,
        at_width,
        slimmable,
    )

_HOMES = {
    "Callback": "slimfl.federation",
    "Experiment": "slimfl.config",
    "Method": "slimfl.federation",
    "RequestError": "slimfl.errors",
    "Run": "slimfl.api",
    "RunError": "slimfl.errors",
    "Simulation": "slimfl.federation",
    "SlimBatchNorm2d": "slimfl.nn",
    "SlimConv2d": "slimfl.nn",
    "SlimGroupNorm": "slimfl.nn",
    "SlimLinear": "slimfl.nn",
    "ULMobileNet": "slimfl.nn",
    "at_width": "slimfl.nn",
    "resume": "slimfl.api",
    "run": "slimfl.api",
    "slimmable": "slimfl.nn",
    "trust": "slimfl.naming",
}

__all__ = [
    "Callback",
    "Experiment",
    "Method",
    "RequestError",
    "Run",
    "RunError",
    "Simulation",
    "SlimBatchNorm2d",
    "SlimConv2d",
    "SlimGroupNorm",
    "SlimLinear",
    "ULMobileNet",
    "at_width",
    "resume",
    "run",
    "slimmable",
    "trust",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `slimfl --help` must not wait for torch."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'slimfl' has no attribute {name!r}")
