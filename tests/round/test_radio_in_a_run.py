"""The radio's parts in a run: records match them, and a run resumes bit for bit."""

import math

import pytest

from slimfl.experiment import build
from slimfl.radio import build_channel, heard
from slimfl.round import Simulation
from tests import asking

SMALL = {
    "rounds": 4,
    "data": {"dataset": "synthetic", "train_samples": 200, "test_samples": 50},
    "training": {"steps": 1, "batch_size": 4},
    "federation": {"devices": 6, "participation": 0.7},
}


def tried(radio):
    return build({**SMALL, "radio": radio})


def test_attempts_are_paid_for_in_the_record():
    once = Simulation(tried({"noise_dbm": -36.0})).step()
    often = Simulation(tried({"noise_dbm": -36.0, "max_attempts": 4})).step()
    assert often.gains == once.gains
    assert sum(often.decoded) > sum(once.decoded)
    assert often.energy_j > once.energy_j
    assert often.airtime_s / once.airtime_s == pytest.approx(often.energy_j / once.energy_j)


def test_what_a_run_expects_knows_the_length_of_its_messages(tmp_path):
    """The normal approximation needs the bits, which are known once the network is."""
    run = asking.run(
        out=tmp_path / "run",
        rounds=1,
        data__dataset="synthetic",
        data__train_samples=200,
        training__steps=1,
        radio__decoder="normal",
        radio__rates="by-size",
    )
    assert run is not None
    simulation = Simulation(tried({"decoder": "normal", "rates": "by-size"}))
    shares = simulation.setting.provenance()["expected_shares"]
    assert 0 < shares[1] < shares[0] < 1


def test_a_device_that_misses_the_downlink_sits_out():
    simulation = Simulation(tried({"downlink": "lossy", "downlink_power_dbm": 14.0}))
    plain = Simulation(tried({}))
    missed = 0
    for _ in range(4):
        found, usual = simulation.step(), plain.step()
        assert sorted([*found.devices, *found.dropped_out]) == usual.devices
        # those that take part meet the channel that they would have met
        kept = dict(zip(usual.devices, usual.gains, strict=True))
        assert found.gains == [kept[device] for device in found.devices]
        missed += len(found.dropped_out)
    assert 0 < missed < 16


def test_nobody_hears_a_whisper_and_the_model_stays():
    simulation = Simulation(tried({"downlink": "lossy", "downlink_power_dbm": -60.0}))
    before = simulation.global_model.copy()
    record = simulation.step()
    assert record.devices == []
    assert simulation.global_model.tolist() == before.tolist()


@pytest.mark.parametrize("radio", [{}, {"fading": "rician", "shadowing_db": 6.0}])
def test_what_is_expected_knows_the_downlink(radio):
    lossy = {"downlink": "lossy", "downlink_power_dbm": 18.0, **radio}
    shares = Simulation(tried(lossy)).setting.provenance()["expected_shares"]
    usual = Simulation(tried(radio)).setting.provenance()["expected_shares"]
    channel = build_channel(tried(radio).radio)
    devices = Simulation(tried(radio)).setting.population
    hits = [heard(tried(lossy).radio, channel, {}, 1, devices, seed).mean() for seed in range(1500)]
    error = 4.5 * math.sqrt(0.25 / (1500 * len(devices)))
    for share, plain in zip(shares, usual, strict=True):
        assert share / plain == pytest.approx(sum(hits) / 1500, abs=error)


def test_nothing_is_expected_of_pairs_that_send_differently():
    pairs = {"users_per_slot": 2, "spectral_efficiency": 0.5}
    assert Simulation(tried(pairs)).setting.provenance()["expected_shares"]
    places = {"distribution": "disc", "radius_m": 250.0, "inner_m": 35.0}
    spread = {"classes": [{"name": "all", "share": 1.0, "distance_m": places}]}
    own = build({**SMALL, "radio": {**pairs, "split": "per-device"}, "population": spread})
    simulation = Simulation(own)
    assert "expected_shares" not in simulation.setting.provenance()
    assert simulation.step().devices
