"""Eight widths: every network, both engines, and a split of the power that can be decoded."""

import itertools

import numpy as np
import pytest

from slimfl.radio import optimal_split_numeric
from slimfl.round import Simulation
from tests import asking

EIGHTHS = tuple(k / 8 for k in range(1, 9))
TINY = {
    "data__dataset": "synthetic", "data__train_samples": 300, "data__test_samples": 100,
    "federation__devices": 3, "training__steps": 2, "rounds": 2, "model__widths": EIGHTHS,
}  # fmt: skip


def simulation(**changes):
    return Simulation(asking.load(**(TINY | changes))[0])


@pytest.mark.parametrize("method", ["slimfl", "heterofl", "sheterofl", "fjord", "us-net"])
@pytest.mark.parametrize("engine", ["native", "torch"])
def test_a_round_of_eight_widths(method, engine):
    sim = simulation(method=method, engine=engine, radio__noise_dbm=-120.0)
    before = sim.global_model.copy()
    record = sim.step()
    assert record.delivered == [3] * 8
    assert (sim.global_model != before).any()
    assert set(record.accuracy) == {f"{width}x" for width in EIGHTHS}


@pytest.mark.parametrize("method", ["slimfl", "heterofl"])
def test_both_engines_train_eight_widths_alike(method):
    models = []
    for engine in ("native", "torch"):
        sim = simulation(method=method, engine=engine, radio__noise_dbm=-120.0)
        sim.step()
        models.append(sim.global_model)
    assert np.abs(models[0] - models[1]).max() < 2e-4


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("us-mobilenet", {}),
        ("resnet", {"blocks": 1, "channels": [8, 16]}),
        ("mlp", {"rows": 12, "columns": 12, "hidden": [16]}),
        ("split-mix", {"bases": 8}),
    ],
)
@pytest.mark.parametrize("method", ["slimfl", "heterofl"])
def test_every_network_has_eight_widths(name, options, method):
    if name == "split-mix":
        method = "split-mix"
    sim = simulation(
        method=method, model__name=name, model__options=options, radio__noise_dbm=-120.0
    )
    record = sim.step()
    assert (sim.setting.segments.sizes > 0).all()
    assert record.delivered == [3] * 8


@pytest.mark.parametrize("split", [None, "optimal", "optimal-numeric", "per-device"])
def test_the_split_of_eight_segments_reaches_all_of_them(split):
    """Thresholds by equation (9) from the powers alone: every segment within reach of the last."""
    sim = simulation(radio__rates="equal", radio__split=split, radio__spectral_efficiency=0.25)
    signal = sim.plan().signals[0]
    powers = np.asarray(signal.coding.split, float)
    assert len(powers) == 8
    assert powers.min() > 0
    assert abs(powers.sum() - 1) < 1e-9
    need = 2**0.25 - 1
    margins = [powers[i] - need * powers[i + 1 :].sum() for i in range(8)]
    assert min(margins) > 0
    thresholds = [need / margin for margin in margins]
    assert all(a <= b * (1 + 1e-6) for a, b in itertools.pairwise(thresholds))
    record = sim.step()
    assert record.delivered[0] >= record.delivered[-1]


@pytest.mark.parametrize("rate", [0.2, 1.5])
def test_no_other_split_of_eight_is_better(rate):
    """D = sum of 1/p, by the thresholds of equation (9), against random splits and neighbours."""
    noise_to_power, need = 0.001, 2**rate - 1
    random = np.random.default_rng(4)

    def sum_of_inverses(powers):
        margins = np.array([powers[i] - need * powers[i + 1 :].sum() for i in range(8)])
        if margins.min() <= 0:
            return np.inf
        return np.exp(np.maximum.accumulate(need * noise_to_power / margins)).sum()

    best = np.array(optimal_split_numeric([rate] * 8, noise_to_power))
    reached = sum_of_inverses(best)
    assert np.isfinite(reached)
    finite = 0
    for _ in range(2000):
        near = best * np.exp(random.normal(0, random.choice([1e-3, 1e-2]), 8))
        other = sum_of_inverses(near / near.sum())
        finite += np.isfinite(other)
        assert other >= reached * (1 - 1e-9)
    assert finite > 200
