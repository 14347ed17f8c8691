"""Which width a device uses next: by a budget, or by the confidence of the narrow one.

It needs only NumPy; the networks run in whatever runtime the device has.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slimfl.errors import RequestError
from slimfl.files import read_json

#: A network at one width: images in, one row of probabilities per image out.
Classify = Callable[[NDArray[Any]], ArrayLike]


@dataclass(frozen=True)
class Answers:
    """The answers of a cascade."""

    probabilities: NDArray[np.float64]
    """One row per image."""
    widths: NDArray[np.float64]
    """The width whose answer was used, per image."""
    cost: float
    """Mean cost per image: the narrow width for all, the full one for those it was unsure of."""


class WidthPolicy:
    """A choice of width at run time.

    >>> policy = WidthPolicy({0.5: 1.0, 1.0: 3.0}, hysteresis=0.2)
    >>> [policy.within(budget) for budget in (5, 2.9, 3.1, 3.7, 3.1)]
    [1.0, 0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self,
        costs: Mapping[float, float],
        *,
        hysteresis: float = 0.1,
        confidence: float = 0.8,
    ) -> None:
        """Describe the widths.

        Args:
            costs: Cost of one image at every width, in any unit: joules, seconds, multiply-adds.
                A wider width costs more.
            hysteresis: A wider width is used only if the budget exceeds its cost by this share,
                so that the width does not oscillate when the budget is close to a cost.
            confidence: In a cascade, the full width is used for images whose most probable class
                has a lower probability than this.
        """
        self.costs = {float(width): float(cost) for width, cost in sorted(costs.items())}
        self.widths = tuple(self.costs)
        values = list(self.costs.values())
        if not self.widths or not all(0 < width <= 1 for width in self.widths):
            raise RequestError("costs must have at least one width, each above 0 and at most 1")
        if not all(math.isfinite(cost) and cost > 0 for cost in values) or any(
            narrow >= wide for narrow, wide in itertools.pairwise(values)
        ):
            raise RequestError(
                "every cost must be above 0 and finite, and a wider width must cost more"
            )
        if not (math.isfinite(hysteresis) and hysteresis >= 0):
            raise RequestError(f"hysteresis must be 0 or more, not {hysteresis}")
        if not 0 <= confidence <= 1:
            raise RequestError(f"confidence must be from 0 to 1, not {confidence}")
        self.hysteresis, self.confidence = hysteresis, confidence
        self._current: float | None = None

    @classmethod
    def from_manifest(
        cls,
        manifest: Path | str | Mapping[str, Any],
        *,
        cost: str = "joules_per_image",
        precision: str = "float32",
        hysteresis: float = 0.1,
        confidence: float = 0.8,
    ) -> Self:
        """The widths of an export, from its `manifest.json` or the contents of that file.

        `cost` names the field to use: `joules_per_image`, `multiply_adds` or `latency_ms`.
        """
        document: Any = manifest
        try:
            if isinstance(manifest, Path | str):
                document = read_json(Path(manifest))
            models = [model for model in document["models"] if model["precision"] == precision]
            costs = {float(model["width"]): model[cost] for model in models}
        except OSError as error:
            raise RequestError(f"{manifest} cannot be read ({error.strerror})") from None
        except (KeyError, TypeError, ValueError, RecursionError):
            raise RequestError(
                f"this is not the manifest of an export whose models have a {cost!r}"
            ) from None
        if not models:
            raise RequestError(f"the manifest has no model of precision {precision!r}")
        if not all(isinstance(value, int | float) for value in costs.values()):
            raise RequestError(f"the manifest has no {cost}: export with --measure for a latency")
        return cls(costs, hysteresis=hysteresis, confidence=confidence)

    def within(self, budget: float) -> float:
        """The width for the next image under a budget per image, in the unit of the costs.

        It never costs more than the budget, unless even the narrowest does.
        """
        if self._current is None:
            affordable = [width for width in self.widths if self.costs[width] <= budget]
        else:
            affordable = [
                width
                for width in self.widths
                if self.costs[width] * (1 + self.hysteresis * (width > self._current)) <= budget
            ]
        self._current = max(affordable, default=self.widths[0])
        return self._current

    def unsure(self, probabilities: ArrayLike) -> NDArray[np.bool_]:
        """Rows whose most probable class is not probable enough, or NaN."""
        rows = np.atleast_2d(np.asarray(probabilities, np.float64))
        unsure: NDArray[np.bool_] = ~(rows.max(axis=1) >= self.confidence)
        return unsure

    def cascade(self, images: NDArray[Any], classify: Mapping[float, Classify]) -> Answers:
        """Use the narrowest width for all images, and the widest for those it is unsure of.

        `classify` has a function for each of these two widths that gives one row of probabilities
        per image. `probabilities_of` makes them from logits.
        """
        narrow, full = self.widths[0], self.widths[-1]
        for width in (narrow, full):
            if width not in classify:
                raise RequestError(f"cascade() needs a function for width {width}")
        answers = np.array(classify[narrow](images), np.float64, ndmin=2)
        widths = np.full(len(answers), narrow)
        asked = np.flatnonzero(self.unsure(answers)) if narrow != full else np.array([], np.int64)
        if len(asked):
            answers[asked] = classify[full](images[asked])
            widths[asked] = full
        share = len(asked) / len(answers) if len(answers) else 0.0
        return Answers(answers, widths, self.costs[narrow] + share * self.costs[full])


def probabilities_of(logits: ArrayLike) -> NDArray[np.float64]:
    """Softmax over the last axis.

    >>> probabilities_of([[0.0, 0.0], [1000.0, 0.0]]).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    values = np.asarray(logits, np.float64)
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    shares: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return shares
