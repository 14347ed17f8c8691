"""Images scaled down, CIFAR-10 from its published binary files."""

import numpy as np
import pytest

from slimfl.data import load_section
from slimfl.data.dataset import Samples
from slimfl.data.formats import TEST, TRAIN
from slimfl.errors import RequestError
from slimfl.runs.sweeps import shared_dataset
from tests import asking


def test_downscaling_against_a_naive_loop():
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (5, 6, 9, 2), np.uint8)
    small = Samples(images, np.zeros(5, np.int64)).downscaled(3).images
    assert small.shape == (5, 2, 3, 2)
    for n, i, j, c in np.ndindex(*small.shape):
        square = images[n, 3 * i : 3 * i + 3, 3 * j : 3 * j + 3, c]
        assert small[n, i, j, c] == int(sum(map(int, square.ravel())) / 9 + 0.5)


def test_a_factor_that_does_not_divide_is_refused():
    with pytest.raises(RequestError, match="does not divide images of 12 x 12"):
        load_section(experiment(data__downscale=5).data)


def test_the_configuration_scales_what_is_trained():
    small = load_section(experiment(data__downscale=2, data__train_samples=50).data)
    assert small.train.images.shape == (50, 6, 6, 1)
    assert small.loaded_as != load_section(experiment(data__train_samples=50).data).loaded_as


def experiment(**keys):
    (one,) = asking.load(None, **({"data__dataset": "synthetic"} | keys))
    return one


def write_cifar10(folder, count=20, seed=0):
    random = np.random.default_rng(seed)
    kept = {}
    for name in (*TRAIN, TEST):
        labels = random.integers(0, 10, count, np.uint8)
        pixels = random.integers(0, 256, (count, 3, 32, 32), np.uint8)
        records = np.concatenate([labels[:, None], pixels.reshape(count, -1)], 1)
        (folder / name).write_bytes(records.tobytes())
        kept[name] = labels, pixels
    return kept


def test_cifar10_is_read_record_by_record(tmp_path):
    kept = write_cifar10(tmp_path)
    read = load_section(experiment(data__dataset=str(tmp_path)).data)
    assert read.train.images.shape == (100, 32, 32, 3)
    labels, pixels = kept[TRAIN[2]]
    assert read.train.labels[40:60].tolist() == labels.tolist()
    # the red value of row 5, column 7 of the third image of batch 3
    assert read.train.images[42, 5, 7, 0] == pixels[2, 0, 5, 7]
    assert read.test.images[3, 31, 0, 2] == kept[TEST][1][3, 2, 31, 0]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"short", "not a multiple of 3073"), (bytes([10]) + bytes(3072), "a label above 9")],
)
def test_what_is_not_cifar10_is_refused(tmp_path, content, words):
    write_cifar10(tmp_path)
    (tmp_path / TRAIN[0]).write_bytes(content)
    with pytest.raises(RequestError, match=words):
        load_section(experiment(data__dataset=str(tmp_path)).data)


def test_runs_of_a_sweep_get_the_images_that_they_ask_for():
    half = shared_dataset(experiment(data__downscale=2))
    assert half.train.images.shape[1:] == (6, 6, 1)
    assert half is shared_dataset(experiment(data__downscale=2, data__alpha=0.1))
    assert shared_dataset(experiment()).train.images.shape[1:] == (12, 12, 1)
