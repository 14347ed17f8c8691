"""The `population` section: what it accepts, and its messages for the rest."""

import tomllib

import pytest

from slimfl.errors import RequestError
from slimfl.experiment import Experiment, build, dump

CLASSES = """
[[population.classes]]
name = "near"
share = 0.25
max_width = 1.0
distance_m = { distribution = "disc", radius_m = 50.0 }
macs_per_s = { distribution = "lognormal", median = 1e8, sigma = 0.5 }

[[population.classes]]
name = "far"
share = 0.75
max_width = { distribution = "choice", values = [0.5, 1.0], weights = [3.0, 1.0] }
distance_m = { distribution = "uniform", low = 100.0, high = 200.0 }
power_dbm = 20.0
battery_j = 500.0
availability = 0.5
energy = "kappa"
"""


def refusal(**population):
    with pytest.raises(RequestError) as caught:
        build({"population": population})
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_classes_survive_the_way_through_a_file():
    experiment = build(tomllib.loads(CLASSES))
    assert [each.share for each in experiment.population.classes] == [0.25, 0.75]
    assert build(tomllib.loads(dump(experiment))) == experiment


def test_the_default_is_the_papers():
    assert Experiment().population.is_default
    assert not build(tomllib.loads(CLASSES)).population.is_default


@pytest.mark.parametrize(
    ("one", "words"),
    [
        ({"macs_per_s": -5.0}, "macs_per_s is -5"),
        ({"macs_per_s": [1e6, -1.0]}, "macs_per_s is -1"),
        ({"macs_per_s": {"distribution": "uniform", "low": -1, "high": 5}}, "macs_per_s is -1"),
        ({"macs_per_s": {"distribution": "uniform", "low": 9, "high": 5}}, "low exceeds high"),
        ({"macs_per_s": {"distribution": "zipf"}}, "no such distribution"),
        ({"macs_per_s": {"low": 1}}, "no such distribution"),
        ({"macs_per_s": "fast"}, "number"),
        ({"macs_per_s": float("nan")}, "finite"),
        ({"macs_per_s": {"distribution": "disc", "radius_m": 5.0}}, "disc is for distance_m"),
        ({"distance_m": {"distribution": "disc", "radius_m": 5.0, "inner_m": 6.0}}, "inner_m"),
        ({"availability": 1.5}, "availability is 1.5"),
        ({"battery_j": -1.0}, "battery_j is -1"),
        ({"max_width": 2.0}, "max_width is 2"),
        ({"speed": 1.0}, "no such key"),
        ({"share": 0.0}, "share"),
    ],
)
def test_a_wrong_quantity_is_refused_with_its_class_and_key(one, words):
    sentence = refusal(classes=[{"name": "odd", **one}])
    assert "'odd'" in sentence
    assert words in sentence


def test_shares_sum_to_one():
    two = [{"name": "a", "share": 0.5}, {"name": "b", "share": 0.4}]
    assert "sum to 0.9" in refusal(classes=two)


@pytest.mark.parametrize(
    ("population", "words"),
    [
        ({"preset": "cell", "file": "devices.csv"}, "give only one of them"),
        ({"preset": "mars"}, "paper, cell, phones, sensors"),
        ({"width": "fixed"}, "fixed_width"),
        ({"fixed_width": 0.5}, "fixed_width"),
        ({"classes": [{"name": "a", "share": 0.5}, {"name": "a", "share": 0.5}]}, "same name"),
        ({"classes": [{"name": "a, b"}]}, "name"),
        (
            {"correlations": [{"between": ["distance_m", "macs_per_s"], "rank": 0.5}]},
            "omit the correlations",
        ),
        (
            {"preset": "cell", "correlations": [{"between": ["distance_m", "x"], "rank": 0.5}]},
            "'x'",
        ),
    ],
)
def test_a_wrong_population_is_refused(population, words):
    assert words in refusal(**population)
