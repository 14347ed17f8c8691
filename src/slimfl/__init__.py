"""SlimFL: federated learning over width-adjustable networks on unreliable radio links.

>>> import slimfl
>>> run = slimfl.run(data__dataset="synthetic", rounds=2, training__steps=2)
>>> sorted(run.final_accuracy)
['0.5x', '1.0x']
"""

from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names

if TYPE_CHECKING:
    from slimfl.data import Dataset
    from slimfl.errors import RequestError, RunError
    from slimfl.experiment import Experiment
    from slimfl.experiment.naming import trust
    from slimfl.export.policy import WidthPolicy
    from slimfl.methods import Method
    from slimfl.nn import (
        SlimBatchNorm2d,
        SlimConv2d,
        SlimGroupNorm,
        SlimLinear,
        ULMobileNet,
        at_width,
        slimmable,
    )
    from slimfl.round import Callback, EarlyStopping, Simulation
    from slimfl.runs.api import load, resume, run
    from slimfl.runs.run import Run, Runs
    from slimfl.runs.sweeps.sweep import sweep
else:
    # `slimfl --help` must not wait for torch
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.runs.api": ["load", "resume", "run"],
            "slimfl.experiment": ["Experiment"],
            "slimfl.data": ["Dataset"],
            "slimfl.errors": ["RequestError", "RunError"],
            "slimfl.export.policy": ["WidthPolicy"],
            "slimfl.round": ["Callback", "EarlyStopping", "Simulation"],
            "slimfl.methods": ["Method"],
            "slimfl.experiment.naming": ["trust"],
            "slimfl.nn": [
                "SlimBatchNorm2d",
                "SlimConv2d",
                "SlimGroupNorm",
                "SlimLinear",
                "ULMobileNet",
                "at_width",
                "slimmable",
            ],
            "slimfl.runs.run": ["Run", "Runs"],
            "slimfl.runs.sweeps.sweep": ["sweep"],
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
