"""What a device accepts from the server: models that it was configured for, work that it can do.

The server does not own the device. Its orders must not make a device import code, read other
folders than its own, or fill its memory.
"""

from collections.abc import Collection, Iterator
from typing import Any

import torch

from slimfl.data import SOURCES
from slimfl.errors import RequestError
from slimfl.experiment import Experiment, TrainingSection
from slimfl.experiment.naming import construct
from slimfl.nn import MODELS
from slimfl.training import local_steps

#: The largest integer in an order, apart from the seed, and the largest number of images.
MOST = 10_000_000

#: The largest number of widths.
MOST_WIDTHS = 64

#: Datasets that every machine finds by name.
NAMED = (*SOURCES, "synthetic")


def check_order(experiment: Experiment, models: Collection[str]) -> None:
    """Refuse an order that this device must not follow; the message is sent to the server."""
    name = experiment.model.name
    if name not in MODELS and name not in models:
        raise RequestError(
            f"this device does not accept model {name!r}; to allow it, add that name to models in "
            "its node config (MODELS in device.env)"
        )
    for key, value in _numbers(experiment.model_dump(exclude={"seed"})):
        if abs(value) > MOST:
            raise RequestError(f"this device does not accept {key} = {value}: it is above {MOST}")
    if len(experiment.model.widths) > MOST_WIDTHS:
        raise RequestError(f"this device does not accept more than {MOST_WIDTHS} widths")


def check_work(experiment: Experiment, samples: int) -> None:
    """Refuse an order to train on more images than a device can list in memory."""
    images = most_images(experiment.training, samples)
    if images > MOST:
        raise RequestError(
            f"this device does not train on {images} images in one round; lower training.steps or "
            f"training.epochs so that there are at most {MOST}"
        )


def most_images(training: TrainingSection, samples: int, effort: float = 1.0) -> int:
    """Number of images in a round of a device with these samples, if every batch is full."""
    return local_steps(training, samples, effort) * min(training.batch_size, samples)


def check_size(experiment: Experiment, channels: int, classes: int, parameters: int) -> None:
    """Refuse options that make a built-in network larger than the model sent with them.

    The network is first built without memory for its weights, so options alone cannot fill the
    memory.
    """
    model = experiment.model
    if model.name not in MODELS:
        return
    offered = {"in_channels": channels, "classes": classes, "widths": model.widths}
    with torch.device("meta"):
        network = construct(
            "model", model.name, MODELS[model.name], model.options, offered, key="model.options"
        )
    size = sum(one.numel() for one in network.parameters())
    if size != parameters:
        raise RequestError(
            f"model {model.name!r} has {size} parameters with these options and the server sent "
            f"{parameters}"
        )


def _numbers(tree: Any, key: str = "") -> Iterator[tuple[str, int]]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _numbers(value, f"{key}.{name}" if key else str(name))
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _numbers(value, key)
    elif isinstance(tree, int):
        yield key, tree
