"""What the rounds of a run depend on, for every key."""

import re

import pytest

from slimfl.errors import RequestError
from slimfl.experiment import KEYS, flat, round_dependencies, round_identity
from slimfl.experiment.keys import reference
from tests import asking

#: Keys that may change while a run is under way.
FREE = {
    "rounds": 31,
    "threads": 3,
    "track": ["tensorboard"],
    "callbacks": [{"name": "some.module:StopAt", "options": {"accuracy": 0.9}}],
    "data.dir": "/elsewhere",
    "federation.checkpoint_every": 7,
    "federation.stop_on_convergence": True,
    "federation.convergence_window": 7,
    "federation.convergence_accuracy": 0.5,
    "federation.convergence_deviation": 0.5,
    "flower.device_engine": "torch",  # of an experiment without Flower's devices
    "flower.quorum": 0.9,
    "flower.round_timeout_s": 7.0,
    "flower.wait_s": 7.0,
    "flower.identity": "claimed",
}

#: What must be set as well, before and after the change.
NEEDS = {
    "radio.downlink_missed": {"radio.downlink": "lossy"},
    "federation.stop_on_convergence": {"federation.convergence_window": 7},
    "method_options": {"method": "some.module:Method"},
    "data.options": {"data.dataset": "some.module:dataset"},
    "training.options": {"training.algorithm": "some.module:Step"},
    "radio.options": {"radio.model": "some.module:Channel"},
    "population.correlations": {"population.preset": "phones"},
    "time.deadline_s": {"time.mode": "over-commit"},
    "time.over_commit": {"time.mode": "over-commit"},
    **{
        f"time.{key}": {"time.mode": "asynchronous"}
        for key in ("concurrency", "buffer", "buffer_counts", "staleness_exponent")
    },
    "radio.fading_correlation": {"radio.fading_process": "ar1"},
    "radio.doppler_hz": {"radio.fading_process": "jakes"},
    "radio.codeword_symbols": {"radio.decoder": "normal"},
    "radio.area_radius_m": {"radio.speed_m_s": 7.0},
}

#: What must be set before a change, and is taken back with it.
REPLACES = {
    "radio.fading_correlation": {"radio.doppler_hz": 0.1},
    "radio.doppler_hz": {"radio.doppler_hz": 0.1},
}

#: Keys that have one value, or that need others to be changed as well.
BOUND = {
    "radio.gains",
    "privacy.noise_multiplier",
    "population.fixed_width",
    "time.first",
    "radio.fading_process",
    "radio.decoder_table",
}

#: What is tried for a key that has no words: one of these it takes, and it is not the default.
TRIED = (
    "some.module:Name", "cuda", "good", "devices.csv", 7, 1, 2, 700, 0.5, 7e-8, 0.1, 20.0, 2e9,
    [0.3, 0.7], [0.25, 1.0], {"a": 9}, [{"name": "some.module:Stage"}],
    [{"name": "slow", "macs_per_s": 1e6}],
    [{"between": ["distance_m", "macs_per_s"], "rank": -0.5}],
)  # fmt: skip
WORDS = {
    key.name: re.findall(r"`([^`]+)`", key.values)
    for section in reference()
    for key in section.keys
}


def experiment(**values):
    return asking.load(**{key.replace(".", "__"): value for key, value in values.items()})[0]


def another(key, before):
    """An experiment with another value of a key, and what it needs."""
    for value in (*WORDS[key], *TRIED):
        try:
            changed = experiment(**{key: value}, **NEEDS.get(key, {}))
        except RequestError:
            continue
        if flat(changed)[key] != flat(before)[key]:
            return changed
    pytest.fail(f"no value of {key} is known that counts")


def test_every_key_is_decided_once():
    assert {*FREE, *BOUND} <= set(KEYS)
    assert not FREE.keys() & BOUND


@pytest.mark.parametrize(("key", "value"), FREE.items())
def test_a_circumstance_changes_nothing(key, value):
    needed = NEEDS.get(key, {})
    changed = experiment(**{key: value}, **needed)
    assert round_identity(changed) == round_identity(experiment(**needed))


@pytest.mark.parametrize("key", [key for key in KEYS if key not in FREE and key not in BOUND])
def test_every_other_key_counts_and_is_named(key):
    default = experiment(**NEEDS.get(key, {}), **REPLACES.get(key, {}))
    changed = another(key, default)
    assert round_identity(changed) != round_identity(default)
    assert round_dependencies(changed).get(key) != round_dependencies(default).get(key)


@pytest.mark.parametrize("key", ["training.learning_rate", "radio.power_dbm", "data.alpha"])
def test_nothing_else_counts_with_it(key):
    """Values that are settled from others, such as the noise of a channel, are not choices."""
    papers_link = experiment(**{key: 0.5, "radio.rates": "equal"})
    assert round_dependencies(papers_link) == {key: 0.5}


def test_the_number_of_rounds_counts_where_the_learning_rate_follows_it():
    def same(schedule):
        a, b = (experiment(rounds=n, **{"training.schedule": schedule}) for n in (10, 20))
        return round_identity(a) == round_identity(b)

    assert same("constant")
    assert same("theorem1")
    assert not same("cosine")


def test_the_engine_of_flowers_devices_counts_where_there_are_any():
    def identity(engine):
        return round_identity(experiment(engine="flower", **{"flower.device_engine": engine}))

    assert identity("torch") != identity("native")


def test_a_value_that_is_written_out_is_the_default():
    assert round_dependencies(experiment(**{"data.alpha": 1.0})) == round_dependencies(experiment())
    assert "data.alpha" not in round_dependencies(experiment())
