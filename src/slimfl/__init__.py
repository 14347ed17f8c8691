"""SlimFL: federated learning over width-adjustable networks on unreliable radio links.

>>> import slimfl
>>> data, work = slimfl.Data(dataset="synthetic"), slimfl.Training(steps=2)
>>> run = slimfl.Experiment(rounds=2, data=data, training=work).run()
>>> sorted(run.final_accuracy)
['0.5x', '1.0x']
"""

from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names

if TYPE_CHECKING:
    from slimfl.data import Dataset
    from slimfl.experiment import Data, Experiment, Federation, Model, Radio, Training
    from slimfl.experiment.naming import trust
    from slimfl.nn import slimmable
    from slimfl.runs.api import compare, load, resume
    from slimfl.runs.callbacks import Callback
    from slimfl.runs.run import Run
else:
    # `slimfl --help` must not wait for torch
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.runs.api": ["compare", "load", "resume"],
            "slimfl.experiment": [
                "Data",
                "Experiment",
                "Federation",
                "Model",
                "Radio",
                "Training",
            ],
            "slimfl.data": ["Dataset"],
            "slimfl.runs.callbacks": ["Callback"],
            "slimfl.experiment.naming": ["trust"],
            "slimfl.nn": ["slimmable"],
            "slimfl.runs.run": ["Run"],
        },
        ["data", "devices", "errors", "experiment", "methods", "nn", "radio", "round", "training"],
    )

__all__ = [
    "Callback",
    "Data",
    "Dataset",
    "Experiment",
    "Federation",
    "Model",
    "Radio",
    "Run",
    "Training",
    "compare",
    "load",
    "resume",
    "slimmable",
    "trust",
]
