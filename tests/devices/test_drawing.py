"""Devices drawn from classes: their distributions, as a function of the seed."""

import numpy as np
import pytest
from scipy import stats

from slimfl.devices import population_digest, population_of
from slimfl.errors import RequestError
from slimfl.experiment import build


def drawn(devices=2000, seed=0, correlations=(), **one):
    section = {"classes": [{"name": "all", **one}], "correlations": list(correlations)}
    return population_of(
        build({"seed": seed, "federation": {"devices": devices}, "population": section})
    )


def same_distribution(values, distribution):
    return stats.kstest(values, distribution.cdf).pvalue > 1e-3


def test_the_paper_is_the_default_and_takes_no_memory():
    population = population_of(build({"federation": {"devices": 10**6}}))
    columns = {name: getattr(population, name) for name in population.columns()}
    assert {n for n, c in columns.items() if c.strides != (0,)} == {"ids"}
    assert {*population.distance_m[:5].tolist()} == {100.0}


def test_distributions_are_those_that_are_named():
    ring = drawn(distance_m={"distribution": "disc", "radius_m": 100.0, "inner_m": 10.0})
    areas = (ring.distance_m**2 - 100) / (100**2 - 100)
    assert same_distribution(areas, stats.uniform())
    assert same_distribution(ring.angle_rad / (2 * np.pi), stats.uniform())
    np.testing.assert_allclose(np.hypot(ring.x_m, ring.y_m), ring.distance_m)

    speeds = drawn(macs_per_s={"distribution": "lognormal", "median": 1e8, "sigma": 0.5})
    assert same_distribution(np.log(speeds.macs_per_s / 1e8) / 0.5, stats.norm())

    powers = drawn(power_dbm={"distribution": "uniform", "low": 10, "high": 20})
    assert same_distribution(powers.power_dbm, stats.uniform(10, 10))

    chosen = drawn(
        max_width={"distribution": "choice", "values": [0.5, 1.0], "weights": [3.0, 1.0]}
    )
    narrow = (chosen.max_width == 0).sum()
    assert abs(narrow - 1500) < 5 * np.sqrt(2000 * 0.75 * 0.25)


def test_a_list_has_one_value_per_device():
    assert drawn(3, battery_j=[1.0, 2.0, 3.0]).battery_j.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(RequestError, match="lists 2 values for 3 devices"):
        drawn(3, battery_j=[1.0, 2.0])


def test_classes_have_their_shares():
    section = {
        "classes": [
            {"name": "a", "share": 0.5, "power_dbm": 1.0},
            {"name": "b", "share": 0.3, "energy": "other"},
            {"name": "c", "share": 0.2},
        ]
    }
    population = population_of(build({"federation": {"devices": 11}, "population": section}))
    names = [device.device_class for device in population]
    assert sorted(names) == ["a"] * 6 + ["b"] * 3 + ["c"] * 2
    assert names != sorted(names)  # a device's number says nothing of its class
    by_class = {d.device_class: (d.power_dbm, d.energy) for d in population}
    assert by_class == {"a": (1.0, "default"), "b": (23.0, "other"), "c": (23.0, "default")}


@pytest.mark.parametrize("rank", [-1.0, -0.6, 0.0, 0.9])
def test_quantities_have_the_rank_correlation_that_was_asked_for(rank):
    population = drawn(
        4000,
        distance_m={"distribution": "disc", "radius_m": 100.0},
        macs_per_s={"distribution": "lognormal", "median": 1e8, "sigma": 1.0},
        battery_j={"distribution": "uniform", "low": 1.0, "high": 2.0},
        correlations=[{"between": ["distance_m", "macs_per_s"], "rank": rank}],
    )
    found = stats.spearmanr(population.distance_m, population.macs_per_s).statistic
    assert abs(found - rank) < 5 / np.sqrt(4000)
    other = stats.spearmanr(population.distance_m, population.battery_j).statistic
    assert abs(other) < 5 / np.sqrt(4000)


def test_correlations_that_no_devices_have_are_refused():
    pairs = [("distance_m", "macs_per_s"), ("macs_per_s", "battery_j"), ("distance_m", "battery_j")]
    with pytest.raises(RequestError, match="contradict"):
        drawn(correlations=[{"between": pair, "rank": -0.9} for pair in pairs])


def test_one_quantity_does_not_move_the_others():
    ring = {"distribution": "disc", "radius_m": 100.0}
    one = drawn(distance_m=ring)
    two = drawn(distance_m=ring, macs_per_s={"distribution": "uniform", "low": 1, "high": 2})
    assert (one.distance_m == two.distance_m).all()


def test_is_a_function_of_the_seed():
    ring = {"distribution": "disc", "radius_m": 100.0}
    digests = [population_digest(drawn(seed=seed, distance_m=ring)) for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("preset", ["cell", "phones", "sensors"])
@pytest.mark.parametrize("widths", [[0.5, 1.0], [0.25, 0.5, 1.0], [0.7, 1.0]])
def test_presets_suit_any_widths(preset, widths):
    population = population_of(
        build({"population": {"preset": preset}, "model": {"widths": widths}})
    )
    assert ((population.distance_m >= 35) & (population.distance_m <= 289)).all()


def test_a_width_that_the_network_does_not_have_is_refused():
    with pytest.raises(RequestError, match=r"no width 0.25; choose a max_width from 0.5, 1"):
        drawn(max_width=0.25)
