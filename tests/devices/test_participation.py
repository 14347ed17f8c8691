"""Who takes part in a round, as a function of the seed."""

import numpy as np

from slimfl.devices.participation import cohort
from slimfl.experiment import FederationSection


def test_all_devices_by_default():
    who = cohort(FederationSection(devices=7), seed=0, round=1)
    assert who.active == list(range(7))
    assert who.dropped_out == []


def test_a_share_is_drawn_without_repetition_and_anew_each_round():
    section = FederationSection(devices=20, participation=0.25)
    cohorts = [cohort(section, 0, r).active for r in range(1, 401)]
    assert all(len(set(c)) == 5 and set(c) <= set(range(20)) for c in cohorts)
    counts = np.bincount(np.concatenate(cohorts), minlength=20)
    assert abs(counts - 100).max() < 5 * np.sqrt(400 * 0.25 * 0.75)


def test_dropouts_are_a_share_of_those_asked():
    section = FederationSection(devices=10, dropout=0.3)
    silent = sum(len(cohort(section, 3, r).dropped_out) for r in range(1, 1001))
    assert abs(silent - 3000) < 5 * np.sqrt(10_000 * 0.3 * 0.7)
    who = cohort(section, 3, 1)
    assert sorted(who.active + who.dropped_out) == list(range(10))


def test_somebody_is_always_asked():
    assert len(cohort(FederationSection(devices=3, participation=0.01), 0, 1).active) == 1


def test_is_a_function_of_seed_and_round():
    section = FederationSection(devices=50, participation=0.5, dropout=0.5)
    assert cohort(section, 1, 9) == cohort(section, 1, 9)
    assert cohort(section, 1, 9) != cohort(section, 1, 10)
    assert cohort(section, 1, 9) != cohort(section, 2, 9)
