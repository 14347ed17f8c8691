"""`[federation]`, `[server]` and `[privacy]`: who trains, and what is made of what arrives."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from slimfl.experiment.sections.section import (
    BelowOne,
    Count,
    Fraction,
    Positive,
    Section,
    at_least,
)


class FederationSection(Section):
    """Rounds: who trains, what is merged, when it ends."""

    devices: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    """Number of devices."""
    participation: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the devices asked to train in a round."""
    dropout: BelowOne = 0.0
    """Chance that an asked device does not answer."""
    average: Literal["uniform", "samples"] = "uniform"
    """Whether devices count equally or by their number of samples."""
    missing: Literal["keep", "zero"] = "keep"
    """A segment that nobody delivered: keep its last value, or the paper's literal zero."""
    absent: Literal["skip", "old", "stale", "zero"] = "skip"
    """A device that was asked for a segment which did not arrive, where another's did: left out of
    the mean, as in the paper, or counted in it as the `old` global model, as the last one that did
    arrive from it (`stale`: the server keeps one vector for every device that it ever heard), or as
    `zero`. A device that cannot train a segment is not asked for it. In asynchronous mode, one
    counts every upload that should have contained the segment since its last merge."""
    clip_norm: Positive = 1000.0
    """Largest norm of the change that one update makes to the model; a larger change is scaled down
    to it, and one that is 1000 times larger is refused. No normal training comes near."""
    clip_value: Positive = 100.0
    """The same for the change of a single parameter."""
    evaluate_every: Count = 1
    """Rounds between two evaluations on the test set."""
    evaluate_all_from: Count | None = None
    """Test every round from this one on, too: the mean of many tests is a more precise score."""
    average_last: Annotated[int, Field(ge=0, le=10_000)] = 0
    """n: also test the mean of the models of the last n rounds, as a second score. The server keeps
    n models for it; training goes on from the last one."""
    checkpoint_every: Count = 1
    """Rounds between two checkpoints."""
    stop_on_convergence: bool = False
    """End the run in the first round whose window passes the convergence test at every width."""
    convergence_window: Count = 100
    """Number of rounds in the window of the convergence test."""
    convergence_accuracy: Fraction = 0.80
    """The mean accuracy over the window must be above this."""
    convergence_deviation: Positive = 0.072
    """The deviation over the window must be below this."""

    def tests(self, number: int) -> bool:
        """Whether a round is tested; the last one of a run always is."""
        late = self.evaluate_all_from is not None and number >= self.evaluate_all_from
        return late or number % self.evaluate_every == 0


class ServerSection(Section):
    """What the server does with the mean change of a round; by default it takes it as it is."""

    optimiser: Literal["none", "momentum", "adam"] = "none"
    """`momentum` is FedAvgM, `adam` is FedAdam; parameters that did not arrive do not change."""
    learning_rate: Positive = 1.0
    """Learning rate of the server's step; use 0.01 or less for FedAdam."""
    momentum: BelowOne = 0.9
    """Momentum only: the share of the last step that is kept."""
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.99)
    """Adam only."""
    tau: Positive = 1e-3
    """Adam only: constant that is added to the root of the second moment."""


class PrivacySection(Section):
    """Differential privacy of what devices contribute; off without a clipping norm."""

    clip_norm: Positive | None = None
    """C: the delivered part of a device's update is clipped to this norm."""
    noise_multiplier: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """z: the sum of a segment's updates gets Gaussian noise of deviation z C."""
    delta: Annotated[float, Field(gt=0, lt=1), at_least(1e-100)] = 1e-5
    """The delta for which epsilon is reported."""
    noise: Literal["secret", "seeded"] = "secret"
    """`secret`: from the operating system's cryptographic generator, so two runs differ; `seeded`:
    from the seed, so a run can be repeated, and whoever knows the seed can take the noise off
    again."""

    @model_validator(mode="after")
    def _noise_needs_a_norm(self) -> PrivacySection:
        if self.noise_multiplier > 0 and self.clip_norm is None:
            raise ValueError("privacy.noise_multiplier needs privacy.clip_norm; give both")
        if 0 < self.noise_multiplier < 1e-3:
            raise ValueError("privacy.noise_multiplier must be 0 or at least 0.001")
        return self
