"""Decibels."""

import pytest

from slimfl.units import from_db, watt


@pytest.mark.parametrize(
    ("decibel", "ratio"), [(0, 1), (10, 10), (-20, 0.01), (3, 1.9953), (-3, 0.50119)]
)
def test_decibels_are_ten_times_the_logarithm(decibel, ratio):
    assert from_db(decibel) == pytest.approx(ratio, rel=1e-4)


@pytest.mark.parametrize(("dbm", "watts"), [(0, 1e-3), (30, 1), (23, 0.19953), (-40, 1e-7)])
def test_dbm_are_decibels_above_a_milliwatt(dbm, watts):
    assert watt(dbm) == pytest.approx(watts, rel=1e-4)
