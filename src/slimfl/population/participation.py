"""Who trains in a round: a random share of the devices, less those that drop out."""

from dataclasses import dataclass

import numpy as np

from slimfl.config import FederationSection
from slimfl.rng import generator


@dataclass(frozen=True)
class Cohort:
    """The devices asked in a round."""

    active: list[int]
    """Those that train and send."""
    dropped_out: list[int]
    """Those that did not answer."""


def cohort(section: FederationSection, seed: int, round: int) -> Cohort:
    """A function of (seed, round): at least one device is asked."""
    asked = max(1, round_half_up(section.participation * section.devices))
    random = generator(seed, "participation", round)
    if asked < section.devices:
        devices = np.sort(random.choice(section.devices, asked, replace=False, shuffle=False))
    else:
        devices = np.arange(section.devices)
    silent = generator(seed, "dropout", round).random(section.devices)[devices] < section.dropout
    return Cohort(devices[~silent].tolist(), devices[silent].tolist())


def round_half_up(value: float) -> int:
    """Halves go up, unlike Python's round, so that 0.5 of 5 devices are 3."""
    return int(value + 0.5)
