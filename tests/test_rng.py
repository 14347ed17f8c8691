"""Randomness depends on (seed, purpose, round, device) and on nothing else."""

import itertools

import numpy as np
import pytest

from slimfl.rng import generator, generators

SEEDS, PURPOSES = (0, 1, 2**40), ("batches", "fading", "partition")
ROUNDS, DEVICES = (0, 1, 2, 1000), (0, 1, 2, 99)


def first_words(*arguments, count=4):
    return tuple(generator(*arguments).integers(2**64, size=count, dtype=np.uint64).tolist())


def test_same_arguments_give_the_same_numbers_in_any_order_of_execution():
    grid = list(itertools.product(SEEDS, PURPOSES, ROUNDS, DEVICES))
    forwards = {key: first_words(*key) for key in grid}
    np.random.seed(1)  # noqa: NPY002 - the global state must not matter
    np.random.default_rng(1).random(100)
    backwards = {key: first_words(*key) for key in reversed(grid)}
    assert forwards == backwards


def test_any_one_different_argument_gives_other_numbers():
    grid = list(itertools.product(SEEDS, PURPOSES, ROUNDS, DEVICES))
    words = [word for key in grid for word in first_words(*key)]
    assert len(set(words)) == len(words)


def test_round_and_device_do_not_stand_in_for_one_another():
    assert first_words(0, "fading", 3, 5) != first_words(0, "fading", 5, 3)
    assert first_words(3, "fading", 0, 5) != first_words(0, "fading", 3, 5)


def test_the_stream_is_the_same_in_every_process_and_version():
    """Runs are resumed by other processes; Python's own hash of a string would differ there."""
    assert generator(7, "batches", round=3, device=1).random() == pytest.approx(
        0.5523747122105015, abs=1e-15
    )


def test_each_call_starts_afresh():
    one, other = generator(5, "batches", 1, 1), generator(5, "batches", 1, 1)
    one.random(1000)
    assert other.random() == generator(5, "batches", 1, 1).random()


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**32, 2**64 + 5, 2**128 - 1, 2**200 + 3])
@pytest.mark.parametrize("round", [0, 1, 2**32 - 1, 2**32])
def test_generators_of_many_devices_are_those_of_each_of_them(seed, round):
    """Seeds and rounds of one machine word or more are spread over different numbers of words."""
    devices = [5, 0, 1, 99, 2**20, 2**32 - 1]
    drawn = [g.random(3).tolist() for g in generators(seed, "batches", round, devices)]
    assert drawn == [generator(seed, "batches", round, d).random(3).tolist() for d in devices]


@pytest.mark.parametrize("axis", ["seed", "round", "device"])
def test_neighbouring_streams_are_uncorrelated(axis):
    count = 200

    def draws(i):
        arguments = {"seed": 0, "round": 0, "device": 0} | {axis: i}
        return generator(purpose="fading", **arguments).normal(size=count)

    rows = np.stack([draws(i) for i in range(40)])
    correlation = np.corrcoef(rows)[np.triu_indices(40, k=1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(count)
    assert abs(rows.mean()) < 5 / np.sqrt(rows.size)
