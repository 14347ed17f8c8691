"""Datasets by name: published ones, folders, synthetic ones, and a user's own.

A published dataset is looked for in the given folder, the cache and the files of Debian's package,
and downloaded otherwise. No package is ever installed. Checksums are of the unpacked contents,
because packagers compress anew.
"""

import hashlib
import http.client
import inspect
import math
import os
import shutil
import tempfile
import tomllib
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.data.dataset import Asked, Dataset, Samples
from slimfl.data.formats import (
    FILES,
    MOST_BYTES,
    has_idx_files,
    is_cifar10,
    read_cifar10,
    read_idx_folder,
    serialise,
)
from slimfl.data.images import MOST_PIXELS, count_classes
from slimfl.errors import RequestError
from slimfl.experiment import OWN, DataSection
from slimfl.experiment.naming import NO_OPTIONS, as_options, construct, module_of, resolve
from slimfl.rng import generator

NAME = "folder"

#: Rows or columns that images may be resized to.
MOST_SIDE = 1000

#: Where Debian's packages of datasets put their files.
INSTALLED = Path("/usr/share/datasets")


@dataclass(frozen=True)
class Source:
    """A named dataset: the checksum of every file, its Debian package and its download address."""

    sha256: tuple[str, ...]
    url: str
    debian: str | None = None
    test_samples: int = 10_000


SOURCES = {
    name: Source(tuple(each.pop("sha256")), **each)
    for name, each in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()
}


def load(
    name: str,
    folder: Path | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    one_device: bool = False,
) -> Dataset:
    """The dataset of that name, or the files of the folder of that name.

    Args:
        name: As in `data.dataset`.
        folder: Where its files are; the usual places by default.
        options: As in `data.options`.
        one_device: Whether the files are one device's, which need not have every class.
    """
    found = _found(name, folder, options or {}, one_device=one_device)
    return replace(found, loaded_as=(name, None, None, as_options(options or {}), 1))


def _found(
    name: str, folder: Path | None, options: Mapping[str, Any], *, one_device: bool
) -> Dataset:
    path = expanded(name)
    if name == NAME or (is_folder(path) and is_image_folder(path)):
        where = path if name != NAME else expanded(folder) if folder else None
        return read_image_folder(where, options)
    if options and module_of(name) is None and name != OWN:
        raise RequestError(
            f"data.options is for a folder of images or for package.module:Name, and {name!r} "
            "takes none; leave it out"
        )
    if name == "synthetic":
        return synthetic()
    if name == OWN:
        raise RequestError(
            "this run was made with a dataset object; pass it again with "
            "slimfl.Data(dataset=...) or slimfl.resume(..., dataset=...)"
        )
    if name in SOURCES:
        return read_idx_folder(name, locate(name, folder), SOURCES[name].sha256)
    if is_folder(path):
        if is_cifar10(path):
            return read_cifar10(path)
        found = read_idx_folder(path.name, path, None)
        if not one_device:
            count_classes(found.train.labels, found.test.labels)
        return found
    if module_of(name) is not None:
        return _made(name, options)
    known = ", ".join([*SOURCES, "synthetic"])
    raise RequestError(
        f"there is no dataset {name!r}; choose {known}, folder (with data.dir), the path of a "
        "folder with idx files, CIFAR-10's binary files or images, or package.module:Name"
    )


def _made(name: str, options: Mapping[str, Any]) -> Dataset:
    """A dataset of the user's own: ours, or torch's, of which training and test are two objects."""
    maker = resolve("dataset", name, {}, lambda made: issubclass(made, Dataset) or _is_torchs(made))
    if isinstance(maker, type) and not issubclass(maker, Dataset):
        if "train" not in inspect.signature(maker).parameters:
            raise RequestError(
                f"dataset {name!r} is a torch dataset without the parameter train, which says "
                "whether training or test samples are wanted: add it, or name a function that "
                "returns both, (train, test)"
            )
        made: Any = tuple(
            construct("dataset", name, maker, {**options, "train": train}, key="data.options")
            for train in (True, False)
        )
    else:
        made = construct("dataset", name, maker, options, key="data.options")
    if isinstance(made, tuple) and len(made) == 2:
        try:
            made = Dataset.from_torch(*made, name=name)
        except RequestError:
            raise
        except Exception as error:  # whatever reading a sample does
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise RequestError(f"dataset {name!r} cannot be read ({reason})") from error
    if not isinstance(made, Dataset):
        raise RequestError(
            f"{name!r} returned a {type(made).__name__}, not a slimfl.data.Dataset or two torch "
            "datasets (train, test)"
        )
    return made


def _is_torchs(made: type) -> bool:
    """Whether a class is a map-style torch dataset; torch itself is not needed to see that."""
    return hasattr(made, "__getitem__") and hasattr(made, "__len__")


