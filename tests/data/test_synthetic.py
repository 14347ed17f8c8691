"""The synthetic dataset: always the same, balanced, and learnable."""

import numpy as np
import pytest

from slimfl.data import load, synthetic


def test_it_is_the_same_every_time_and_another_with_another_seed():
    one, same, other = synthetic(), load("synthetic"), synthetic(seed=1)
    assert np.array_equal(one.train.images, same.train.images)
    assert np.array_equal(one.test.labels, same.test.labels)
    assert one.checksum == same.checksum
    assert one.checksum != other.checksum
    assert not np.array_equal(one.train.images, other.train.images)


@pytest.mark.parametrize("size", [4, 9, 12])
def test_sizes_are_as_asked_for(size):
    made = synthetic(train=50, test=20, size=size, classes=5)
    assert made.train.images.shape == (50, size, size, 1)
    assert made.test.images.shape == (20, size, size, 1)
    assert made.train.images.dtype == np.uint8
    assert np.bincount(made.train.labels).tolist() == [10] * 5
    assert made.classes == 5


def test_test_samples_are_not_training_samples():
    made = synthetic()
    seen = {image.tobytes() for image in made.train.images}
    assert not any(image.tobytes() in seen for image in made.test.images)


def test_a_simple_learner_learns_it_and_wrong_labels_teach_nothing():
    """Nearest class mean: far above the 10% of guessing, and below that with shuffled labels."""
    made = synthetic()

    def accuracy(labels):
        train = made.train.images.reshape(len(made.train), -1).astype(float)
        test = made.test.images.reshape(len(made.test), -1).astype(float)
        means = np.stack([train[labels == c].mean(axis=0) for c in range(10)])
        guesses = ((test[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
        return np.mean(guesses == made.test.labels)

    assert accuracy(made.train.labels) > 0.8
    assert accuracy(np.random.default_rng(0).permutation(made.train.labels)) < 0.35


def test_the_classes_stand_in_no_order():
    labels = synthetic().train.labels
    assert not np.array_equal(labels, np.arange(len(labels)) % 10)
    assert np.bincount(labels[:200], minlength=10).min() > 5
