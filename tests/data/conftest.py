"""Small idx files on disk, a named dataset made of them, and the real Fashion-MNIST."""

import gzip
import hashlib
import struct
from types import SimpleNamespace

import numpy as np
import pytest

from slimfl.data import SOURCES, locate
from slimfl.data.sources import FILES, Source
from slimfl.errors import RequestError
from tests.outcomes import absent


def to_idx(array):
    """An array of bytes in the idx format, as Yann LeCun's page describes it."""
    array = np.asarray(array, np.uint8)
    return (
        bytes([0, 0, 8, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


@pytest.fixture(name="to_idx")
def to_idx_fixture():
    return to_idx


@pytest.fixture
def tiny():
    """Four arrays: 30 training and 12 test images of 5 x 4 pixels, 3 classes."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (42, 5, 4), dtype=np.uint8)
    labels = (np.arange(42) % 3).astype(np.uint8)
    return SimpleNamespace(
        arrays=(images[:30], labels[:30], images[30:], labels[30:]),
        train_images=images[:30],
        train_labels=labels[:30],
        test_images=images[30:],
        test_labels=labels[30:],
    )


@pytest.fixture
def write():
    """Write four arrays as idx files into a folder, gzipped or not."""

    def write(folder, arrays, packed=False):
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in zip(FILES, arrays, strict=True):
            raw = to_idx(array)
            target = folder / (f"{name}.gz" if packed else name)
            target.write_bytes(gzip.compress(raw) if packed else raw)
        return folder

    return write


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No data folder, an empty cache and no network."""
    monkeypatch.delenv("SLIMFL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def refuse(*_, **__):
        raise OSError("no network in tests")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    return tmp_path / "cache" / "slimfl"


@pytest.fixture
def named(monkeypatch, offline, tiny):
    """A dataset `tiny` that the library knows by name and checksum, and the folder of its cache."""
    source = Source(
        sha256=tuple(hashlib.sha256(to_idx(array)).hexdigest() for array in tiny.arrays),
        url="http://data.invalid/",
        debian="dataset-tiny",
    )
    monkeypatch.setitem(SOURCES, "tiny", source)
    return offline / "tiny"


@pytest.fixture(scope="session")
def fashion_mnist(request):
    """The folder of the real files; only a developer's machine may lack them."""
    try:
        return locate("fashion-mnist", fetch=False)
    except RequestError as error:
        absent(request.config, f"Fashion-MNIST is not on this machine: {error}")
