"""Short names for the most common keys, in Python and on the command line: `alpha`, `--alpha`."""

from __future__ import annotations

#: The key of every short name.
SHORT_NAMES = {
    "algorithm": "training.algorithm",
    "alpha": "data.alpha",
    "batch_size": "training.batch_size",
    "channel": "radio.channel",
    "data_dir": "data.dir",
    "dataset": "data.dataset",
    "devices": "federation.devices",
    "epochs": "training.epochs",
    "learning_rate": "training.learning_rate",
    "noise_dbm": "radio.noise_dbm",
    "participation": "federation.participation",
    "partition": "data.partition",
    "split": "radio.split",
    "steps": "training.steps",
    "widths": "model.widths",
}


def short_name(dotted: str) -> str:
    """The short name of a key, or the key itself.

    >>> short_name("data.alpha"), short_name("data.min_samples")
    ('alpha', 'data.min_samples')
    """
    return next((short for short, long in SHORT_NAMES.items() if long == dotted), dotted)
