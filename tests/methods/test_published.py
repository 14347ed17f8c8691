"""Published numbers and theorems of the rivals that can be checked in seconds."""

import numpy as np
import pytest
import torch
from torch import nn

from slimfl.devices import Device
from slimfl.methods import Arrival, RunningMean, method
from slimfl.nn import SlimConv2d, SlimLinear, Slimmable, at_width, cost, segments, standalone
from slimfl.nn.order import permutation
from slimfl.round import Simulation
from tests import asking

#: HeteroFL's rates a to e, and what its published table has for MNIST.
RATES = {1.0: 1_556_874, 0.5: 391_370, 0.25: 98_922, 0.125: 25_274, 0.0625: 6_594}


class Affine(nn.Module):
    """The scale and shift of HeteroFL's static batch normalisation: no statistics of its own."""

    def __init__(self, channels):
        super().__init__()
        self.channels = channels
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def active_shapes(self, width):
        (count, *_) = SlimConv2d(1, self.channels, 1).active_shapes(width)["weight"]
        return {"weight": (count,), "bias": (count,)}

    def forward(self, x):
        mean, deviation = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), keepdim=True)
        count = x.shape[1]
        scale, shift = self.weight[:count, None, None], self.bias[:count, None, None]
        return scale * (x - mean) / (deviation + 1e-5) + shift


def heterofl_network():
    layers, into = [], 1
    for number, out in enumerate((64, 128, 256, 512)):
        layers += [
            SlimConv2d(into, out, 3, padding=1, slim_in=number > 0), Affine(out), nn.ReLU(),
            nn.MaxPool2d(2) if number < 3 else nn.AdaptiveAvgPool2d(1),
        ]  # fmt: skip
        into = out
    return nn.Sequential(*layers, nn.Flatten(), SlimLinear(512, 10, slim_out=False))


def test_heterofls_parameter_counts():
    """Its table for MNIST, by segments, by cost and by a network of each width on its own."""
    network, widths = heterofl_network(), tuple(sorted(RATES))
    assert isinstance(network[1], Slimmable)
    counted = cost(network, widths, (1, 28, 28))
    cut = segments(network, widths)
    for row in counted:
        assert row.parameters == RATES[row.width]
        assert cut.mask(row.width).sum() == RATES[row.width]
        alone = standalone(network, row.width)
        assert sum(p.numel() for p in alone.parameters()) == RATES[row.width]
        assert row.bits == 32 * RATES[row.width]
    images = torch.randn(2, 1, 28, 28)
    for width in widths:
        with at_width(width):
            assert network(images).shape == (2, 10)


# ---- FedRolex --------------------------------------------------------------------------------


def device(number, cap):
    return Device(id=number, samples=1, max_width=cap, power_dbm=0.0, distance_m=1.0)


