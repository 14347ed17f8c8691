"""US-MobileNet against torch's own layers, and its statistics when segments are lost."""

import numpy as np
import pytest
import torch
from torch import nn

from slimfl.errors import RequestError
from slimfl.nn import at_width, build, cost, flatten, segments, standalone
from slimfl.nn.mobilenets import USMobileNet
from slimfl.round import Simulation
from tests import asking

WIDTHS = (0.25, 0.5, 1.0)
TINY = {
    "model__name": "us-mobilenet", "data__dataset": "synthetic", "data__train_samples": 300,
    "data__test_samples": 100, "federation__devices": 4, "training__steps": 2, "rounds": 8,
}  # fmt: skip


def by_hand(width):
    """A network of one width in torch's own layers."""
    a, b = round(32 * width), round(64 * width)

    def conv(into, out, kernel, groups=1):
        layer = nn.Conv2d(into, out, kernel, padding=kernel // 2, groups=groups, bias=False)
        return [layer, nn.BatchNorm2d(out), nn.ReLU6()]

    return nn.Sequential(
        *conv(1, a, 3), *conv(a, a, 3, a), *conv(a, a, 1), *conv(a, a, 3, a), *conv(a, b, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(b, 10),
    )  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
def test_a_width_is_the_small_network_while_it_trains_and_after(width):
    network, small = build("us-mobilenet", {}, widths=WIDTHS), by_hand(width)
    slim = [m for m in network.modules() if hasattr(m, "active_shapes")]
    plain = [m for m in small if isinstance(m, nn.Conv2d | nn.BatchNorm2d | nn.Linear)]
    with torch.no_grad():
        for ours, theirs in zip(slim, plain, strict=True):
            if isinstance(theirs, nn.BatchNorm2d):
                continue  # both begin with scale 1, shift 0
            for name, parameter in theirs.named_parameters():
                block = tuple(slice(0, size) for size in parameter.shape)
                parameter.copy_(getattr(ours, name)[block])
    for _ in range(3):
        images = torch.randn(6, 1, 8, 8)
        with at_width(width):
            torch.testing.assert_close(network(images), small(images), rtol=1e-4, atol=1e-5)
    network.eval(), small.eval()
    images = torch.randn(4, 1, 8, 8)
    with at_width(width):
        torch.testing.assert_close(network(images), small(images), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        standalone(network, width)(images), small(images), rtol=1e-4, atol=1e-5
    )


def test_its_cost_is_that_of_ul_mobilenet_and_four_numbers_per_channel_and_width():
    network, plain = build("us-mobilenet", {}), build("ul-mobilenet", {})
    ours, theirs = (cost(one, (0.5, 1.0), (1, 28, 28)) for one in (network, plain))
    channels = 32 + 32 + 32 + 32 + 64
    assert ours[0].parameters == theirs[0].parameters + 4 * channels // 2
    assert ours[1].parameters == theirs[1].parameters + 4 * channels // 2 + 4 * channels
    assert [row.multiply_adds for row in ours] == [row.multiply_adds for row in theirs]


def positions_of(network, word):
    """Where the parameters with a word in their name stand in the flat vector."""
    found, start = [], 0
    for name, parameter in network.named_parameters():
        if word in name.rpartition(".")[2]:
            found.append(np.arange(start, start + parameter.numel()))
        start += parameter.numel()
    return np.concatenate(found)


def test_lost_statistics_stay_behind_while_shared_weights_move_on():
    """Device by device, over a channel that loses most of segment 2."""
    sim = Simulation(asking.load(**TINY, radio__noise_dbm=-33.0, seed=1)[0])
    network = sim.setting.network
    kept_rounds = merged_rounds = 0
    own = {i: positions_of(network, f"mean{i}") for i in (0, 1)}
    own_var = {i: positions_of(network, f"variance{i}") for i in (0, 1)}
    for _ in range(8):
        before, plan = sim.global_model.copy(), sim.plan()
        outcomes = list(sim.outcomes(plan))
        record = sim.collect(plan, iter(outcomes))
        for index in (0, 1):
            came = [
                one.parameters
                for one, decoded in zip(outcomes, record.decoded, strict=True)
                if decoded > index
            ]
            where = np.concatenate([own[index], own_var[index]])
            if came:
                mean = np.mean([one[where].astype(np.float64) for one in came], axis=0)
                np.testing.assert_allclose(sim.global_model[where], mean, rtol=1e-6, atol=1e-7)
                assert (sim.global_model[own_var[index]] > 0).all()
            else:
                assert (sim.global_model[where] == before[where]).all()
        full, half = record.delivered[1], record.delivered[0]
        if half and not full:
            shared = sim.setting.segments.positions[0]
            assert (sim.global_model[shared] != before[shared]).mean() > 0.5
            kept_rounds += 1
        merged_rounds += bool(full)
    assert kept_rounds > 0
    assert merged_rounds > 0


def test_statistics_of_a_width_belong_to_its_segment():
    network = USMobileNet(widths=WIDTHS)
    cut = segments(network, WIDTHS)
    for index in range(3):
        for word in ("mean", "variance", "weight", "bias"):
            where = positions_of(network, f"{word}{index}")
            assert (cut.segment_of[where] == index).all()
    assert flatten(network).size == cut.sizes.sum()


@pytest.mark.parametrize("method", ["fedrolex", "federated-dropout"])
def test_methods_of_other_channels_are_refused_in_one_sentence(method):
    sim = Simulation(asking.load(**TINY, method=method)[0])
    with pytest.raises(RequestError, match="switchable batch normalisation has statistics of"):
        sim.step()


@pytest.mark.parametrize("method", ["slimfl", "heterofl", "fjord-kd", "us-net", "vanilla-0.5x"])
def test_methods_of_leading_widths_train_it(method):
    sim = Simulation(asking.load(**TINY, method=method, radio__channel="good")[0])
    before = sim.global_model.copy()
    sim.step()
    assert (sim.global_model != before).any()
    assert np.isfinite(sim.global_model).all()


def test_it_is_told_the_widths_of_the_experiment():
    sim = Simulation(asking.load(**TINY, model__widths=WIDTHS)[0])
    assert sim.setting.network.features.stem_norm.widths == WIDTHS
    sim.step()


def test_a_device_of_a_deployment_knows_its_size():
    from slimfl.flower.device import check_size

    [experiment] = asking.load(**TINY, model__widths=WIDTHS)
    size = flatten(USMobileNet(widths=WIDTHS)).size
    check_size(experiment, 1, 10, size)
    with pytest.raises(RequestError, match="the server sent"):
        check_size(experiment, 1, 10, size + 1)


@pytest.mark.parametrize("optimiser", ["momentum", "adam"])
def test_a_servers_step_leaves_measured_statistics_as_merged(optimiser):
    """A step along a change would take them to where nobody measured, also below zero."""
    sim = Simulation(
        asking.load(
            **TINY, server__optimiser=optimiser, server__learning_rate=0.01, radio__noise_dbm=-120.0
        )[0]
    )
    for _ in range(2):
        plan = sim.plan()
        outcomes = list(sim.outcomes(plan))
        sim.collect(plan, iter(outcomes))
        mean = np.mean([one.parameters.astype(np.float64) for one in outcomes], axis=0)
        for word in ("mean0", "mean1", "variance0", "variance1"):
            where = positions_of(sim.setting.network, word)
            np.testing.assert_allclose(sim.global_model[where], mean[where], rtol=1e-6, atol=1e-7)
        where = positions_of(sim.setting.network, "weight0")
        assert np.abs(sim.global_model[where] - mean[where]).max() > 1e-5
