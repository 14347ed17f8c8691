"""Who trains in a round, and at which width.

A random share of the devices is asked, and some of them drop out. A device trains a width within
its capability: methods see it with the policy's width, so a SlimFL device limited to 0.5x trains
and sends only segment 1, and Vanilla FL-1.0x leaves it out.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.devices.population import Population, width_indices
from slimfl.experiment import FederationSection, PopulationSection
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

    Args:
        section: How many take part, and how many drop out.
        seed: The experiment's.
        round: Number of the round.
        availability: [device] share of rounds in which it can be reached; None means all.
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


def widest_widths(
    section: PopulationSection,
    devices: Population,
    widths: tuple[float, ...],
    *,
    seed: int,
    round: int,
    charge: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """[device]: the index of the widest width that it trains in a round.

    Args:
        section: The policy.
        devices: Those that take part.
        widths: Those of the network.
        seed: The experiment's.
        round: Number of the round.
        charge: [device] remaining share of its battery, 1 on mains power; None means full.
    """
    able = devices.max_width
    match section.width:
        case "fixed":
            assert section.fixed_width is not None
            given = np.array([section.fixed_width])
            [most] = width_indices(given, widths, "population.fixed_width").tolist()
            return np.asarray(np.minimum(able, most))
        case "random":
            # device k gets the k-th draw, whoever else takes part
            draws = draws_of(seed, "width", round, devices.ids)
            return np.floor(draws * (able + 1)).astype(np.int64)
        case "growing":
            return np.minimum(able, (round - 1) // section.grow_every)
        case "battery":
            if charge is None:
                return able
            return np.minimum(able, np.floor(charge * len(widths)).astype(np.int64))
    return able
