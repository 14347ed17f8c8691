"""SlimFL: federated learning over width-adjustable networks on unreliable radio links.

>>> import slimfl
>>> data, work = slimfl.Data(dataset="synthetic"), slimfl.Training(steps=2)
>>> run = slimfl.Experiment(rounds=2, data=data, training=work).run()
>>> sorted(run.final_accuracy)
['0.5x', '1.0x']
"""

from typing import TYPE_CHECKING

from slimfl.lazy import public_names

if TYPE_CHECKING:
    from slimfl.data import Dataset as Dataset
    from slimfl.experiment import Data as Data
    from slimfl.experiment import Experiment as Experiment
    from slimfl.experiment import Federation as Federation
    from slimfl.experiment import Model as Model
    from slimfl.experiment import Radio as Radio
    from slimfl.experiment import Training as Training
    from slimfl.experiment.naming import trust as trust
    from slimfl.nn import slimmable as slimmable
    from slimfl.runs.api import compare as compare
    from slimfl.runs.api import load as load
    from slimfl.runs.api import resume as resume
    from slimfl.runs.callbacks import Callback as Callback
    from slimfl.runs.run import Run as Run
else:
    # `slimfl --help` must not wait for torch
    packages = ("data", "devices", "errors", "experiment", "methods", "nn", "radio", "round",
                "training")  # fmt: skip
    __getattr__, __dir__, __all__ = public_names(__name__, __file__, packages)
