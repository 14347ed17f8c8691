"""A small slimmable network, and samples to train it on."""

import numpy as np
import pytest
import torch
from torch import nn

from slimfl.data import Samples
from slimfl.nn import slimmable
from slimfl.training import Images


@pytest.fixture
def make_network():
    """A smooth network (no dead units), always with the same weights."""

    def make():
        torch.manual_seed(0)
        return slimmable(
            nn.Sequential(
                nn.Conv2d(1, 4, 3),
                nn.Tanh(),
                nn.Conv2d(4, 8, 1),
                nn.Tanh(),
                nn.AdaptiveAvgPool2d(2),
                nn.Flatten(),
                nn.Linear(32, 3),
            )
        )

    return make


@pytest.fixture
def samples():
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (64, 6, 6, 1), dtype=np.uint8)
    return Samples(images, random.integers(0, 3, 64))


@pytest.fixture
def images(samples):
    """The samples as a trainer takes them: (x / 255 - 0.5) / 0.25."""
    return Images(samples, np.float32([0.5]), np.float32([0.25]))


@pytest.fixture
def tensors(samples):
    """The same samples, normalised here and not by the code under test."""
    pixels = torch.from_numpy(samples.images).permute(0, 3, 1, 2).to(torch.float64)
    return ((pixels / 255 - 0.5) / 0.25).float(), torch.from_numpy(samples.labels)
