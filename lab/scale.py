"""How much work a question does: rounds, local work, seeds, test images. From `scales.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from slimfl.errors import RequestError
from slimfl.results.statistics import ENOUGH_SEEDS

#: The paper's three data distributions, the least even first.
ALPHAS = (0.1, 1.0, 10.0)
PAPER_ROUNDS, PAPER_DEVICES = 1000, 10


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str


class Scale(_Part):
    """One size of the whole reproduction."""

    rounds: Annotated[dict[float, int], BeforeValidator(lambda d: {float(k): d[k] for k in d})]
    """By alpha: accuracy rises longer if the data is less even."""
    seeds: int
    """Seeds of the runs behind tables III and VII and figure 7."""
    seeds_curves: int
    """Seeds of figures 2 and 5, where the paper shows single curves."""
    seeds_elsewhere: int
    """Seeds of figure 6 and of choices that no source settles."""
    seeds_study: int
    """Seeds of the study of Vanilla FL."""
    steps: int | None = None
    """Local steps per round with 10 devices; None for the paper's whole epoch."""
    test_samples: int | None = None
    evaluate_every: int
    convergence_window: int
    convergence_accuracy: float
    last_share: float
    """The share of last rounds over which a final accuracy is averaged."""
    device_counts: tuple[int, ...]
    """For figure 6."""

    #: Simulated uploads for table VI, as many as the paper's.
    draws: ClassVar[int] = 10_000

    def last_rounds(self, alpha: float) -> int:
        """Number of last rounds over which a final accuracy is averaged."""
        return max(1, round(self.rounds[alpha] * self.last_share))

    def local_work(self, devices: int) -> dict[str, Any]:
        """The local training of one device in a round.

        The paper's epoch covers all 60,000 images whatever the number of devices. Shortened work
        follows that: with twice the devices, each takes half the steps.
        """
        if self.steps is None:
            return {"training__epochs": 1}
        return {"training__steps": max(1, round(self.steps * PAPER_DEVICES / devices))}

    @property
    def quick_look(self) -> bool:
        """True if local work is shortened as well, so that nothing has converged."""
        return self.steps is not None

    @property
    def words(self) -> str:
        """The differences from the paper's own scale, in one sentence."""
        if self.rounds == dict.fromkeys(ALPHAS, PAPER_ROUNDS) and not self.quick_look:
            return (
                f"Nothing is shortened: {PAPER_ROUNDS} rounds of one local epoch, {self.seeds} "
                "seeds."
            )
        spans = ", ".join(f"{count} at alpha = {alpha:g}" for alpha, count in self.rounds.items())
        every = "round" if self.evaluate_every == 1 else f"{self.evaluate_every} rounds"
        devices = ", ".join(map(str, self.device_counts))
        look = ", a quick look in which nothing has converged" if self.quick_look else ""
        work = (
            f"local work ({self.steps} steps of 16 images per device and round with "
            f"{PAPER_DEVICES} devices; the paper an epoch, about 375 such steps)"
            if self.quick_look
            else "local work as in the paper (one epoch)"
        )
        return (
            f"Shortened against the paper{look}: rounds ({spans}; the paper {PAPER_ROUNDS:,}); "
            f"{work}; tested on {_images(self.test_samples)} test images every {every}; "
            f"{_seeds(self.seeds)} for tables III and VII and figure 7, "
            f"{_seeds(self.seeds_curves)} for figures 2 and 5, "
            f"{_seeds(self.seeds_elsewhere)} elsewhere; figure 6 with {devices} devices; "
            f"converged means a mean accuracy above {self.convergence_accuracy:.0%} over "
            f"{self.convergence_window} rounds (the paper 80% over 100); a final accuracy is the "
            f"mean over the last {self.last_share:.1%} of the rounds."
        )


class StudyScale(_Part):
    """One size of our own studies."""

    rounds: int
    steps: int
    """Local steps of 16 images per device and round, with 10 devices."""
    seeds: int
    rival_rounds: int
    """Of the study of rivals: more, because its data are spread over more devices."""
    rival_seeds: int
    """Of the study of rivals in a cell: more, because its differences are small."""
    test_samples: int | None = None
    evaluate_every: int

    #: The part at the end of a run whose tests are averaged into a final accuracy.
    last_share: ClassVar[float] = 0.3

    @property
    def words(self) -> str:
        """What is run, in one sentence."""
        return (
            f"Fashion-MNIST at half its sides (14 x 14), {self.rounds} rounds of {self.steps} "
            "local steps of 16 images per device with 10 devices, half as many steps with 20, "
            f"unless a table says otherwise, and {self.rival_rounds} rounds for rivals; "
            f"{self.seeds} seeds, {self.rival_seeds} for rivals in a cell but Split-Mix; tested on "
            f"{_images(self.test_samples)} test images every {self.evaluate_every} rounds. A final "
            f"accuracy is the mean of the tests in the last {self.last_share:.0%} of the rounds. "
            f"Whatever rests on fewer than {ENOUGH_SEEDS} seeds is preliminary."
        )


class ConvexScale(_Part):
    """One size of the measurements on the convex problem."""

    repetitions: int
    rounds: int
    draws: int
    """Number of rounds over which a variance is measured."""


_Kind = TypeVar("_Kind", Scale, StudyScale, ConvexScale)


def scale(name: str) -> Scale:
    """A scale of the reproduction by its name."""
    return _named("reproduce", name, Scale)


def study_scale(name: str) -> StudyScale:
    """A scale of the studies by its name."""
    return _named("study", name, StudyScale)


def convex_scale(name: str) -> ConvexScale:
    """A scale of the convex problem by its name."""
    return _named("convex", name, ConvexScale)


def names(kind: str) -> list[str]:
    """The scales of one kind of question."""
    return list(_read()[kind])


def _named(kind: str, name: str, made: type[_Kind]) -> _Kind:
    if name not in _read()[kind]:
        raise RequestError(f"there is no scale {name!r}; choose one of {', '.join(names(kind))}")
    return made(name=name, **_read()[kind][name])


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("scales.toml").read_text())


def _images(count: int | None) -> str:
    return "all" if count is None else f"the first {count:,}"


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"
