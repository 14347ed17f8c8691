"""What the rounds of a run depend on, for every key."""

import pytest

from slimfl.experiment import KEYS, round_dependencies, round_identity
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

#: Keys that may not.
COUNTS = {
    "method": "vanilla-1.0x",
    "method_options": {"weak": 3},
    "stages": [{"name": "some.module:Stage"}],
    "data.options": {"size": 9},
    "seed": 1,
    "engine": "torch",
    "device": "cuda",
    "data.dataset": "mnist",
    "data.partition": "iid",
    "data.alpha": 0.5,
    "data.min_samples": 7,
    "data.shards_per_device": 3,
    "data.train_samples": 700,
    "data.test_samples": 700,
    "data.downscale": 2,
    "data.normalise": "plain",
    "model.name": "some.module:network",
    "model.widths": [0.25, 1.0],
    "model.options": {"channels": 7},
    "model.initialisation": "xavier",
    "training.algorithm": "ustrain",
    "training.options": {"smoothing": 0.2},
    "training.order": "accumulate",
    "training.weights": [0.3, 0.7],
    "training.sampled_widths": 3,
    "training.optimiser": "sgd",
    "training.learning_rate": 0.01,
    "training.schedule": "cosine",
    "training.smoothness": 7.0,
    "training.strong_convexity": 0.5,
    "training.momentum": 0.5,
    "training.nesterov": True,
    "training.weight_decay": 0.1,
    "training.betas": [0.8, 0.9],
    "training.batch_size": 7,
    "training.epochs": 2,
    "training.steps": 7,
    "training.optimiser_state": "fresh",
    "training.proximal_mu": 0.1,
    "radio.model": "some.module:Channel",
    "radio.options": {"correlation": 0.5},
    "radio.channel": "good",
    "radio.noise_dbm": -45.0,
    "radio.power_dbm": 20.0,
    "radio.distance_m": 7.0,
    "radio.path_loss_exponent": 3.0,
    "radio.bandwidth_hz": 7.0,
    "radio.spectral_efficiency": 1.0,
    "radio.split": [0.7, 0.3],
    "radio.split_drift_db": 1.5,
    "radio.split_objective": "delivered",
    "radio.split_weights": [1.0, 2.0],
    "radio.first_outage": 0.2,
    "radio.implementation_loss_db": 1.0,
    "radio.noise_density_dbm_hz": -120.0,
    "radio.noise_figure_db": 7.0,
    "radio.path_loss": "umi",
    "radio.carrier_hz": 2e9,
    "radio.line_of_sight": "never",
    "radio.server_height_m": 20.0,
    "radio.device_height_m": 7.0,
    "radio.fading": "rician",
    "radio.rician_k_db": 7.0,
    "radio.nakagami_m": 7.0,
    "radio.fading_correlation": 0.7,
    "radio.doppler_hz": 7.0,
    "radio.round_s": 7.0,
    "radio.shadowing_db": 7.0,
    "radio.shadowing_correlation": 0.7,
    "radio.decoder": "normal",
    "radio.codeword_symbols": 700,
    "radio.sinr_gap_db": 1.3,
    "radio.modulation": 2,
    "radio.block_bits": 700,
    "radio.decoder_iterations": 7,
    "radio.delay_spread_s": 7e-8,
    "radio.subcarriers": 7,
    "radio.residual_interference": 0.01,
    "radio.max_attempts": 7,
    "radio.retransmission_gain": "same",
    "radio.multiplexing": "orthogonal-energy",
    "radio.users_per_slot": 2,
    "radio.rates": "equal",
    "radio.speed_m_s": 7.0,
    "radio.area_radius_m": 70.0,
    "radio.downlink": "lossy",
    "radio.downlink_missed": "own-model",
    "radio.downlink_power_dbm": 7.0,
    "radio.downlink_spectral_efficiency": 0.7,
    "radio.accounting": "paper",
    "radio.bits_per_parameter": 16.0,
    "federation.devices": 7,
    "federation.participation": 0.7,
    "federation.dropout": 0.1,
    "federation.average": "samples",
    "federation.missing": "zero",
    "federation.absent": "old",
    "federation.clip_norm": 7.0,
    "federation.clip_value": 7.0,
    "federation.evaluate_every": 7,
    "federation.evaluate_all_from": 3,
    "federation.average_last": 2,
    "server.optimiser": "momentum",
    "server.learning_rate": 0.5,
    "server.momentum": 0.5,
    "server.betas": [0.8, 0.9],
    "server.tau": 0.1,
    "population.preset": "cell",
    "population.file": "devices.csv",
    "population.classes": [{"name": "slow", "macs_per_s": 1e6}],
    "population.correlations": [{"between": ["distance_m", "macs_per_s"], "rank": -0.5}],
    "population.width": "random",
    "population.grow_every": 7,
    "time.mode": "asynchronous",
    "time.deadline_s": 7.0,
    "time.over_commit": 2.0,
    "time.concurrency": 7,
    "time.buffer": 7,
    "time.buffer_counts": "arrivals",
    "time.staleness_exponent": 0.0,
    "time.download_bits_per_s": 1e6,
    "energy.preset": "none",
    "energy.amplifier_efficiency": 0.3,
    "energy.circuit_power_w": 0.1,
    "privacy.clip_norm": 1.0,
    "privacy.delta": 0.1,
    "privacy.noise": "seeded",
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


def experiment(**values):
    return asking.load(**{key.replace(".", "__"): value for key, value in values.items()})[0]


def test_every_key_is_decided():
    assert {*FREE, *COUNTS, *BOUND} == set(KEYS)


@pytest.mark.parametrize(("key", "value"), FREE.items())
def test_a_circumstance_changes_nothing(key, value):
    needed = NEEDS.get(key, {})
    changed = experiment(**{key: value}, **needed)
    assert round_identity(changed) == round_identity(experiment(**needed))


@pytest.mark.parametrize(("key", "value"), COUNTS.items())
def test_a_setting_counts_and_is_named(key, value):
    needed = NEEDS.get(key, {})
    default = experiment(**needed, **REPLACES.get(key, {}))
    changed = experiment(**{key: value}, **needed)
    assert round_identity(changed) != round_identity(default)
    assert round_dependencies(changed).get(key) != round_dependencies(default).get(key)


@pytest.mark.parametrize("key", ["training.learning_rate", "radio.power_dbm", "data.alpha"])
def test_nothing_else_counts_with_it(key):
    """Values that are settled from others, such as the noise of a channel, are not choices."""
    papers_link = experiment(**{key: COUNTS[key], "radio.rates": "equal"})
    assert round_dependencies(papers_link) == {key: COUNTS[key]}


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
