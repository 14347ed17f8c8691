"""Normalisation and views of samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimfl.data import Dataset, Samples


def dataset(train, test=None):
    test = train if test is None else test
    labels = np.zeros(len(train), np.int64)
    return Dataset(
        "made", Samples(train, labels), Samples(test, np.zeros(len(test), np.int64)), 1, ""
    )


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**31))
def test_standard_normalisation_is_numpys_mean_and_deviation_per_channel(channels, count, seed):
    random = np.random.default_rng(seed)
    low = random.integers(0, 200, channels)
    images = random.integers(low, low + 50, (count, 7, 5, channels), dtype=np.uint8)
    mean, deviation = dataset(images).normalisation("standard")
    unit = images.astype(np.float64) / 255
    np.testing.assert_allclose(mean, unit.mean(axis=(0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(deviation, unit.std(axis=(0, 1, 2)), rtol=1e-5, atol=2e-6)
    assert mean.dtype == deviation.dtype == np.float32


def test_every_one_of_many_samples_counts():
    images = np.zeros((2501, 2, 2, 1), np.uint8)
    images[:1000], images[1000:2000], images[2500:] = 10, 80, 255
    mean, deviation = dataset(images).normalisation("standard")
    assert mean[0] == pytest.approx(images.mean() / 255)
    assert deviation[0] == pytest.approx(images.std() / 255)


def test_normalisation_is_learnt_from_the_training_samples_alone():
    train, test = np.full((2, 3, 3, 1), 10, np.uint8), np.full((2, 3, 3, 1), 250, np.uint8)
    mean, _ = dataset(train, test).normalisation("standard")
    assert mean[0] == pytest.approx(10 / 255)


def test_a_channel_without_variation_does_not_divide_by_zero():
    _, deviation = dataset(np.full((2, 3, 3, 2), 10, np.uint8)).normalisation("standard")
    assert (deviation > 0).all()


def test_plain_normalisation_changes_nothing():
    mean, deviation = dataset(np.full((2, 3, 3, 2), 10, np.uint8)).normalisation("plain")
    assert mean.tolist() == [0, 0]
    assert deviation.tolist() == [1, 1]


def test_first_samples_are_a_view_of_both_images_and_labels():
    samples = Samples(np.arange(20, dtype=np.uint8).reshape(5, 2, 2, 1), np.arange(5))
    assert samples.first(None) is samples
    first = samples.first(3)
    assert len(first) == 3
    assert first.labels.tolist() == [0, 1, 2]
    assert np.shares_memory(first.images, samples.images)
    assert np.array_equal(first.images, samples.images[:3])
    assert len(samples.first(99)) == 5
