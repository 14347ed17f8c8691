"""Slimmable group normalisation, and batch normalisation with statistics per width."""

import numpy as np
import pytest
import torch
from torch import nn

import slimfl
from slimfl.errors import RequestError
from slimfl.nn import (
    SlimBatchNorm2d,
    SlimConv2d,
    SlimGroupNorm,
    SlimLinear,
    at_width,
    cost,
    segments,
    slimmable,
    standalone,
)
from tests import asking

WIDTHS = (0.5, 1.0)


def network(norm, in_channels=1, classes=10):
    torch.manual_seed(0)
    return nn.Sequential(
        SlimConv2d(in_channels, 8, 3, padding=1, slim_in=False),
        norm,
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        SlimLinear(8, classes, slim_out=False),
    )


@pytest.mark.parametrize("width", [0.25, 0.5, 1.0])
def test_group_norm_at_a_width_is_torchs_own_on_the_leading_groups(width):
    slim = SlimGroupNorm(4, 8).double()
    with torch.no_grad():
        slim.weight.copy_(torch.randn(8))
        slim.bias.copy_(torch.randn(8))
    channels = round(8 * width)
    small = nn.GroupNorm(channels // 2, channels).double()
    small.load_state_dict({"weight": slim.weight[:channels], "bias": slim.bias[:channels]})
    x = torch.randn(3, 8, 5, 5, dtype=torch.float64)
    with at_width(width):
        narrow = slim(x[:, :channels])
    torch.testing.assert_close(narrow, small(x[:, :channels]))
    # and the same as in the full network
    torch.testing.assert_close(narrow, slim(x)[:, :channels])


def test_groups_that_a_width_cuts_through_are_refused():
    with pytest.raises(RequestError, match=r"4 channels per group, and width 0\.25 has 2"):
        segments(network(SlimGroupNorm(2, 8)), (0.25, 1.0))
    with pytest.raises(ValueError, match="3 groups do not divide 8"):
        SlimGroupNorm(3, 8)


def test_batch_norm_keeps_one_set_of_statistics_per_width_as_separate_layers_would():
    slim = SlimBatchNorm2d(8, WIDTHS).double()
    separate = {0.5: nn.BatchNorm2d(4).double(), 1.0: nn.BatchNorm2d(8).double()}
    for width in (0.5, 1.0, 0.5, 0.5):
        channels = round(8 * width)
        x = 3 * torch.randn(6, channels, 4, 4, dtype=torch.float64) + width
        with at_width(width):
            torch.testing.assert_close(slim(x), separate[width](x))
    slim.eval()
    for width, layer in separate.items():
        _, _, mean, variance = slim.at(width)
        torch.testing.assert_close(mean.detach(), layer.running_mean)
        torch.testing.assert_close(variance.detach(), layer.running_var)
        x = torch.randn(2, round(8 * width), 4, 4, dtype=torch.float64)
        with at_width(width):
            torch.testing.assert_close(slim(x), layer.eval()(x))


def test_what_a_width_has_of_its_own_is_in_its_segment():
    net = network(SlimBatchNorm2d(8, WIDTHS))
    cut = segments(net, WIDTHS)
    sizes = cut.sizes.tolist()
    # convolution 9 weights and a bias per channel, linear 10 per channel and 10 biases
    assert sizes[0] == 4 * 10 + 4 * 4 + 4 * 10 + 10
    assert sizes[1] == 4 * 10 + 4 * 8 + 4 * 10


def test_a_width_that_the_layer_was_not_made_for_is_refused():
    with pytest.raises(RequestError, match=r"made for the widths 0.5, 1.0, not for 0.25"):
        asking.run(
            network=network(SlimBatchNorm2d(8, WIDTHS)),
            model__widths=(0.25, 1.0),
            data__dataset="synthetic",
            rounds=1,
        )


def test_norms_are_not_multiply_adds():
    plain = cost(network(nn.Identity()), WIDTHS, (1, 12, 12))
    for norm in (SlimGroupNorm(4, 8), SlimBatchNorm2d(8, WIDTHS)):
        assert [row.multiply_adds for row in cost(network(norm), WIDTHS, (1, 12, 12))] == [
            row.multiply_adds for row in plain
        ]


def plain_rounds(net, sim, training, rounds):
    """Federated averaging of whole state vectors in plain torch, one device after the other."""
    mean, deviation = sim.setting.dataset.normalisation("standard")
    pixels = torch.from_numpy(sim.setting.dataset.train.images).float() / 255
    images = ((pixels - torch.from_numpy(mean)) / torch.from_numpy(deviation)).permute(0, 3, 1, 2)
    labels = torch.from_numpy(sim.setting.dataset.train.labels)
    from slimfl.engines import Task
    from slimfl.training import Work

    start = {name: p.detach().clone() for name, p in net.named_parameters()}
    for number in range(1, rounds + 1):
        devices = range(sim.experiment.federation.devices)
        made = sim.engine.workload.schedules(number, [Task(k, Work((0, 1))) for k in devices])
        results = []
        for schedule in made:
            net.load_state_dict(start)
            trained = [p for p in net.parameters() if p.requires_grad]
            optimiser = torch.optim.SGD(
                trained, lr=training["rate"], weight_decay=training["decay"]
            )
            net.train()
            for at in range(schedule.steps):
                index = schedule.samples[slice(*schedule.batch_offsets[at : at + 2])]
                loss = torch.zeros(())
                for width in reversed(WIDTHS):
                    with at_width(width):
                        loss = loss + 0.5 * nn.functional.cross_entropy(
                            net(images[index]), labels[index]
                        )
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            results.append({k: v.detach().clone() for k, v in net.state_dict().items()})
        start = {name: sum(one[name] for one in results) / len(results) for name in start}
    return start


def test_statistics_travel_with_the_model_and_no_optimiser_moves_them():
    """Weight decay would shrink them, and vmapped cohorts would lose them."""
    settings = {
        "data__dataset": "synthetic", "federation__devices": 3, "rounds": 2, "engine": "torch",
        "training__algorithm": "slimtrain", "training__order": "accumulate",
        "training__optimiser": "sgd", "training__momentum": 0.0, "training__learning_rate": 0.05,
        "training__weight_decay": 0.3, "training__steps": 4, "radio__noise_dbm": -120,
        "training__optimiser_state": "fresh",
    }  # fmt: skip
    net = network(SlimBatchNorm2d(8, WIDTHS))
    run = asking.run(network=network(SlimBatchNorm2d(8, WIDTHS)), **settings)
    experiment = run.experiment
    sim = slimfl.round.Simulation(experiment, network=network(SlimBatchNorm2d(8, WIDTHS)))
    expected = plain_rounds(net, sim, {"rate": 0.05, "decay": 0.3}, rounds=2)
    for name, parameter in run.network.named_parameters():
        np.testing.assert_allclose(
            parameter.detach().numpy(), expected[name].numpy(), rtol=2e-4, atol=2e-5, err_msg=name
        )
    assert run.network[1].variance0.min() > 0


def plain(norm):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)
    )


