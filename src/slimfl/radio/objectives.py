"""Objectives of a power split, as costs to minimise.

* `bound`: D = sum_i 1/p_i, the channel's part of theorem 1's bound (the paper's objective);
* `delivered`: the expected share of the parameters that arrives, sum_i n_i p_i / sum_i n_i;
* `first-outage`: D again, among the splits that keep the outage 1 - p_1 of segment 1 at or below a
  chosen value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection

OBJECTIVES = ("bound", "delivered", "first-outage")


def inverse_probability_sum(probabilities: ArrayLike) -> float:
    """D = sum_i 1/p_i, the channel's part of the bound; infinite if a segment never arrives."""
    with np.errstate(divide="ignore", over="ignore"):
        return float((1 / np.asarray(probabilities, dtype=np.float64)).sum())


@dataclass(frozen=True)
class Objective:
    """A named objective with its parameters."""

    name: str = "bound"
    sizes: tuple[float, ...] = ()
    """`delivered`: parameters or bits of every message; equal by default."""
    first_outage: float | None = None
    """`first-outage`: the largest outage of segment 1."""

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            raise RequestError(
                f"there is no objective {self.name!r}; choose one of {', '.join(OBJECTIVES)}"
            )
        if self.name == "first-outage" and not 0 < (self.first_outage or 0) < 1:
            raise RequestError("the outage of segment 1 must be above 0 and below 1")

    @classmethod
    def of(cls, section: RadioSection, sizes: Sequence[float] = ()) -> "Objective":
        """From the `radio` section."""
        outage = section.first_outage if section.split_objective == "first-outage" else None
        return cls(section.split_objective, tuple(sizes), outage)

    def cost(self, probabilities: ArrayLike) -> float:
        """The cost of a split with these decoding probabilities."""
        probabilities = np.asarray(probabilities, dtype=np.float64)
        if self.name != "delivered":
            return inverse_probability_sum(probabilities)
        sizes = np.asarray(self.sizes or np.ones(len(probabilities)))
        return -float(sizes @ probabilities / sizes.sum())
