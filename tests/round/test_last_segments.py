"""A device whose segment is lost counts with its last one: against a loop over single numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.nn import flat_order
from slimfl.round import Simulation
from slimfl.round.parts import LastSegments
from tests import asking

TINY = {
    "data__dataset": "synthetic", "data__train_samples": 200, "data__test_samples": 50,
    "threads": 1, "training__steps": 2, "federation__devices": 6, "radio__noise_dbm": -36.0,
    "federation__absent": "stale", "rounds": 6,
}  # fmt: skip


def simulation(**changes):
    return Simulation(asking.load(**(TINY | changes))[0])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"federation__participation": 0.5, "federation__dropout": 0.3},
        {"federation__average": "samples"},
        {"federation__missing": "zero"},
        {"method": "fedrolex"},
    ],
    ids=lambda changes: json.dumps(changes),
)
def test_against_a_loop_over_single_numbers(changes):
    """Six rounds; what every device sent last is written down parameter by parameter."""
    sim = simulation(**changes)
    if sim.setting.method.name == "fedrolex":  # windows that are not nested
        caps = np.array([0, 0, 0, 1, 1, 1])
        sim.setting.population = replace(sim.setting.population, max_width=caps)
    size = len(sim.global_model)
    last: dict[int, dict[int, float]] = {}
    weight: dict[int, float] = {}
    used_stale = 0
    for _ in range(6):
        plan, before = sim.plan(), sim.global_model.copy()
        outcomes = list(sim.outcomes(plan))
        record = sim.collect(plan, iter(outcomes))
        came: dict[int, set[int]] = {}
        for row, update in enumerate(outcomes):
            decoded = plan.signals[row].segments_decoded(record.decoded[row])
            order = plan.work[row].channels
            places = np.arange(size) if order is None else flat_order(sim.setting.network, order)
            inside = np.isin(sim.setting.segments.segment_of, decoded)
            came[update.device] = set(places[inside].tolist())
            if came[update.device]:
                weight[update.device] = (
                    update.samples if sim.experiment.federation.average == "samples" else 1
                )
            for place in came[update.device]:
                last.setdefault(update.device, {})[place] = float(update.parameters[place])
        fresh_first = sorted(came)
        asked = sorted({*came, *plan.absent})
        expected = before.copy()
        for place in range(size):
            delivered = [d for d in fresh_first if place in came[d]]
            if not delivered:
                if sim.experiment.federation.missing == "zero" and any(came.values()):
                    expected[place] = 0
                continue
            stale = [d for d in asked if place not in came.get(d, ()) and place in last.get(d, {})]
            used_stale += len(stale)
            total = sum(weight[d] * last[d][place] for d in (*delivered, *stale))
            expected[place] = total / sum(weight[d] for d in (*delivered, *stale))
        np.testing.assert_array_equal(sim.global_model, expected)
    assert used_stale >= 1000  # the case that this is about did occur


def test_memory_is_for_devices_that_were_heard_alone():
    sim = simulation(federation__devices=40, federation__participation=0.1, data__train_samples=400)
    heard = set()
    for _ in range(3):
        record = sim.step()
        heard |= {d for d, n in zip(record.devices, record.decoded, strict=True) if n}
    assert set(sim.state.last_segments.values) == heard
    assert 0 < len(heard) <= 12


def test_without_losses_nothing_is_stale():
    kept, plain = (
        simulation(radio__noise_dbm=-120.0, federation__absent=absent)
        for absent in ("stale", "skip")
    )
    for _ in range(3):
        kept.step()
        plain.step()
    np.testing.assert_array_equal(kept.global_model, plain.global_model)


@pytest.mark.parametrize("changes", [{"time__mode": "asynchronous"}, {"privacy__clip_norm": 1.0}])
def test_what_it_does_not_go_with_is_said(changes):
    with pytest.raises(RequestError, match=r'federation\.absent = "stale" needs '):
        asking.load(federation__absent="stale", **changes)


def test_a_checkpoint_without_what_arrived_last_is_refused():
    other = simulation(federation__absent="skip").state.checkpoint()
    with pytest.raises(RequestError):
        simulation().state.restore(other)


def test_a_large_memory_is_announced():
    last = LastSegments(4586)
    assert last.memory_warning(1000) is None
    assert "18.3 GB" in last.memory_warning(1_000_000)
