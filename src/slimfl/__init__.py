"""SlimFL: federated learning over width-adjustable networks on unreliable radio links.

>>> import slimfl
>>> run = slimfl.run(data__dataset="synthetic", rounds=2, training__steps=2)
>>> sorted(run.final_accuracy)
['0.5x', '1.0x']
"""

from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names

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
else:
    # `slimfl --help` must not wait for torch
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.api": ["load", "resume", "run"],
            "slimfl.config": ["Experiment"],
            "slimfl.data": ["Dataset"],
            "slimfl.errors": ["RequestError", "RunError"],
            "slimfl.export.policy": ["WidthPolicy"],
            "slimfl.federation": ["Callback", "EarlyStopping", "Simulation"],
            "slimfl.methods": ["Method"],
            "slimfl.naming": ["trust"],
            "slimfl.nn": [
                "SlimBatchNorm2d",
                "SlimConv2d",
                "SlimGroupNorm",
                "SlimLinear",
                "ULMobileNet",
                "at_width",
                "slimmable",
            ],
            "slimfl.runs": ["Run", "Runs"],
            "slimfl.sweeps.sweep": ["sweep"],
        },
    )

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