def test_a_plain_network_with_norms_is_made_slimmable_and_computes_the_same():
    images = torch.randn(4, 1, 6, 6)
    batch_normed = plain(nn.BatchNorm2d(8))
    batch_normed(images)  # statistics that are not the initial ones
    for original in (plain(nn.GroupNorm(4, 8)), batch_normed):
        adapted = slimmable(original, WIDTHS)
        torch.testing.assert_close(adapted.eval()(images), original.eval()(images))
        with at_width(0.5):
            assert adapted(images).shape == (4, 3)


def test_batch_norm_without_widths_says_what_to_give():
    with pytest.raises(RequestError, match=r"slimmable\(network, widths=\(0.5, 1.0\)\)"):
        slimmable(plain(nn.BatchNorm2d(8)))


def test_torchs_own_norms_between_slimmable_layers_are_refused_with_what_to_use():
    for norm, word in (
        (nn.BatchNorm2d(8), "SlimBatchNorm2d"),
        (nn.GroupNorm(4, 8), "SlimGroupNorm"),
    ):
        with pytest.raises(RequestError, match=word):
            asking.run(network=network(norm), data__dataset="synthetic", rounds=1)


def test_a_network_without_slimmable_layers_is_refused():
    with pytest.raises(RequestError, match="no slimmable layer"):
        asking.run(network=plain(nn.Identity()), data__dataset="synthetic", rounds=1)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_sub_network_on_its_own_has_torchs_norms_and_computes_the_same(width):
    images = torch.randn(5, 1, 6, 6)
    for norm in (SlimGroupNorm(4, 8), SlimBatchNorm2d(8, WIDTHS)):
        whole = network(norm)
        for one in WIDTHS:
            with at_width(one):
                whole(images)  # statistics that are not the initial ones
        alone = standalone(whole.eval(), width)
        assert isinstance(alone[1], nn.GroupNorm | nn.BatchNorm2d)
        with at_width(width):
            torch.testing.assert_close(alone(images), whole(images))
