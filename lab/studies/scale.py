"""How much work a study does: rounds, local steps, seeds and test images of each of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lab.reproduction.cells.cell import Cell, cell_of
from slimfl.errors import RequestError


@dataclass(frozen=True)
class StudyScale:
    """One size of a study."""

    name: str
    rounds: int
    steps: int
    """Local steps of 16 images per device and round, with 10 devices."""
    seeds: int
    rival_rounds: int
    """Of the study of rivals: more, because its data are spread over more devices."""
    rival_seeds: int
    """Of the study of rivals in a cell: more, because its differences are small."""
    test_samples: int | None
    evaluate_every: int

    #: The part at the end of a run whose tests are averaged into a final accuracy.
    last_share: ClassVar[float] = 0.3

    def cell(self, method: str, seed: int, *, rounds: int | None = None, **changes: Any) -> Cell:
        """A run of the study; `changes` are further keys with two underscores for the dot.

        Images have half their sides, which takes a quarter of the work. Moments begin anew in every
        round, as in the papers of all rivals, and the learning rate is three times the
        reproduction's, with which SlimFL passes 80% at alpha = 1 within 50 rounds.
        """
        values: dict[str, Any] = {
            "method": method,
            "seed": seed,
            "threads": 1,
            "rounds": self.rounds if rounds is None else rounds,
            "data__downscale": 2,
            "data__test_samples": self.test_samples,
            "training__steps": self.steps,
            "training__learning_rate": 0.003,
            "training__optimiser_state": "fresh",
            "federation__evaluate_every": self.evaluate_every,
        }
        return cell_of(**(values | changes))

    def each_seed(self, method: str, *, seeds: int | None = None, **changes: Any) -> list[Cell]:
        """The same run under every seed."""
        count = self.seeds if seeds is None else seeds
        return [self.cell(method, seed, **changes) for seed in range(count)]

    @property
    def words(self) -> str:
        """What is run, in one sentence."""
        tested = "all" if self.test_samples is None else f"the first {self.test_samples:,}"
        return (
            f"Fashion-MNIST at half its sides (14 x 14), {self.rounds} rounds of {self.steps} "
            "local steps of 16 images per device with 10 devices, half as many steps with 20, "
            f"unless a table says otherwise, and {self.rival_rounds} rounds for rivals; "
            f"{self.seeds} seeds, {self.rival_seeds} for rivals in a cell but Split-Mix; "
            f"tested on {tested} test images every {self.evaluate_every} rounds. A final accuracy "
            f"is the mean of the tests in the last {self.last_share:.0%} of the rounds."
        )


SCALES = {
    "smoke": StudyScale(
        name="smoke",
        rounds=4,
        steps=5,
        seeds=2,
        rival_rounds=8,
        rival_seeds=2,
        test_samples=500,
        evaluate_every=2,
    ),
    "standard": StudyScale(
        name="standard",
        rounds=50,
        steps=100,
        seeds=3,
        rival_rounds=100,
        rival_seeds=5,
        test_samples=None,
        evaluate_every=5,
    ),
}


def scale(name: str) -> StudyScale:
    """A scale by its name."""
    try:
        return SCALES[name]
    except KeyError:
        raise RequestError(
            f"there is no scale {name!r} of studies; choose one of {', '.join(SCALES)}"
        ) from None
