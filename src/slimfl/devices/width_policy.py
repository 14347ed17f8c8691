"""Which width a device trains in a round: a policy within the device's capability.

The population has the capability. Methods see the device with the policy's width: a SlimFL device
limited to 0.5x trains and sends only segment 1, and Vanilla FL-1.0x leaves it out.
"""

import numpy as np
from numpy.typing import NDArray

from slimfl.devices.population import Population
from slimfl.devices.widths import width_indices
from slimfl.experiment import PopulationSection
from slimfl.rng import draws_of

Indices = NDArray[np.int64]


def widest_widths(
    section: PopulationSection,
    devices: Population,
    widths: tuple[float, ...],
    *,
    seed: int,
    round: int,
    charge: NDArray[np.float64] | None = None,
) -> Indices:
    """Per device, the index of the widest width that it trains in a round.

    `charge` is the remaining share of each device's battery, 1 on mains power; None means full.
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
