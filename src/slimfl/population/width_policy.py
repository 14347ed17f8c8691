"""Which width a device trains in a round: a policy, within what the device can do.

What a device can do is the population's. Methods see the device with the width of the policy: a
SlimFL device limited to 0.5x trains and sends segment 1 alone, and Vanilla FL-1.0x leaves it out.
"""

import numpy as np
from numpy.typing import NDArray

from slimfl.config import PopulationSection
from slimfl.population.population import Population
from slimfl.population.widths import width_indices
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
    """For every device, the index of the widest width that it trains in a round.

    `charge` is the share of its battery that each device has left, 1 on the mains; without it all
    batteries are full.
    """
    able = devices.max_width
    match section.width:
        case "fixed":
            assert section.fixed_width is not None
            given = np.array([section.fixed_width])
            [most] = width_indices(given, widths, "population.fixed_width").tolist()
            return np.asarray(np.minimum(able, most))
        case "random":
            # device k has the k-th draw, whoever else takes part
            draws = draws_of(seed, "width", round, devices.ids)
            return np.floor(draws * (able + 1)).astype(np.int64)
        case "growing":
            return np.minimum(able, (round - 1) // section.grow_every)
        case "battery":
            if charge is None:
                return able
            return np.minimum(able, np.floor(charge * len(widths)).astype(np.int64))
    return able
