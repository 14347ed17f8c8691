"""`[data]`, `[model]` and `[training]`: what the devices hold, and what they learn."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from slimfl.experiment.naming import module_of
from slimfl.experiment.sections.section import BelowOne, Count, Part, Positive, Section, at_least


class DataSection(Section):
    """What the devices hold."""

    dataset: Part = "fashion-mnist"
    """`fashion-mnist`, `mnist`, `synthetic`; `folder`, the images below `dir`; the path of a folder
    with four idx files, CIFAR-10's binary files or images; or `package.module:Name`, which makes a
    `slimfl.Dataset` or is a torch dataset; in Python also a `slimfl.Dataset` itself, which the run
    folder calls `own`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of a dataset of your own; of a folder of images, `size` (rows and columns
    to resize to), `grey`, and `train` and `test`, the names of the folders inside."""
    dir: Path | None = None
    """Where the files of a named dataset are; without it, the sources are tried in turn."""
    partition: Literal["dirichlet", "dirichlet-equal", "iid", "shards", "natural", "own"] = (
        "dirichlet"
    )
    """How the training samples are distributed; `natural`: as the data say, which name the holder
    of every sample (with fewer `federation.devices`, the first of them); `own`: every device of a
    deployment brings its own folder, and `dataset` only gives the server its test set and the
    normalisation."""
    alpha: Annotated[float, Field(gt=0, le=1e6), at_least(1e-6)] = 1.0
    """Dirichlet concentration; with smaller values, devices differ more."""
    min_samples: Count = 10
    """Minimum number of training samples per device."""
    shards_per_device: Count = 2
    """`shards` only: number of label-sorted shards per device."""
    train_samples: Count | None = None
    """Number of training samples to use; all when absent."""
    test_samples: Count | None = None
    """Number of test samples to use; all when absent."""
    downscale: Annotated[int, Field(ge=1, le=64)] = 1
    """Divide both sides of every image by this: 2 makes 14 x 14 of 28 x 28."""
    normalise: Literal["standard", "plain", "centred"] = "standard"
    """`standard`: zero mean, unit variance over the training set; `plain`: 0 to 1; `centred`: -1 to
    1, by the constants (x - 0.5) / 0.5. With `privacy.noise_multiplier` the default is `centred`,
    because `standard` takes its constants from the data of all devices."""


#: Maximum number of widths of a network: one byte per parameter stores its segment.
MOST_WIDTHS = 32


class ModelSection(Section):
    """The network and its widths."""

    name: Part = "ul-mobilenet"
    """`ul-mobilenet`; `us-mobilenet`, the same with batch normalisation; `resnet`, for colour
    images; `mlp`; `split-mix`, for the method of that name; or `package.module:Name`, a class or
    function that makes a network of slimmable layers; in Python also such a network itself, which
    the run folder calls `own`."""
    widths: tuple[float, ...] = (0.5, 1.0)
    """The nested widths, ascending, ending with 1.0."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the network's factory."""
    initialisation: Literal["he", "he-fan-out", "xavier", "torch"] = "he"
    """How the weights are initialised."""

    @field_validator("widths")
    @classmethod
    def _nested(cls, widths: tuple[float, ...]) -> tuple[float, ...]:
        if not widths or any(b <= a for a, b in itertools.pairwise((0.0, *widths))):
            raise ValueError("must be positive and ascending, for example [0.5, 1.0]")
        if widths[-1] != 1.0:
            raise ValueError("must end with 1.0, the full network")
        if widths[0] < 1e-3 or len(widths) > MOST_WIDTHS:
            raise ValueError(f"must be at most {MOST_WIDTHS} widths, each at least 0.001")
        return widths


#: Maximum number of samples per device and round, whose order is drawn at once.
MOST_SAMPLES = 20_000_000


class TrainingSection(Section):
    """How a device learns."""

    algorithm: str = "sustrain"
    """The local step of a device that trains several widths: `sustrain`, `slimtrain`, `ustrain`, or
    `package.module:Name`; methods of one width do not read it."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of a local step of your own."""
    order: Literal["sequential", "accumulate"] = "sequential"
    """SlimTrain and USTrain: one optimiser step per width, or one for the sum of all."""
    weights: tuple[Positive, ...] | None = None
    """Weight of every width's loss, narrowest first; 1/S each when absent. The paper's sum to 1."""
    sampled_widths: Count = 4
    """USTrain's sandwich rule with S > 2: how many widths take part in one step."""
    optimiser: Literal["adam", "sgd"] = "adam"
    """The local optimiser."""
    learning_rate: Positive = 1e-3
    """The learning rate of `constant`, and the start of `cosine`."""
    schedule: Literal["constant", "cosine", "theorem1"] = "constant"
    """How the learning rate changes over the rounds."""
    smoothness: Positive = 1.0
    """L of theorem 1's learning rate 2 / (mu t + 2 L - mu)."""
    strong_convexity: Positive = 1.0
    """mu of theorem 1's learning rate."""
    momentum: BelowOne = 0.9
    """SGD only."""
    nesterov: bool = False
    """SGD only."""
    weight_decay: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """This value times the weight is added to the gradient."""
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.999)
    """Adam only."""
    batch_size: Count = 16
    """Samples in one local step."""
    epochs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Local epochs per round (the paper: 1); give this or `steps`, not both."""
    steps: Count | None = None
    """Local steps per round instead of whole epochs; 100 when neither is given."""
    proximal_mu: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """FedProx: half of this times the squared distance to the round's model is added to the
    loss."""
    optimiser_state: Literal["kept", "fresh"] = "kept"
    """Whether a device keeps its moments between rounds."""

    @field_validator("algorithm")
    @classmethod
    def _known_step(cls, algorithm: str) -> str:
        if algorithm not in ("sustrain", "slimtrain", "ustrain") and module_of(algorithm) is None:
            raise ValueError(
                f"there is no local step {algorithm!r}; choose sustrain, slimtrain, ustrain or "
                "package.module:Name"
            )
        return algorithm

    @model_validator(mode="before")
    @classmethod
    def _local_work(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        epochs, steps = values.get("epochs"), values.get("steps")
        if epochs is not None and steps is not None:
            raise ValueError("give training.epochs or training.steps, not both")
        return values if epochs is not None or steps is not None else {**values, "steps": 100}

    @model_validator(mode="after")
    def _theorem1_is_a_rate(self) -> TrainingSection:
        if self.strong_convexity > self.smoothness:
            raise ValueError("strong_convexity must not exceed smoothness")
        if self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs a momentum above 0")
        if (self.steps or 0) * self.batch_size > MOST_SAMPLES:
            raise ValueError(
                f"training.steps times training.batch_size must be at most {MOST_SAMPLES:,}"
            )
        return self
