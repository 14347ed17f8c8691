"""`[data]`: what the devices hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from slimfl.experiment.sections.section import Count, Part, Section, at_least


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
