"""How much of the paper's work a reproduction does: rounds, local work, seeds, test images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slimfl.errors import RequestError

#: The paper's three data distributions, the least even first.
ALPHAS = (0.1, 1.0, 10.0)
PAPER_ROUNDS, PAPER_DEVICES = 1000, 10


@dataclass(frozen=True)
class Scale:
    """One size of the whole reproduction."""

    name: str
    rounds: dict[float, int]
    """By alpha: accuracy rises longer if the data is less even."""
    seeds: int
    """Seeds of the grid behind tables III and VII and figure 7."""
    seeds_curves: int
    """Seeds of figures 2 and 5 and the middle noise of figure 7, where the paper shows single
    curves."""
    seeds_elsewhere: int
    """Seeds of figure 6 and of choices that no source settles."""
    seeds_study: int
    """Seeds of the study of Vanilla FL."""
    steps: int | None
    """Local steps per round with 10 devices; None for the paper's whole epoch."""
    test_samples: int | None
    evaluate_every: int
    convergence_window: int
    convergence_accuracy: float
    last_share: float
    """The share of last rounds over which a final accuracy is averaged."""
    device_counts: tuple[int, ...]
    """For figure 6."""
    draws: int
    """Simulated uploads for table VI."""
    convex: str
    """The scale of the convex study."""

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
    def shortened(self) -> str:
        """The differences from the paper's own scale, in one sentence."""
        if self.rounds == dict.fromkeys(ALPHAS, PAPER_ROUNDS) and not self.quick_look:
            return (
                f"Nothing is shortened: {PAPER_ROUNDS} rounds of one local epoch, {self.seeds} "
                "seeds."
            )
        spans = ", ".join(f"{count} at alpha = {alpha:g}" for alpha, count in self.rounds.items())
        tested = "all" if self.test_samples is None else f"the first {self.test_samples:,}"
        every = "round" if self.evaluate_every == 1 else f"{self.evaluate_every} rounds"
        devices = ", ".join(map(str, self.device_counts))
        look = ", a quick look in which nothing has converged" if self.quick_look else ""
        return (
            f"Shortened against the paper{look}: rounds ({spans}; the paper {PAPER_ROUNDS:,}); "
            f"{self._local_work_in_words}; tested on {tested} test images every {every}; "
            f"{self._seeds_in_words}; figure 6 with {devices} devices; converged means a mean "
            f"accuracy above {self.convergence_accuracy:.0%} over {self.convergence_window} rounds "
            "(the paper 80% over 100); a final accuracy is the mean over the last "
            f"{self.last_share:.1%} of the rounds."
        )

    @property
    def _local_work_in_words(self) -> str:
        if self.steps is None:
            return "local work as in the paper (one epoch)"
        return (
            f"local work ({self.steps} steps of 16 images per device and round with "
            f"{PAPER_DEVICES} devices; the paper an epoch, about 375 such steps)"
        )

    @property
    def _seeds_in_words(self) -> str:
        return (
            f"{_seeds(self.seeds)} for tables III and VII and the good and poor channels of figure "
            f"7, {_seeds(self.seeds_curves)} for figures 2 and 5 and the middle channel of figure "
            f"7, {_seeds(self.seeds_elsewhere)} elsewhere"
        )


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


SCALES = {
    "smoke": Scale(
        name="smoke",
        rounds=dict.fromkeys(ALPHAS, 5),
        seeds=2,
        seeds_curves=1,
        seeds_elsewhere=1,
        seeds_study=1,
        steps=10,
        test_samples=500,
        evaluate_every=1,
        convergence_window=2,
        convergence_accuracy=0.2,
        last_share=0.5,
        device_counts=(10, 20),
        draws=10_000,
        convex="smoke",
    ),
    "small": Scale(
        name="small",
        rounds={0.1: 80, 1.0: 40, 10.0: 40},
        seeds=3,
        seeds_curves=1,
        seeds_elsewhere=1,
        seeds_study=1,
        steps=60,
        test_samples=5_000,
        evaluate_every=2,
        convergence_window=10,
        convergence_accuracy=0.6,
        last_share=0.25,
        device_counts=(10, 20, 40, 70),
        draws=10_000,
        convex="small",
    ),
    # the first rounds of `paper`, enough to reach what the paper reports
    "standard": Scale(
        name="standard",
        rounds={0.1: 150, 1.0: 80, 10.0: 80},
        seeds=3,
        seeds_curves=3,
        seeds_elsewhere=1,
        seeds_study=2,
        steps=None,
        test_samples=None,
        evaluate_every=1,
        # a window of 100 does not fit into 80 rounds
        convergence_window=20,
        convergence_accuracy=0.8,
        last_share=0.125,
        device_counts=(10, 20, 40, 70),
        draws=10_000,
        convex="small",
    ),
    "paper": Scale(
        name="paper",
        rounds=dict.fromkeys(ALPHAS, PAPER_ROUNDS),
        seeds=3,
        seeds_curves=3,
        seeds_elsewhere=3,
        seeds_study=3,
        steps=None,
        test_samples=None,
        evaluate_every=1,
        convergence_window=100,
        convergence_accuracy=0.8,
        last_share=0.1,
        device_counts=(10, 20, 30, 40, 50, 60, 70, 80, 90, 100),
        draws=10_000,
        convex="paper",
    ),
}


def scale(name: str) -> Scale:
    """A scale by its name."""
    try:
        return SCALES[name]
    except KeyError:
        raise RequestError(
            f"there is no scale {name!r}; choose one of {', '.join(SCALES)}"
        ) from None
