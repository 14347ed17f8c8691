"""Which width a device trains: as the policy says, and never wider than it can."""

import numpy as np
import pytest

from slimfl.devices import Population, widest_widths
from slimfl.devices.participation import cohort
from slimfl.errors import RequestError
from slimfl.experiment import FederationSection, PopulationSection

WIDTHS = (0.25, 0.5, 1.0)


def devices(*able):
    count = len(able)
    return Population(
        np.arange(count), np.ones(count, np.int64), np.array(able), np.zeros(count), np.ones(count)
    )


def widest(population, *, round=1, seed=0, charge=None, **section):
    section = PopulationSection(**section)
    found = widest_widths(section, population, WIDTHS, seed=seed, round=round, charge=charge)
    return found.tolist()


def test_capability():
    assert widest(devices(0, 1, 2)) == [0, 1, 2]


def test_fixed_is_a_ceiling():
    assert widest(devices(0, 1, 2), width="fixed", fixed_width=0.5) == [0, 1, 1]
    with pytest.raises(RequestError, match=r"no width 0.75"):
        widest(devices(0), width="fixed", fixed_width=0.75)


def test_growing_adds_a_width_at_a_time():
    policy = {"width": "growing", "grow_every": 5}
    rounds = {round: widest(devices(0, 1, 2), round=round, **policy) for round in (1, 5, 6, 11, 99)}
    assert rounds == {1: [0, 0, 0], 5: [0, 0, 0], 6: [0, 1, 1], 11: [0, 1, 2], 99: [0, 1, 2]}


def test_random_is_uniform_within_what_a_device_can():
    population = devices(0, 1, 2)
    draws = np.array([widest(population, round=r, width="random") for r in range(1, 3001)])
    for device, able in enumerate((0, 1, 2)):
        counts = np.bincount(draws[:, device], minlength=3)
        expected = np.where(np.arange(3) <= able, 3000 / (able + 1), 0)
        assert abs(counts - expected).max() <= 5 * np.sqrt(3000 / 4)


def test_random_does_not_depend_on_who_else_takes_part():
    everybody = devices(2, 2, 2, 2, 2)
    some = everybody.take([1, 3])
    whole = widest(everybody, width="random", round=7)
    assert widest(some, width="random", round=7) == [whole[1], whole[3]]


def test_battery_narrows_as_it_empties():
    charge = np.array([1.0, 0.7, 0.5, 0.3, 0.0])
    assert widest(devices(2, 2, 2, 2, 2), width="battery", charge=charge) == [2, 2, 1, 0, 0]
    assert widest(devices(0, 2), width="battery") == [0, 2]


def test_available_devices_are_a_share_of_the_rounds():
    section = FederationSection(devices=3, dropout=0.2)
    share = np.array([0.0, 0.5, 1.0])
    rounds = [cohort(section, 0, r, share) for r in range(1, 2001)]
    offline = np.bincount([k for who in rounds for k in who.offline], minlength=3)
    assert offline[0] == 2000
    assert offline[2] == 0
    assert abs(offline[1] - 1000) < 5 * np.sqrt(2000 / 4)
    # who does not answer is the same with and without availability
    for number, who in enumerate(rounds, 1):
        without = cohort(section, 0, number)
        assert {*who.dropped_out} == {*without.dropped_out, *who.offline}
