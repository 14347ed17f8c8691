"""Secret noise: normal, from the operating system alone."""

import os
from statistics import NormalDist

import numpy as np
from scipy.stats import kstest

from slimfl.round import privacy as secret_noise
from slimfl.round.privacy import gaussian_of, secret_gaussian

#: A sound sample fails a test at this level once in a million runs.
LEVEL = 1e-6


def test_it_is_normal_in_the_middle_and_in_the_tails():
    values = secret_gaussian(2_000_000)
    assert kstest(values[:200_000], "norm").pvalue > LEVEL
    for bound in (1.0, 3.0, 4.0):
        expected = 2 * NormalDist().cdf(-bound)
        found = (np.abs(values) > bound).mean()
        assert abs(found - expected) < 5 * np.sqrt(expected / len(values))
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 5 / np.sqrt(len(values))
    assert np.isfinite(values).all()


def test_every_value_comes_from_64_fresh_bits_of_the_system(monkeypatch):
    given = []

    def recorded(count, draw=os.urandom):
        given.append(draw(count))
        return given[-1]

    monkeypatch.setattr(os, "urandom", recorded)
    monkeypatch.setattr(secret_noise, "CHUNK", 7)
    values = secret_gaussian(20)
    raw = b"".join(given)
    assert len(raw) == 8 * 20
    for k, value in enumerate(values):
        bits = int.from_bytes(raw[8 * k : 8 * k + 8], "little")
        distance = -NormalDist().inv_cdf(((bits >> 12) + 0.5) / 2**53)
        expected = -distance if bits & 1 else distance
        assert abs(value - expected) < 1e-9


def test_no_bits_give_an_infinity():
    extremes = np.array([0, 1, 2**64 - 1, 2**64 - 2], np.uint64)
    values = gaussian_of(extremes)
    assert np.isfinite(values).all()
    assert values[0] > 8
    assert values[1] < -8
    assert np.abs(values[2:]).max() < 1e-15
