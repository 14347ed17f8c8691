"""The rival methods against naive loops: what is trained, sent and merged."""

import numpy as np
import pytest
import torch

from slimfl.devices import Device
from slimfl.methods import RIVALS, Arrival, RunningMean, ServerOptimiser, method
from slimfl.nn import (
    ULMobileNet,
    at_width,
    flat_order,
    flatten,
    load_flat,
    multiply_adds,
    segments,
)
from slimfl.nn.layers import SlimConv2d, SlimLinear
from slimfl.nn.order import permutation
from slimfl.rng import generator
from slimfl.round import Simulation
from tests import asking

WIDTHS = (0.25, 0.5, 1.0)
TINY = {
    "data__dataset": "synthetic", "data__train_samples": 300, "data__test_samples": 100,
    "federation__devices": 3, "training__steps": 3, "rounds": 2,
}  # fmt: skip


def device(cap, number=0):
    return Device(id=number, samples=10, max_width=cap, power_dbm=0.0, distance_m=1.0)


def simulation(name, **changes):
    (experiment,) = asking.load(None, method=name, **(TINY | changes))
    return Simulation(experiment)


def random_for(*key):
    return lambda: generator(7, "assignment", *key)


@pytest.mark.parametrize("name", sorted(RIVALS))
@pytest.mark.parametrize("cap", [0, 1, 2])
def test_a_device_sends_its_whole_block_in_one_message(name, cap):
    assignment = method(name, WIDTHS).assign(device(cap), 3, random_for(3))
    assert assignment.messages == (tuple(range(cap + 1)),)
    assert max(assignment.widths) == cap


@pytest.mark.parametrize(("name", "widths"), [("heterofl", (2,)), ("sheterofl", (0, 1, 2))])
def test_heterofl_trains_its_widest_width_alone_and_sheterofl_all(name, widths):
    assert method(name, WIDTHS).assign(device(2), 3, random_for(3)).widths == widths


@pytest.mark.parametrize("name", sorted({*RIVALS, "exclusive"} - {"split-mix"}))
@pytest.mark.parametrize("engine", ["torch", "native"])
def test_every_rival_runs_and_learns_something(name, engine):
    sim = simulation(name, engine=engine)
    before = sim.global_model.copy()
    record = sim.step()
    assert sum(record.delivered) > 0
    assert np.abs(sim.global_model - before).max() > 0
    assert set(record.accuracy) == {
        f"{sim.experiment.model.widths[i]}x" for i in sim.setting.method.evaluates()
    }


@pytest.mark.parametrize(
    "name", ["heterofl", "fjord", "fjord-kd", "us-net", "fedrolex", "sheterofl"]
)
def test_native_and_torch_train_alike(name):
    """Every method whose local network is a leading width of UL-MobileNet."""
    models = []
    for engine in ("torch", "native"):
        sim = simulation(name, engine=engine, radio__channel="good")
        sim.step()
        models.append(sim.global_model)
    assert np.abs(models[0] - models[1]).max() < 2e-4


def test_us_net_with_two_widths_is_sheterofl():
    """Nothing lies between the narrowest and the widest, and Adam ignores a common scale.

    But for gradients near its epsilon, so a few weights may differ.
    """
    models = []
    for name in ("us-net", "sheterofl"):
        sim = simulation(name, engine="native", radio__channel="good")
        before = sim.global_model.copy()
        sim.step()
        models.append(sim.global_model)
    apart, moved = np.abs(models[0] - models[1]), np.abs(models[0] - before)
    assert np.quantile(apart, 0.95) < 1e-3 * np.median(moved)


# ---- the order of channels ------------------------------------------------------------------


