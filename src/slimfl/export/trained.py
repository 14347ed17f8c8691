"""The trained model of a run folder, and the sub-networks to deploy.

A folder may come from a stranger: its names are resolved by `slimfl.experiment.naming`, weights are
safetensors, and neither its method nor its channel is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from slimfl.data import Dataset, load_section
from slimfl.errors import RequestError
from slimfl.experiment import Experiment
from slimfl.nn import flatten, load_flat, network_of, standalone
from slimfl.round import RunFolder
from slimfl.runs import own
from slimfl.runs.storage.checkpoint import check_made_with, does_not_fit
from slimfl.runs.storage.run_folder import resume_command

#: Images per forward pass in evaluation.
BATCH = 200

#: The name of a network's input.
INPUT = "images"


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with the weights of a run's newest checkpoint, and its context."""

    experiment: Experiment
    dataset: Dataset
    network: nn.Module
    round: int
    """The round of these weights."""
    accuracy: dict[str, float]
    """Accuracy that the run recorded for that round, by width; empty if it was not evaluated."""
    widths: tuple[float, ...]
    """Those that the run tested, which its method trains; all of the model if it tested none."""

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, rows and columns."""
        rows, columns, channels = self.dataset.train.images.shape[1:]
        return channels, rows, columns

    @property
    def model_name(self) -> str:
        """A safe name for files and documents: letters, digits, dots and dashes."""
        known = self.experiment.model.name.rpartition(":")[2]
        name = type(self.network).__name__ if known == "own" else known
        return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:60] or "model"

    def chosen(self, widths: tuple[float, ...] | None) -> tuple[float, ...]:
        """The requested widths or all, narrowest first; refuses others than the run's."""
        wrong = [width for width in widths or () if width not in self.widths]
        if wrong:
            untrained = all(width in self.experiment.model.widths for width in wrong)
            raise RequestError(
                f"this run {'trained' if untrained else 'has'} no width "
                f"{', '.join(map(str, wrong))}; choose from {', '.join(map(str, self.widths))}"
            )
        return tuple(sorted(set(widths))) if widths else self.widths


def load_trained(
    path: Path,
    *,
    network: nn.Module | None = None,
    dataset: Dataset | None = None,
    data_dir: Path | None = None,
) -> Trained:
    """Read a run folder; its author's own network or data must be given again.

    Args:
        path: The run folder.
        network: The network, if the run was made with an object.
        dataset: The data, if the run was made with an object.
        data_dir: Where the files of the run's dataset are.
    """
    folder = RunFolder.open(path)
    experiment, provenance = folder.experiment(), folder.provenance()
    _check_own(provenance, network, dataset)
    lines = folder.metrics()
    checkpoint = folder.checkpoint(at_most=len(lines))
    if checkpoint is None:
        raise RequestError(
            f"{path} has no intact checkpoint and so no model yet; "
            f"`{resume_command(path)}` trains one"
        )
    section = experiment.data
    if data_dir is not None:
        section = section.model_copy(update={"dir": data_dir})
    dataset = dataset or load_section(section)
    if provenance.get("data_sha256", dataset.checksum) != dataset.checksum:
        raise RequestError(
            f"this run was made with different {dataset.name} data; give the folder with the "
            "original files with --data-dir"
        )
    network = network or network_of(experiment, dataset.train.images.shape[-1], dataset.classes)
    check_made_with(checkpoint, experiment, dataset.checksum)
    weights = checkpoint.tensors.get("global", np.zeros(0))
    if weights.shape != flatten(network).shape or weights.dtype != np.float32:
        raise does_not_fit(checkpoint)
    if not np.isfinite(weights).all():
        raise RequestError(
            f"the model of round {checkpoint.round} has weights that are not finite, because its "
            "training diverged; there is nothing to export"
        )
    load_flat(network, weights)
    recorded = lines[checkpoint.round - 1].accuracy if checkpoint.round else {}
    # a method tests the widths that it trains; a stranger's method is not asked
    tested = {width for line in lines for width in line.accuracy}
    widths = tuple(w for w in experiment.model.widths if f"{w}x" in tested or not tested)
    return Trained(experiment, dataset, network.eval(), checkpoint.round, dict(recorded), widths)


def _check_own(
    provenance: dict[str, Any], network: nn.Module | None, dataset: Dataset | None
) -> None:
    """Refuse a run if its author's own objects are missing or differ."""
    given: own.Given = {}
    if network is not None:
        given["network"] = own.of_network(network, flatten(network))
    if dataset is not None:
        given["dataset"] = own.of_dataset(dataset)
    recorded = own.recorded(provenance) or {}
    made_with = {kind: recorded[kind] for kind in ("network", "dataset") if kind in recorded}
    for kind in made_with.keys() - given.keys():
        raise RequestError(
            f"this run was made with a {kind} object ({made_with[kind].get('name', 'unnamed')}), "
            "which its folder cannot store; pass it in Python: "
            f"slimfl.export.exporting.export(path, out, {kind}=...)"
        )
    own.check({"own": made_with}, given)


class Deployable(nn.Module):
    """Raw bytes in, logits out: (pixels / 255 - mean) / deviation is part of the graph."""

    scale: Tensor
    shift: Tensor

    def __init__(
        self, network: nn.Module, mean: NDArray[np.float32], deviation: NDArray[np.float32]
    ) -> None:
        super().__init__()
        self.network = network
        # one multiplication and one subtraction, rounded as in training
        self.register_buffer("scale", _per_channel(1 / (255 * deviation)), persistent=False)
        self.register_buffer("shift", _per_channel(mean / deviation), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """The logits of images [sample, channel, row, column] as unsigned bytes."""
        logits: Tensor = self.network(images.to(torch.float32) * self.scale - self.shift)
        return logits


def _per_channel(values: NDArray[np.floating]) -> Tensor:
    return torch.from_numpy(values.astype(np.float32)).reshape(-1, 1, 1)


def deployable(trained: Trained, width: float) -> Deployable:
    """The deployable network of a width."""
    mean, deviation = trained.dataset.normalisation(trained.experiment.data.normalise)
    made = Deployable(standalone(trained.network, width), mean, deviation)
    return made.eval().requires_grad_(False)


def channels_first(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images [sample, row, column, channel] as networks take them."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


@torch.no_grad()
def torch_logits(network: nn.Module, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The logits of images [sample, channel, row, column], in batches."""
    parts = [
        network(torch.from_numpy(images[start : start + BATCH])).numpy()
        for start in range(0, len(images), BATCH)
    ]
    return np.concatenate(parts)


def accuracy(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The share of images whose largest logit is that of their label."""
    return int((logits.argmax(1) == labels).sum()) / len(labels)
