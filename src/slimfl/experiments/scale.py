"""How much of the paper's work a reproduction does: rounds, local work, seeds, test images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slimfl.errors import RequestError

#: The paper's three data distributions, the most uneven first.
ALPHAS = (0.1, 1.0, 10.0)
PAPER_ROUNDS, PAPER_DEVICES = 1000, 10


@dataclass(frozen=True)
class Scale:
    """One size of the whole reproduction."""

    name: str
    rounds: dict[float, int]
    """By alpha: the more uneven the data, the longer accuracy rises."""
    seeds: int
    """Where the paper shows a spread."""
    seeds_elsewhere: int
    """Where it shows a single curve."""
    steps: int | None
    """Local steps a round with 10 devices; None for the paper's whole epoch."""
    test_samples: int | None
    evaluate_every: int
    convergence_window: int
    convergence_accuracy: float
    last_share: float
    """The share of the rounds, at the end, over which a final accuracy is averaged."""
    device_counts: tuple[int, ...]
    """For figure 6."""
    draws: int
    """Simulated uploads for table VI."""
    convex: str
    """The scale of the convex study."""

    def last_rounds(self, alpha: float) -> int:
        """The rounds at the end over which a final accuracy is averaged."""
        return max(1, round(self.rounds[alpha] * self.last_share))

    def local_work(self, devices: int) -> dict[str, Any]:
        """The local training of one device in a round.

        The paper's epoch passes over all 60,000 images whatever the number of devices; a shortened
        one keeps that: twice the devices, half the steps each.
        """
        if self.steps is None:
            return {"training__epochs": 1}
        return {"training__steps": max(1, round(self.steps * PAPER_DEVICES / devices))}

    @property
    def shortened(self) -> str:
        """What differs from the paper's own scale, in one sentence."""
        if self.steps is None:
            return (
                f"Nothing is shortened: {PAPER_ROUNDS} rounds of one local epoch, {self.seeds} "
                "seeds."
            )
        spans = ", ".join(f"{count} at alpha = {alpha:g}" for alpha, count in self.rounds.items())
        tested = "all" if self.test_samples is None else f"the first {self.test_samples:,}"
        return (
            f"Shortened against the paper: rounds ({spans}; the paper {PAPER_ROUNDS:,}); local "
            f"work ({self.steps} steps of 16 images a device and round with {PAPER_DEVICES} "
            f"devices; the paper an epoch, about 375 such steps); tested on {tested} test "
            f"images every {self.evaluate_every} rounds; {self.seeds} seeds where the paper shows "
            f"a spread, {self.seeds_elsewhere} elsewhere; converged means a mean accuracy above "
            f"{self.convergence_accuracy:.0%} over {self.convergence_window} rounds (the paper 80% "
            "over 100)."
        )


SCALES = {
    "smoke": Scale(
        name="smoke",
        rounds=dict.fromkeys(ALPHAS, 5),
        seeds=2,
        seeds_elsewhere=1,
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
        seeds_elsewhere=1,
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
    "paper": Scale(
        name="paper",
        rounds=dict.fromkeys(ALPHAS, PAPER_ROUNDS),
        seeds=3,
        seeds_elsewhere=3,
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
