"""The sections about rounds: who trains, what is merged and when, what it costs, who watches."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from slimfl.experiment.sections.section import (
    GIVEN,
    BelowOne,
    Count,
    Fraction,
    Need,
    Positive,
    Seconds,
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

    needs: ClassVar = (Need("noise_multiplier", {"clip_norm": GIVEN}),)

    @field_validator("noise_multiplier")
    @classmethod
    def _none_or_some(cls, multiplier: float) -> float:
        if 0 < multiplier < 1e-3:
            raise ValueError("must be 0 or at least 0.001")
        return multiplier


#: Virtual seconds; the limits are beyond those of any real device.
VirtualSeconds = Annotated[float, Field(gt=0, le=1e9), at_least(1e-9)]

#: The presets of computing energy; `slimfl.devices.computing_energy` has their numbers.
EnergyPreset = Literal["none", "horowitz-45nm", "kappa-1e-28", "kappa-1e-27", "raspberry-pi-4"]


class TimeSection(Section):
    """The virtual clock: how long a round lasts, and which devices finish in time."""

    mode: Literal["wait-for-all", "deadline", "first", "over-commit", "asynchronous"] = (
        "wait-for-all"
    )
    """When the server merges: after all devices; at `deadline_s`; after the `first` updates; after
    as many as `federation.participation` says, of `over_commit` times as many devices asked; or,
    asynchronously, whenever a segment's `buffer` is full."""
    deadline_s: VirtualSeconds | None = None
    """When the server stops listening; required by `deadline`, optional with `first` and
    `over-commit`."""
    first: Count | None = None
    """Number of updates that a round waits for with `mode = "first"`."""
    over_commit: Annotated[float, Field(ge=1, le=1000)] = 1.3
    """Number of devices asked per device needed, with `mode = "over-commit"`."""
    concurrency: Count | None = None
    """Number of devices that work at the same time in asynchronous mode; absent: the share
    `federation.participation` of all devices."""
    buffer: Count | None = None
    """Number of uploads after which a segment is merged in asynchronous mode; absent: the value
    of `concurrency`."""
    buffer_counts: Literal["uploads", "arrivals"] = "uploads"
    """What takes a place in a segment's buffer: every upload that should contain it, or only those
    that arrive."""
    staleness_exponent: Annotated[float, Field(ge=0, le=10)] = 0.5
    """A stale change is weighted by 1 / (1 + staleness) to this power; with 0, all are equal."""
    download_bits_per_s: Annotated[float, Field(gt=0, le=1e15), at_least(1e-3)] | None = None
    """Rate of the downlink; absent: the download takes no time, as in the paper."""

    needs: ClassVar = (
        Need("deadline_s", {"mode": ("deadline", "first", "over-commit")}),
        Need("first", {"mode": ("first",)}),
        Need("over_commit", {"mode": ("over-commit",)}),
        *(
            Need(key, {"mode": ("asynchronous",)})
            for key in ("concurrency", "buffer", "buffer_counts", "staleness_exponent")
        ),
        Need("mode", {"deadline_s": GIVEN}, of=("deadline",)),
        Need("mode", {"first": GIVEN}, of=("first",)),
    )


class EnergySection(Section):
    """How much energy computing and sending cost a device."""

    preset: EnergyPreset = "horowitz-45nm"
    """Computing energy of devices whose class names no preset of its own. Presets differ by two
    orders of magnitude; ratios between widths do not."""
    amplifier_efficiency: Annotated[float, Field(gt=0, le=1), at_least(1e-3)] = 1.0
    """Radiated power divided by the power that the amplifier draws; with 1, only radiated energy
    counts."""
    circuit_power_w: Annotated[float, Field(ge=0, le=1e6)] = 0.0
    """Power that the transmitter draws in addition to the amplifier, while it sends."""


class FlowerSection(Section):
    """The `flower` engine: devices in other processes and on other machines."""

    device_engine: Literal["auto", "torch", "native"] = "auto"
    """The engine that trains on the devices and evaluates on the server."""
    quorum: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of a round's devices that must answer; with fewer the run stops and can be resumed."""
    round_timeout_s: Seconds = 600.0
    """How long the server waits for a device's answer in a round."""
    wait_s: Seconds = 300.0
    """How long the server waits for a quorum of devices before it stops."""
    identity: Literal["registered", "claimed"] = "registered"
    """Which node is device 3 in a deployment: the node whose key was registered under the name
    `device-3`, or any node that claims to be (`partition-id=3` in its node config)."""


class CallbackSection(Section):
    """Who else watches a run."""

    name: str
    """`early-stopping`, or `package.module:Name`, a class derived from `slimfl.Callback`."""
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value


class StageSection(CallbackSection):
    """What happens to an upload on its way."""

    name: str
    """`package.module:Name`, a class derived from `slimfl.round.Stage`."""
