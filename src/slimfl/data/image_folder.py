"""A folder of images as a dataset by name: `data.dataset = "folder"` with `data.dir`."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slimfl.data.dataset import Dataset
from slimfl.data.items import MOST_PIXELS
from slimfl.errors import RequestError
from slimfl.experiment.naming import construct

NAME = "folder"

#: Rows or columns that images may be resized to.
MOST_SIDE = 1000


def is_image_folder(path: Path) -> bool:
    """Whether a folder has the sub-folder for training images."""
    return (path / "train").is_dir()


def read_image_folder(folder: Path | None, options: Mapping[str, Any]) -> Dataset:
    """The images of `folder/train/CLASS/` and `folder/test/CLASS/`, as `data.options` says."""
    if folder is None:
        raise RequestError(
            'data.dataset = "folder" needs data.dir, the folder with train/CLASS/ and test/CLASS/'
        )

    def made(size: Any = None, train: str = "train", test: str = "test", grey: bool = False) -> Any:
        _check(size, train, test, grey)
        resized = (size[0], size[1]) if size is not None else None
        return Dataset.from_folder(folder, size=resized, train=train, test=test, grey=grey)

    dataset: Dataset = construct("dataset", NAME, made, options, key="data.options")
    pixels = math.prod(dataset.train.images.shape[1:])
    if pixels > MOST_PIXELS:
        raise RequestError(
            f"{folder} holds images of {pixels:,} values each; give data.options.size = [32, 32] "
            f"or another of at most {MOST_PIXELS:,} values"
        )
    return dataset


def _check(size: Any, train: Any, test: Any, grey: Any) -> None:
    """Refuse options that are no such thing; a server may have sent them to a device."""
    if size is not None and not (
        isinstance(size, Sequence)
        and len(size) == 2
        and all(type(side) is int and 1 <= side <= MOST_SIDE for side in size)
    ):
        raise RequestError(
            f"data.options.size must be rows and columns from 1 to {MOST_SIDE}, such as [32, 32]"
        )
    for key, name in (("train", train), ("test", test)):
        if not isinstance(name, str) or Path(name).name != name or name in ("", ".."):
            raise RequestError(f"data.options.{key} must be the name of a folder inside data.dir")
    if type(grey) is not bool:
        raise RequestError("data.options.grey must be true or false")