@pytest.mark.parametrize("order", [("roll", 5), ("shuffle", 3)])
def test_a_reordered_network_is_the_same_function(order):
    network = ULMobileNet()
    images = torch.randn(4, 1, 12, 12)
    expected = network(images)
    vector = flatten(network)
    load_flat(network, vector[flat_order(network, order)])
    torch.testing.assert_close(network(images), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", [("roll", 9), ("shuffle", 11)])
def test_the_leading_width_of_a_reordered_network_is_the_chosen_channels(order):
    """Against a network cut out by hand, layer by layer."""
    network = ULMobileNet()
    images = torch.randn(3, 1, 10, 10)
    kept = {n: permutation(order, n)[: n // 2] for n in (32, 64)}
    x, last = images, None
    for layer in (
        network.stem,
        network.depthwise1,
        network.pointwise1,
        network.depthwise2,
        network.pointwise2,
    ):
        rows = kept[layer.out_channels]
        weight = layer.weight[rows]
        if not layer.depthwise and last is not None:
            weight = weight[:, last]
        x = torch.nn.functional.conv2d(
            x, weight, padding=layer.padding, groups=len(rows) if layer.depthwise else 1
        ).clamp(0, 6)
        last = rows
    expected = x.mean((2, 3)) @ network.head.weight[:, last].T + network.head.bias
    load_flat(network, flatten(network)[flat_order(network, order)])
    with at_width(0.5):
        torch.testing.assert_close(network(images), expected, rtol=1e-4, atol=1e-5)


def test_features_of_a_flattened_channel_stay_together():
    network = torch.nn.Sequential(
        SlimConv2d(1, 4, 3, padding=1, slim_in=False),
        torch.nn.Flatten(),
        SlimLinear(4 * 9, 5, slim_out=False, features_per_channel=9),
    )
    images = torch.randn(2, 1, 3, 3)
    expected = network(images)
    load_flat(network, flatten(network)[flat_order(network, ("shuffle", 1))])
    torch.testing.assert_close(network(images), expected)


@pytest.mark.parametrize("name", ["fedrolex", "federated-dropout"])
@pytest.mark.parametrize("engine", ["torch", "native"])
def test_a_round_of_moving_windows_against_a_naive_loop(name, engine):
    """Two rounds; every device's own window, merged entry by entry."""
    # kept moments would move parameters outside of the window, which nobody uses or sends
    given = {"radio__channel": "good", "training__optimiser_state": "fresh", "engine": engine}
    sim, twin = simulation(name, **given), simulation(name, **given)
    caps = [0, 0, 1]
    sim.setting.population = _capped(sim.setting.population, caps)
    cut = segments(twin.setting.network, twin.experiment.model.widths)
    for number in (1, 2):
        plan = sim.plan()
        model = sim.global_model.copy()
        outcomes = list(sim.outcomes(plan))
        sums, counts = np.zeros(len(model)), np.zeros(len(model))
        record = sim.collect(plan, iter(outcomes))
        for row, update in enumerate(outcomes):
            order = plan.work[row].channels
            places = flat_order(twin.setting.network, order)
            block = places[cut.segment_of <= caps[row]]
            outside = np.setdiff1d(np.arange(len(model)), block)
            # nothing outside the window was trained
            assert (update.parameters[outside] == model[outside]).all()
            if record.decoded[row]:
                for place in block:
                    sums[place] += update.parameters[place]
                    counts[place] += 1
        expected = model.copy()
        expected[counts > 0] = (sums[counts > 0] / counts[counts > 0]).astype(np.float32)
        np.testing.assert_array_equal(sim.global_model, expected)
        assert counts.min() >= 0
        assert number == record.round


def _capped(population, caps):
    from dataclasses import replace

    return replace(population, max_width=np.array(caps))


@pytest.mark.parametrize("name", ["fedrolex", "federated-dropout"])
def test_with_all_channels_any_order_is_federated_averaging(name):
    """Also with kept moments, which are stored in the order of the model."""
    given = {"engine": "torch", "rounds": 3, "training__steps": 5}
    moving, plain = simulation(name, **given), simulation("vanilla-1.0x", **given)
    for _ in range(3):
        moving.step()
        plain.step()
    np.testing.assert_allclose(moving.global_model, plain.global_model, rtol=1e-3, atol=2e-5)
    states, others = moving.engine.states.export(), plain.engine.states.export()
    for key, value in others.items():
        np.testing.assert_allclose(states[key], value, rtol=2e-2, atol=1e-5)


# ---- FjORD and US-Net -----------------------------------------------------------------------


def test_fjord_draws_one_width_per_batch_up_to_its_own():
    sim = simulation("fjord", model__widths=WIDTHS, training__steps=200)
    sim.setting.population = _capped(sim.setting.population, [0, 1, 2])
    tasks = sim.plan().tasks
    for cap, schedule in zip([0, 1, 2], sim.engine.workload.schedules(1, tasks), strict=True):
        assert (schedule.visits.sum(1) == 1).all()
        assert not schedule.visits[:, cap + 1 :].any()
        shares = schedule.visits.mean(0)[: cap + 1]
        assert np.abs(shares - 1 / (cap + 1)).max() < 0.15
    with_teacher = simulation("fjord-kd", model__widths=WIDTHS, training__steps=50)
    [schedule, *_] = with_teacher.engine.workload.schedules(1, with_teacher.plan().tasks)
    assert schedule.visits[:, 2].all()
    assert set(schedule.visits.sum(1)) == {1, 2}


# ---- Split-Mix ------------------------------------------------------------------------------


def split_mix(**changes):
    return simulation("split-mix", model__name="split-mix", engine="torch", **changes)


def test_split_mix_has_the_parameters_of_its_bases():
    sim = split_mix()
    assert sim.setting.segments.sizes.tolist() == [1530, 1530]


def test_a_width_of_split_mix_is_the_mean_of_its_bases():
    network = split_mix().setting.network
    images = torch.randn(3, 1, 28, 28)
    network.train()
    with at_width(0.5):
        first = network(images)
    second = network(images)
    network.eval()
    torch.testing.assert_close(network(images), (first + second) / 2)
    with at_width(0.5):
        torch.testing.assert_close(network(images), first)


def test_every_base_of_split_mix_costs_as_much_to_train():
    sim = split_mix()
    first, second = sim.setting.multiply_adds
    assert first == second
    assert multiply_adds(sim.setting.network, 1.0, (1, 12, 12)) > 1.9 * first


def test_a_device_with_one_base_leaves_the_others_bitwise_alone():
    sim = split_mix(radio__channel="good", training__optimiser_state="fresh")
    sim.setting.population = _capped(sim.setting.population, [0, 0, 0])
    trained = set()
    for _ in range(2):
        plan = sim.plan()
        before = sim.global_model.copy()
        for row, update in enumerate(sim.outcomes(plan)):
            [_, number] = plan.work[row].channels
            base = number % 2  # rolled right by one, the second base comes first
            other = sim.setting.segments.positions[1 - base]
            assert (update.parameters[other] == before[other]).all()
            assert (
                update.parameters[sim.setting.segments.positions[base]]
                != before[sim.setting.segments.positions[base]]
            ).any()
            trained.add(base)
        sim.step()
    assert trained == {0, 1}


# ---- server optimisers and the proximal term ------------------------------------------------


def one_round(section, last, arrivals, state=None):
    wrapped = ServerOptimiser(method("slimfl", (0.5, 1.0)), section)
    merge = wrapped.merge(RunningMean(last), wrapped.start(last) if state is None else state)
    for arrival in arrivals:
        merge.add(arrival)
    return merge.result()


def test_momentum_by_hand_and_a_silent_round():
    from slimfl.experiment import ServerSection

    section = ServerSection(optimiser="momentum", learning_rate=0.5, momentum=0.9)
    model, state, velocity = np.zeros(4, np.float32), None, np.zeros(4)
    expected = np.zeros(4)
    for where in ([0, 1], [1, 2], [0]):
        target = np.full(4, 2.0, np.float32)
        came = [Arrival(device(0), target, np.array(where), 1.0)]
        model, state = one_round(section, model, came, state)
        for place in where:
            velocity[place] = 0.9 * velocity[place] + (2.0 - expected[place])
            expected[place] += 0.5 * velocity[place]
    np.testing.assert_allclose(model, expected, rtol=1e-6)
    assert model[3] == 0


@pytest.mark.parametrize("cohorts", [False, True])
def test_fedprox_adds_the_squared_distance(cohorts):
    """One device, plain SGD: against a loop with the loss written out."""
    mu, rate = 0.7, 0.05
    sim = simulation(
        "vanilla-1.0x", engine="torch", federation__devices=2, training__optimiser="sgd",
        training__momentum=0.0, training__learning_rate=rate, training__proximal_mu=mu,
    )  # fmt: skip
    sim.engine.cohorts_pay = cohorts
    plan = sim.plan()
    update = next(iter(sim.outcomes(plan)))
    [schedule, *_] = sim.engine.workload.schedules(1, plan.tasks)
    network = ULMobileNet()
    load_flat(network, sim.global_model)
    start = [p.detach().clone() for p in network.parameters()]
    for begin, end in zip(schedule.batch_offsets[:-1], schedule.batch_offsets[1:], strict=True):
        images, labels = sim.engine.training_images.batch(
            torch.from_numpy(schedule.samples[begin:end])
        )
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        away = sum(((p - s) ** 2).sum() for p, s in zip(network.parameters(), start, strict=True))
        gradients = torch.autograd.grad(loss + mu / 2 * away, list(network.parameters()))
        with torch.no_grad():
            for p, g in zip(network.parameters(), gradients, strict=True):
                p -= rate * g
    np.testing.assert_allclose(update.parameters, flatten(network), rtol=1e-4, atol=1e-6)


def test_the_native_engine_leaves_fedprox_to_torch():
    sim = simulation("slimfl", training__proximal_mu=0.1)
    assert sim.engine.name == "native"
    assert "proximal" in sim.engine.why_not(sim.plan().tasks[0].work)
    sim.step()