@pytest.mark.parametrize(("count", "share"), [(32, 0.5), (64, 0.25), (10, 0.3), (7, 1 / 7)])
def test_fedrolex_is_even_through_its_own_assignments(count, share):
    """Over any n rounds every index as often; all of them after n - ceil(r n) + 1 rounds."""
    rolex, size = method("fedrolex", (share, 1.0)), int(np.ceil(share * count - 1e-9))
    windows = [
        set(permutation(rolex.assign(device(0, 0), t, None).channels, count)[:size].tolist())
        for t in range(1, 3 * count + 1)
    ]
    for begin in (0, 1, count // 2, count + 3):
        chosen = np.zeros(count, int)
        for window in windows[begin : begin + count]:
            chosen[list(window)] += 1
        assert (chosen == size).all()
        assert set().union(*windows[begin : begin + count - size + 1]) == set(range(count))
        if size < count:
            assert set().union(*windows[begin : begin + count - size]) != set(range(count))
    assert windows[0] == windows[count] == set(range(size))


# ---- merging ---------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["keep", "zero"])
@pytest.mark.parametrize("absent", ["skip", "old", "zero"])
@pytest.mark.parametrize("seed", range(4))
def test_every_merge_rule_against_a_loop_over_entries(missing, absent, seed):
    """Random masks that are not nested; a slice for a device of which everything arrived."""
    random = np.random.default_rng(seed)
    size, asked = 60, 7
    last = random.normal(size=size).astype(np.float32)
    arrivals, held = [], []
    for number in range(5):
        parameters = random.normal(size=size).astype(np.float32)
        where = np.flatnonzero(random.random(size) < 0.3)
        full = number == 4 and seed == 3
        weight = float(random.integers(1, 5)) if absent == "skip" else 1.0
        arrivals.append(
            Arrival(device(number, 1), parameters, slice(None) if full else where, weight)
        )
        held.append((parameters, set(range(size)) if full else set(where.tolist()), weight))
    mean = RunningMean(last, asked=asked, absent=absent)
    for one in arrivals:
        mean.add(one.parameters, one.where, one.weight)
    merged = mean.result(missing)
    for place in range(size):
        mine = [(float(p[place]), w) for p, mask, w in held if place in mask]
        if not mine:
            expected = 0.0 if missing == "zero" else float(last[place])
        elif absent == "skip":
            expected = sum(v * w for v, w in mine) / sum(w for _, w in mine)
        else:
            filler = float(last[place]) if absent == "old" else 0.0
            values = [v for v, _ in mine] + [filler] * (asked - len(mine))
            expected = sum(values) / asked
        assert merged[place] == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_dilution_is_a_shorter_step():
    """FedSup's identity: old + (count / K) (mean - old)."""
    random = np.random.default_rng(2)
    last = random.normal(size=30).astype(np.float32)
    values = random.normal(size=(3, 30)).astype(np.float32)

    diluting, plain = RunningMean(last, asked=10, absent="old"), RunningMean(last)
    for one in values:
        diluting.add(one, slice(None))
        plain.add(one, slice(None))
    diluted, mean = diluting.result(), plain.result()
    np.testing.assert_allclose(diluted, last + 0.3 * (mean - last), rtol=1e-5, atol=1e-6)


# ---- FjORD -----------------------------------------------------------------------------------


def test_ordered_dropout_of_a_linear_map_is_the_truncated_svd():
    """FjORD's theorem 1: with p uniform over the ranks, width k is the best map of rank k.

    Gradient descent on the expectation over all widths, through our slimmable layers, on inputs of
    unit covariance: the loss of width k is then the squared distance of the matrices.
    """
    torch.manual_seed(1)
    size, ranks = 6, 6
    left, _ = torch.linalg.qr(torch.randn(size, size, dtype=torch.float64))
    right, _ = torch.linalg.qr(torch.randn(size, size, dtype=torch.float64))
    values = torch.tensor([6.0, 4.5, 3.2, 2.1, 1.2, 0.5], dtype=torch.float64)
    target = left @ torch.diag(values) @ right.T
    network = nn.Sequential(
        SlimLinear(size, ranks, bias=False, slim_in=False),
        SlimLinear(ranks, size, bias=False, slim_out=False),
    ).double()
    identity = torch.eye(size, dtype=torch.float64)
    optimiser = torch.optim.LBFGS(
        network.parameters(), max_iter=2000, tolerance_grad=1e-10, tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def of_width(k):
        with at_width(k / ranks):
            return network(identity).T

    def closure():
        optimiser.zero_grad()
        loss = sum((of_width(k) - target).square().sum() for k in range(1, ranks + 1)) / ranks
        loss.backward()
        return loss

    optimiser.step(closure)
    for k in range(1, ranks + 1):
        best = left[:, :k] @ torch.diag(values[:k]) @ right[:, :k].T
        torch.testing.assert_close(of_width(k).detach(), best, rtol=0, atol=1e-3)


@pytest.mark.parametrize("cohorts", [False, True])
def test_distillation_adds_nothing_where_the_widest_was_drawn(cohorts):
    """A device that can train the narrowest width alone: with and without a teacher, to the bit."""
    from dataclasses import replace

    models = []
    for name in ("fjord", "fjord-kd"):
        [experiment] = asking.load(
            method=name, data__dataset="synthetic", data__train_samples=200, engine="torch",
            federation__devices=2, training__steps=4, threads=1, rounds=1,
        )  # fmt: skip
        sim = Simulation(experiment)
        sim.engine.cohorts_pay = cohorts
        sim.setting.population = replace(sim.setting.population, max_width=np.array([0, 0]))
        [first, *_] = sim.outcomes(sim.plan())
        models.append(first.parameters)
    np.testing.assert_array_equal(models[0], models[1])


# ---- HeteroFL and the server's Adam ----------------------------------------------------------


def test_heterofl_with_equal_devices_is_federated_averaging_to_the_bit():
    models = []
    for name in ("heterofl", "vanilla-1.0x"):
        [experiment] = asking.load(
            method=name, data__dataset="synthetic", data__train_samples=200, threads=1,
            federation__devices=3, training__steps=3, rounds=3,
        )  # fmt: skip
        sim = Simulation(experiment)
        for _ in range(3):
            sim.step()
        models.append(sim.global_model)
    np.testing.assert_array_equal(models[0], models[1])


def test_fedadam_against_a_loop_over_entries():
    """Flower's formula; a parameter counts its own rounds, and rests where nothing arrived."""
    from slimfl.experiment import ServerSection
    from slimfl.methods import ServerOptimiser

    random, size, rate, tau = np.random.default_rng(5), 40, 0.02, 1e-3
    wrapped = ServerOptimiser(
        method("slimfl", (0.5, 1.0)), ServerSection(optimiser="adam", learning_rate=rate, tau=tau)
    )
    model = random.normal(size=size).astype(np.float32)
    state = wrapped.start(model)
    expected = model.astype(float)
    moments = [(0.0, 0.0, 0)] * size
    for _ in range(5):
        sent = random.normal(size=(3, size)).astype(np.float32)
        masks = [np.flatnonzero(random.random(size) < 0.3) for _ in range(3)]
        came = [Arrival(device(k, 1), sent[k], masks[k], 1.0) for k in range(3)]
        before = model
        merge = wrapped.merge(RunningMean(model), state)
        for one in came:
            merge.add(one)
        model, state = merge.result()
        for place in range(size):
            mine = [float(sent[k][place]) for k in range(3) if place in masks[k]]
            if not mine:
                assert model[place] == before[place]
                continue
            m, v, t = moments[place]
            change = sum(mine) / len(mine) - expected[place]
            m, v, t = 0.9 * m + 0.1 * change, 0.99 * v + 0.01 * change**2, t + 1
            step = rate * (1 - 0.99 ** (t + 1)) ** 0.5 / (1 - 0.9 ** (t + 1)) * m / (v**0.5 + tau)
            moments[place], expected[place] = (m, v, t), expected[place] + step
    np.testing.assert_allclose(model, expected, rtol=2e-4, atol=1e-5)
