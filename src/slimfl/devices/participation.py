"""Who trains in a round: a random share of the devices, minus those that drop out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.experiment import FederationSection
from slimfl.rng import draws_of, generator


@dataclass(frozen=True)
class Cohort:
    """The devices asked in a round."""

    active: list[int]
    """Those that train and send."""
    dropped_out: list[int]
    """Those that did not answer."""
    offline: tuple[int, ...] = ()
    """Those of `dropped_out` that could not be reached."""


def cohort(
    section: FederationSection,
    seed: int,
    round: int,
    availability: NDArray[np.float64] | None = None,
) -> Cohort:
    """A function of (seed, round): at least one device is asked.

    `availability` is the share of rounds in which each device can be reached; None means all.
    """
    asked = max(1, round_half_up(section.participation * section.devices))
    random = generator(seed, "participation", round)
    if asked < section.devices:
        devices = np.sort(random.choice(section.devices, asked, replace=False, shuffle=False))
    else:
        devices = np.arange(section.devices)
    silent = np.zeros(len(devices), bool)
    if section.dropout:
        silent = draws_of(seed, "dropout", round, devices) < section.dropout
    if availability is None:
        return Cohort(devices[~silent].tolist(), devices[silent].tolist())
    offline = draws_of(seed, "availability", round, devices) >= availability[devices]
    silent |= offline
    return Cohort(
        devices[~silent].tolist(), devices[silent].tolist(), tuple(devices[offline].tolist())
    )


def round_half_up(value: float) -> int:
    """Round halves up, unlike Python's round, so that 0.5 of 5 devices are 3."""
    return int(value + 0.5)
