"""Merging, against a loop over single parameters and devices."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimfl.devices import Device
from slimfl.errors import RequestError
from slimfl.methods import Arrival, Merge, RunningMean
from slimfl.round.rounds import begin_merge
from slimfl.round.stages import Stage

DEVICE = Device(id=0, samples=1, max_width=0, power_dbm=23.0, distance_m=100.0)


def merged(mean, arrivals, missing="keep"):
    """The mean of what arrives."""
    merge = Merge(mean, {}, missing)
    for arrival in arrivals:
        merge.add(arrival)
    return merge.result()[0]


def arrivals_of(seed, parameters, devices, weighted):
    """Random updates of which random parts arrive: no nesting, some of them empty or whole."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(devices):
        mask = random.random(parameters) < random.choice([0.0, 0.3, 0.8, 1.0])
        where = slice(None) if mask.all() else np.flatnonzero(mask)
        weight = float(random.integers(1, 500)) if weighted else 1.0
        values = random.normal(size=parameters).astype(np.float32)
        found.append((mask, Arrival(DEVICE, values, where, weight)))
    return found


def naive_mean(last, arrived, missing):
    """Equation (6), one parameter at a time."""
    heard_of = any(mask.any() for mask, _ in arrived)
    model = []
    for i, value in enumerate(last):
        here = [(a.weight, float(a.parameters[i])) for mask, a in arrived if mask[i]]
        if here:
            model.append(sum(w * v for w, v in here) / sum(w for w, _ in here))
        else:
            model.append(0.0 if missing == "zero" and heard_of else value)
    return np.array(model, np.float32)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.integers(0, 7),
    st.booleans(),
    st.sampled_from(["keep", "zero"]),
)
def test_the_mean_is_that_of_a_loop_over_parameters(seed, parameters, devices, weighted, missing):
    last = np.random.default_rng(seed + 1).normal(size=parameters).astype(np.float32)
    arrived = arrivals_of(seed, parameters, devices, weighted)
    mean = merged(RunningMean(last), [a for _, a in arrived], missing)
    np.testing.assert_allclose(mean, naive_mean(last, arrived, missing), rtol=1e-6, atol=1e-7)
    assert mean.dtype == np.float32


def test_a_parameter_that_nobody_delivered_keeps_its_bits():
    last = np.array([0.1, -0.0, 3e-40, 7.0], np.float32)
    update = Arrival(DEVICE, np.ones(4, np.float32), np.array([3]), 1.0)
    mean = merged(RunningMean(last), [update])
    assert mean[:3].tobytes() == last[:3].tobytes()
    assert mean[3] == 1


def test_nothing_delivered_leaves_the_model_even_where_missing_means_zero():
    last = np.array([1.0, 2.0], np.float32)
    assert merged(RunningMean(last), [], "zero").tolist() == [1.0, 2.0]


def test_the_result_is_not_the_last_model_itself():
    last = np.ones(3, np.float32)
    RunningMean(last).result()[:] = 7
    assert last.tolist() == [1, 1, 1]


def test_the_weights_are_counted_per_parameter():
    running = RunningMean(np.zeros(3, np.float32))
    first, second = np.array([0, 1]), np.array([1, 2])
    for where, weight in ((first, 2.0), (second, 3.0), (first, 4.0)):
        running.add(np.zeros(3, np.float32), where, weight)
    assert running.weights().tolist() == [6.0, 9.0, 3.0]


def test_a_method_that_reads_single_updates_cannot_go_around_a_stage_on_the_mean():
    class Noise(Stage):
        def finish(self, mean, plan):
            mean.sums += 1

    class Reads(Merge):
        def add(self, arrival):
            self.seen = arrival

    def begun(merge, *stages):
        setting = SimpleNamespace(method=SimpleNamespace(merge=merge), stages=stages)
        state = SimpleNamespace(method=SimpleNamespace(arrays={}))
        return begin_merge(setting, state, RunningMean(np.zeros(1, np.float32)))

    assert isinstance(begun(Merge, Stage(), Noise()), Merge)
    assert isinstance(begun(Reads, Stage()), Reads)
    with pytest.raises(RequestError, match="individual updates"):
        begun(Reads, Stage(), Noise())
