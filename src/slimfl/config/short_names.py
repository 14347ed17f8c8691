"""Short names in Python for the most common keys: `alpha` for `data.alpha`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slimfl.errors import RequestError

#: The key of every short name; the command line's options have the same names.
SHORT_NAMES = {
    "algorithm": "training.algorithm",
    "alpha": "data.alpha",
    "batch_size": "training.batch_size",
    "channel": "radio.channel",
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


def full_keywords(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments with every short name replaced by its full one.

    >>> full_keywords({"alpha": 0.1, "rounds": 3, "radio__noise_dbm": -40})
    {'data__alpha': 0.1, 'rounds': 3, 'radio__noise_dbm': -40}
    """
    full: dict[str, Any] = {}
    for key, value in values.items():
        long = SHORT_NAMES[key].replace(".", "__") if key in SHORT_NAMES else key
        if long in full or (long != key and long in values):
            raise RequestError(f"{long.replace('__', '.')} is given twice; give it once")
        full[long] = value
    return full


def short_name(dotted: str) -> str:
    """The short name of a key, or the key itself.

    >>> short_name("data.alpha"), short_name("data.min_samples")
    ('alpha', 'data.min_samples')
    """
    return next((short for short, long in SHORT_NAMES.items() if long == dotted), dotted)