def load_section(section: DataSection) -> Dataset:
    """The dataset that a `data` section names, cut to the samples it asks for."""
    own = section.partition == "own"
    full = load(section.dataset, section.dir, section.options, one_device=own)
    train, test = (
        part.first(count).downscaled(section.downscale)
        for part, count in ((full.train, section.train_samples), (full.test, section.test_samples))
    )
    return replace(full, train=train, test=test, loaded_as=asked(section))


def asked(section: DataSection) -> Asked:
    """What a `data` section asks for, wherever the files are and whoever gets which sample."""
    options = as_options(section.options)
    return (
        f"{NAME}:{section.dir}" if section.dataset == NAME else section.dataset,
        section.train_samples,
        section.test_samples,
        options,
        section.downscale,
    )


def expanded(name: str | Path) -> Path:
    """A path with the home folder for `~`; as it is where there is none."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; there is none of a name that no folder can have."""
    try:
        return path.is_dir()
    except OSError:
        return False


def save(folder: Path, train: Samples, test: Samples) -> None:
    """Write grey images as the four idx files of a folder, which `load` and devices read."""
    arrays = [
        array
        for part in (train, test)
        for array in (part.images[..., 0], part.labels.astype(np.uint8))
    ]
    for name, array in zip(FILES, arrays, strict=True):
        (folder / name).write_bytes(serialise(array))


def locate(name: str, folder: Path | None = None, fetch: bool = True) -> Path:
    """The folder that holds the files of a named dataset.

    Args:
        name: One of `SOURCES`.
        folder: Where else to look; the environment's SLIMFL_DATA by default.
        fetch: Whether to download into the cache what is nowhere.
    """
    told = folder or os.environ.get("SLIMFL_DATA")
    if told:
        chosen = expanded(told)
        for candidate in (chosen / name, chosen):
            if has_idx_files(candidate):
                return candidate
        raise RequestError(
            f"{chosen} does not contain the files of {name} ({', '.join(FILES)}, plain or .gz); "
            "give another folder with --data-dir or SLIMFL_DATA"
        )
    for candidate in (cache(name), INSTALLED / name):
        if has_idx_files(candidate):
            return candidate
    if fetch and _download(name):
        return cache(name)
    raise RequestError(_four_ways(name))


def cache(name: str) -> Path:
    """Where files that were fetched are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slimfl" / name


def _four_ways(name: str) -> str:
    package = SOURCES[name].debian
    debian = f"`apt-get install {package}`" if package else "(no Debian package)"
    return (
        f"{name} was not found: give --data-dir or SLIMFL_DATA a folder with its four idx files, "
        f"or put them into the cache {cache(name)}, or install Debian's package {debian}, "
        f"or allow the download from {SOURCES[name].url}"
    )


def _download(name: str) -> bool:
    """Download the files of a named dataset; if they are the right ones, they become the cache.

    False if they are not, or if the cache cannot be written.
    """
    target = cache(name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
            staged = Path(temporary) / "files"
            staged.mkdir()
            for file in FILES:
                with urllib.request.urlopen(f"{SOURCES[name].url}{file}.gz", timeout=30) as reply:
                    (staged / f"{file}.gz").write_bytes(reply.read(MOST_BYTES))
            read_idx_folder(name, staged, SOURCES[name].sha256)
            shutil.rmtree(target, ignore_errors=True)
            staged.rename(target)
    except (OSError, http.client.HTTPException, RequestError):
        return False
    return True


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


def synthetic(
    train: int = 2000, test: int = 500, size: int = 12, classes: int = 10, seed: int = 0
) -> Dataset:
    """A small dataset for tests and first tries: smooth shapes in noise.

    Every class is a smooth random picture; a sample is that picture, shifted and noisy.

    Args:
        train: Number of training samples.
        test: Number of test samples.
        size: Rows, and columns, of an image.
        classes: How many.
        seed: Of the pictures and the noise.
    """
    random = generator(seed, "synthetic")
    coarse = random.normal(size=(classes, 4, 4))
    smooth = coarse.repeat(-(-size // 4), axis=1).repeat(-(-size // 4), axis=2)[:, :size, :size]

    def draw(count: int) -> Samples:
        labels = np.arange(count) % classes
        shifts = random.integers(-1, 2, size=(count, 2))
        pictures: NDArray[np.float64] = np.stack(
            [
                np.roll(smooth[label], shift, (0, 1))
                for label, shift in zip(labels, shifts, strict=True)
            ]
        )
        pictures = 128 + 50 * pictures + 20 * random.normal(size=pictures.shape)
        order = random.permutation(count)
        images = np.clip(pictures, 0, 255).astype(np.uint8)[order][..., np.newaxis]
        return Samples(np.ascontiguousarray(images), labels[order].astype(np.int64))

    drawn_train, drawn_test = draw(train), draw(test)
    digest = hashlib.sha256(drawn_train.images.tobytes() + drawn_test.images.tobytes())
    by_default = (train, test, size, classes, seed) == synthetic.__defaults__
    return Dataset(
        "synthetic",
        drawn_train,
        drawn_test,
        classes,
        digest.hexdigest(),
        loaded_as=("synthetic", None, None, NO_OPTIONS, 1) if by_default else None,
    )
