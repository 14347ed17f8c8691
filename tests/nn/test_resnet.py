"""The slimmable ResNet: sizes, widths, orders of channels, and CIFAR-10's binary files."""

import numpy as np
import pytest
import torch

from slimfl.errors import RequestError
from slimfl.nn import at_width, build, cost, flat_order, flatten, load_flat, segments, standalone
from slimfl.round import Simulation
from tests import asking

EIGHTHS = tuple(k / 8 for k in range(1, 9))
SMALL = {"blocks": 1, "channels": [8, 16, 16]}


def test_it_is_resnet_20():
    """269,722 parameters with batch norm and padded shortcuts; ours are projections with norms."""
    network = build("resnet", {}, in_channels=3)
    projections = 16 * 32 + 32 * 64 + 2 * (32 + 64)
    assert flatten(network).size == 269_722 + projections
    # three stages of equal work behind a stem: 41 million with the projections
    full = cost(network, (0.5, 1.0), (3, 32, 32))[1]
    stem = 32 * 32 * 9 * 3 * 16
    stage1 = 6 * 32 * 32 * 9 * 16 * 16
    stage2 = 16 * 16 * 9 * (16 * 32 + 5 * 32 * 32) + 16 * 16 * 16 * 32
    stage3 = 8 * 8 * 9 * (32 * 64 + 5 * 64 * 64) + 8 * 8 * 32 * 64
    assert full.multiply_adds == stem + stage1 + stage2 + stage3 + 640


@pytest.mark.parametrize("width", EIGHTHS)
def test_a_width_is_a_network_of_its_own(width):
    network = build("resnet", SMALL, in_channels=3, seed=2)
    images = torch.randn(3, 3, 16, 16)
    alone = standalone(network, width)
    mask = segments(network, EIGHTHS).mask(width)
    assert sum(p.numel() for p in alone.parameters()) == mask.sum()
    with at_width(width):
        torch.testing.assert_close(alone(images), network(images))
        load_flat(network, np.where(mask, flatten(network), np.float32(99)))
        torch.testing.assert_close(alone(images), network(images))


@pytest.mark.parametrize("order", [("roll", 3), ("shuffle", 5)])
def test_channels_in_another_order_are_the_same_function(order):
    """Only if channels that are normalised together stay together: groups have 1 and 2 of them."""
    network = build("resnet", SMALL, in_channels=3)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    images = torch.randn(4, 3, 16, 16)
    expected = network(images)
    moved = flat_order(network, order)
    assert sorted(moved) == list(range(len(moved)))
    load_flat(network, flatten(network)[moved])
    torch.testing.assert_close(network(images), expected, rtol=1e-4, atol=1e-5)


def test_widths_that_cut_through_a_group_are_refused():
    with pytest.raises(RequestError, match="choose groups that every width has whole"):
        Simulation(
            asking.load(model__name="resnet", model__widths=(0.3, 1.0), data__dataset="synthetic")[
                0
            ]
        )


@pytest.mark.parametrize(
    "options", [{"blocks": 0}, {"blocks": 60}, {"channels": []}, {"groups": 3}, {"channels": ["a"]}]
)
def test_options_that_make_no_network_are_refused(options):
    with pytest.raises(RequestError, match=r"does not take model\.options"):
        build("resnet", options)


@pytest.fixture
def cifar(tmp_path):
    """CIFAR-10's binary format with a bright quadrant per class."""
    random = np.random.default_rng(0)

    def batch(count):
        labels = random.integers(0, 4, count)
        images = random.integers(0, 60, (count, 3, 32, 32), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            row, column = 16 * (label // 2), 16 * (label % 2)
            image[:, row : row + 16, column : column + 16] += 150
        rows = np.concatenate([labels[:, None].astype(np.uint8), images.reshape(count, -1)], 1)
        return rows.tobytes()

    for number in range(1, 6):
        (tmp_path / f"data_batch_{number}.bin").write_bytes(batch(40))
    (tmp_path / "test_batch.bin").write_bytes(batch(40))
    return tmp_path


@pytest.mark.parametrize("method", ["slimfl", "fedrolex", "heterofl"])
def test_it_learns_from_cifars_files(cifar, method):
    run = asking.run(
        method=method, data__dataset=str(cifar), data__downscale=4, model__name="resnet",
        model__options={"blocks": 1, "channels": [8, 16]}, federation__devices=2, rounds=4,
        training__steps=12, training__learning_rate=5e-3, radio__channel="good",
        data__partition="iid",
    )  # fmt: skip
    assert run.experiment.engine == "torch"
    assert run.final_accuracy["1.0x"] > 0.6  # a guess among four classes is 0.25
