"""Where the idx files of a dataset come from, and how we know that they are the right ones.

A named dataset is looked for in the given folder, the cache and the files of Debian's package, and
downloaded otherwise. No package is ever installed. Checksums are of the unpacked contents, because
packagers compress anew.
"""

import hashlib
import http.client
import inspect
import math
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from slimfl.data.cifar10 import is_cifar10, read_cifar10
from slimfl.data.dataset import Asked, Dataset, Samples
from slimfl.data.downscale import downscaled
from slimfl.data.idx import MOST_BYTES, parse, read_bytes, serialise
from slimfl.data.image_folder import NAME, is_image_folder, read_image_folder
from slimfl.data.items import MOST_PIXELS
from slimfl.data.pixels import count_classes
from slimfl.data.synthetic import synthetic
from slimfl.errors import RequestError
from slimfl.experiment import OWN, DataSection
from slimfl.experiment.naming import NO_OPTIONS, as_options, construct, module_of, resolve

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)

#: Where Debian's packages of datasets put their files.
INSTALLED = Path("/usr/share/datasets")


@dataclass(frozen=True)
class Source:
    """A named dataset: the checksum of every file, its Debian package and its download address."""

    sha256: tuple[str, str, str, str]
    url: str
    debian: str | None = None


SOURCES = {
    "fashion-mnist": Source(
        sha256=(
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        debian="dataset-fashion-mnist",
    ),
    "mnist": Source(
        sha256=(
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        url="https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
}


def load(
    name: str,
    folder: Path | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    one_device: bool = False,
) -> Dataset:
    """The dataset of that name, or the files of the folder of that name.

    Those of `one_device` need not have samples of every class.
    """
    path = expanded(name)
    if name == NAME or (is_folder(path) and is_image_folder(path)):
        where = path if name != NAME else expanded(folder) if folder else None
        found = read_image_folder(where, options or {})
        return replace(found, loaded_as=(name, None, None, as_options(options or {}), 1))
    if options and module_of(name) is None and name != OWN:
        raise RequestError(
            f"data.options is for a folder of images or for package.module:Name, and {name!r} "
            "takes none; leave it out"
        )
    if name == "synthetic":
        return synthetic()
    if name == OWN:
        raise RequestError(
            "this run was made with a dataset object; pass it again with slimfl.run(..., "
            "dataset=...) or slimfl.resume(..., dataset=...)"
        )
    if name in SOURCES:
        found = _read(name, locate(name, folder), SOURCES[name].sha256)
        return replace(found, loaded_as=(name, None, None, NO_OPTIONS, 1))
    if is_folder(path):
        if is_cifar10(path):
            return replace(read_cifar10(path), loaded_as=(name, None, None, NO_OPTIONS, 1))
        found = _read(path.name, path, None)
        if not one_device:
            count_classes(found.train.labels, found.test.labels)
        return replace(found, loaded_as=(name, None, None, NO_OPTIONS, 1))
    if module_of(name) is not None:
        return _made(name, options or {})
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
    return replace(made, loaded_as=(name, None, None, as_options(options), 1))


def _is_torchs(made: type) -> bool:
    """Whether a class is a map-style torch dataset; torch itself is not needed to see that."""
    return hasattr(made, "__getitem__") and hasattr(made, "__len__")


def load_section(section: DataSection) -> Dataset:
    """The dataset that a `data` section names, cut to the samples it asks for."""
    own = section.partition == "own"
    full = load(section.dataset, section.dir, section.options, one_device=own)
    train, test = (
        downscaled(part.first(count), section.downscale)
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
    """The folder that holds the files of a named dataset, fetched into the cache if need be."""
    told = folder or os.environ.get("SLIMFL_DATA")
    if told:
        chosen = expanded(told)
        for candidate in (chosen / name, chosen):
            if _complete(candidate):
                return candidate
        raise RequestError(
            f"{chosen} does not contain the files of {name} ({', '.join(FILES)}, plain or .gz); "
            "give another folder with --data-dir or SLIMFL_DATA"
        )
    for candidate in (cache(name), INSTALLED / name):
        if _complete(candidate):
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


def _file(folder: Path, name: str) -> Path | None:
    try:
        return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
    except OSError:  # a name that no file can have
        return None


def _complete(folder: Path) -> bool:
    return all(_file(folder, name) for name in FILES)


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
            _read(name, staged, SOURCES[name].sha256)
            shutil.rmtree(target, ignore_errors=True)
            staged.rename(target)
    except (OSError, http.client.HTTPException, RequestError):
        return False
    return True


def _read(name: str, folder: Path, sha256: tuple[str, ...] | None) -> Dataset:
    arrays, digest = [], hashlib.sha256()
    for position, file in enumerate(FILES):
        path = _file(folder, file)
        if path is None:
            raise RequestError(f"{folder} has no {file} (plain or .gz); add it")
        raw = read_bytes(path)
        found = hashlib.sha256(raw).hexdigest()
        if sha256 is not None and found != sha256[position]:
            raise RequestError(f"{path} has the wrong checksum for {name}; replace it")
        digest.update(found.encode())
        arrays.append(parse(raw, path))
    train = _samples(arrays[0], arrays[1], folder)
    test = _samples(arrays[2], arrays[3], folder)
    if train.images.shape[1:] != test.images.shape[1:]:
        raise RequestError(f"the training and test images of {folder} differ in size; use one size")
    classes = int(max(train.labels.max(), test.labels.max())) + 1
    return Dataset(name, train, test, classes, digest.hexdigest())


def _samples(images: np.ndarray, labels: np.ndarray, folder: Path) -> Samples:
    if images.ndim not in (3, 4) or labels.ndim != 1 or len(images) != len(labels):
        raise RequestError(
            f"{folder} has images of shape {images.shape} and labels of shape {labels.shape}; give "
            "one label per image"
        )
    if not len(labels):
        raise RequestError(f"{folder} has no samples; use another folder")
    if images.ndim == 3:
        images = images[..., np.newaxis]
    pixels = math.prod(images.shape[1:])
    if not 1 <= pixels <= MOST_PIXELS:
        raise RequestError(
            f"{folder} has images of shape {images.shape[1:]}; rows, columns and channels must be "
            f"at least 1, and an image may have at most {MOST_PIXELS:,} values"
        )
    return Samples(images, labels.astype(np.int64))
