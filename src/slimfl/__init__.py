"""SlimFL: federated learning over width-adjustable networks on unreliable radio links.

>>> import slimfl
>>> run = slimfl.run(data__dataset="synthetic", rounds=2, training__steps=2)
>>> sorted(run.final_accuracy)
['0.5x', '1.0x']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slimfl.api import load, resume, run
    from slimfl.config import Experiment
    from slimfl.data import Dataset
    from slimfl.errors import RequestError, RunError
    from slimfl.export.policy import WidthPolicy
    from slimfl.federation import Callback, EarlyStopping, Simulation
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
    from slimfl.runs import Run, Runs
    from slimfl.sweeps.sweep import sweep

_HOMES = {
    "Callback": "slimfl.federation",
    "Dataset": "slimfl.data",
    "EarlyStopping": "slimfl.federation",
    "Experiment": "slimfl.config",
    "Method": "slimfl.methods",
    "RequestError": "slimfl.errors",
    "Run": "slimfl.runs",
    "Runs": "slimfl.runs",
    "RunError": "slimfl.errors",
    "Simulation": "slimfl.federation",
    "SlimBatchNorm2d": "slimfl.nn",
    "SlimConv2d": "slimfl.nn",
    "SlimGroupNorm": "slimfl.nn",
    "SlimLinear": "slimfl.nn",
    "ULMobileNet": "slimfl.nn",
    "WidthPolicy": "slimfl.export.policy",
    "at_width": "slimfl.nn",
    "load": "slimfl.api",
    "resume": "slimfl.api",
    "run": "slimfl.api",
    "slimmable": "slimfl.nn",
    "sweep": "slimfl.sweeps.sweep",
    "trust": "slimfl.naming",
}

__all__ = [
    "Callback",
    "Dataset",
    "EarlyStopping",
    "Experiment",
    "Method",
    "RequestError",
    "Run",
    "RunError",
    "Runs",
    "Simulation",
    "SlimBatchNorm2d",
    "SlimConv2d",
    "SlimGroupNorm",
    "SlimLinear",
    "ULMobileNet",
    "WidthPolicy",
    "at_width",
    "load",
    "resume",
    "run",
    "slimmable",
    "sweep",
    "trust",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `slimfl --help` must not wait for torch."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'slimfl' has no attribute {name!r}")
