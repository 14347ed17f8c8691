"""One run as a row of the closing table, computed only from its metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, pstdev
from typing import Any, Self

from slimfl.results.axes import clock_s
from slimfl.results.batteries import Moment, emptied
from slimfl.results.energy import computing_counted, energy_presets, sending_energy_j
from slimfl.results.groups import BUILT_IN_CHANNEL
from slimfl.results.learned import run_learned_above
from slimfl.results.records import RunRecord
from slimfl.round import RoundRecord, convergence, finished

#: The number of last evaluated rounds whose mean is the final accuracy.
LAST = 10


@dataclass(frozen=True)
class Accuracy:
    """One width's accuracy in one run, as fractions of 1."""

    final: float
    """The mean over the last evaluated rounds, at most `LAST`."""
    deviation: float
    """The standard deviation (of the population) over those rounds."""
    best: float


@dataclass(frozen=True)
class Segment:
    """The deliveries of one segment in one run."""

    sent_mb: float
    decoded_mb: float
    dropped_mb: float
    delivered: int
    """How often a device delivered it and the server merged it."""
    asked: int
    """How often a device was asked; 0 if the method never sends this segment."""

    @property
    def delivered_share(self) -> float | None:
        """The share of the asked devices that delivered it."""
        return self.delivered / self.asked if self.asked else None

    def __add__(self, other: Segment) -> Segment:
        return Segment(*(getattr(self, f) + getattr(other, f) for f in self.__dataclass_fields__))


@dataclass(frozen=True)
class Costs:
    """The costs of some rounds."""

    rounds: int
    airtime_s: float
    energy_j: float
    """Of all sending, also of uploads that were cut off."""
    paper_power_w: float
    """Table VII's communication cost: one device's transmit power, added up over the rounds."""
    paper_gflops: float
    """Table VII's computing cost: a forward pass at every trained width, over the rounds."""

    @classmethod
    def of(cls, lines: Sequence[RoundRecord]) -> Self:
        """The sum over these rounds."""
        return cls(
            rounds=len(lines),
            airtime_s=sum(line.airtime_s for line in lines),
            energy_j=sending_energy_j(lines),
            paper_power_w=sum(line.paper_power_mw for line in lines) / 1e3,
            paper_gflops=sum(line.paper_mflops for line in lines) / 1e3,
        )

    def __add__(self, other: Costs) -> Costs:
        return Costs(*(getattr(self, f) + getattr(other, f) for f in self.__dataclass_fields__))


@dataclass(frozen=True)
class RunSummary:
    """One run, or the sum of the Vanilla FL runs of all widths with one seed."""

    method: str
    path: str | None
    """The run's folder; None for a sum of runs."""
    seed: int
    channel: str
    noise_dbm: float
    alpha: float | None
    """None for a partition without it."""
    rounds_done: int
    rounds_asked: int
    complete: bool
    accuracy: dict[str, Accuracy]
    """By the name of the width."""
    segments: list[Segment]
    total: Costs
    converged_round: int | None
    until_converged: Costs | None
    refused: int
    images: int | None
    """Number of training images; one counts once, at however many widths it is used."""
    training_s: float
    privacy: dict[str, float | None] | None = None
    """Epsilon and delta after the last round; None for a run without differential privacy."""
    own: dict[str, str] = field(default_factory=dict)
    """The names of the author's own objects: network, dataset, channel or method."""
    learned_above: float = 0.0
    """The accuracy, a fraction of 1, above which a network is better than guessing."""
    missing: dict[str, int] = field(default_factory=dict)
    """How often something of a device was missing, by reason; empty if devices are identical."""
    clock_s: float | None = None
    """Virtual time of all rounds."""
    compute_energy_j: float | None = None
    """Computing energy; None for runs of older versions, which did not record it."""
    energy_presets: list[str] = field(default_factory=list)
    """The presets that it is counted by."""
    first_empty: Moment | None = None
    """When the first battery was empty; None if none ever was."""
    half_empty: Moment | None = None
    """When half of the devices had an empty battery."""

    @property
    def images_per_s(self) -> float | None:
        """Speed of training."""
        return self.images / self.training_s if self.images and self.training_s else None

    def as_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers."""
        plain = asdict(self)
        for segment, values in zip(self.segments, plain["segments"], strict=True):
            values["delivered_share"] = segment.delivered_share
        if not self.missing:  # rounds with identical devices record no reasons
            del plain["missing"]
        return {**plain, "images_per_s": self.images_per_s}


def run_summary(record: RunRecord) -> RunSummary:
    """The summary of one run."""
    experiment, radio, lines = record.experiment, record.experiment.radio, record.lines
    reached = convergence(lines, experiment.federation)
    return RunSummary(
        method=experiment.method,
        path=str(record.path),
        seed=experiment.seed,
        channel=radio.channel if radio.model == BUILT_IN_CHANNEL else radio.model,
        noise_dbm=radio.noise,
        alpha=experiment.data.alpha if experiment.data.partition.startswith("dirichlet") else None,
        rounds_done=len(lines),
        rounds_asked=experiment.rounds,
        complete=finished(experiment, lines),
        accuracy=accuracy_over(record.evaluated),
        segments=[_segment(lines, s) for s in range(len(experiment.model.widths))],
        total=Costs.of(lines),
        converged_round=reached,
        until_converged=(
            None if reached is None else Costs.of([li for li in lines if li.round <= reached])
        ),
        refused=sum(len(line.refused) for line in lines),
        images=_images(lines),
        training_s=sum(line.seconds.training for line in lines),
        privacy=lines[-1].privacy.model_dump() if lines and lines[-1].privacy else None,
        own={kind: entry.get("name", "") for kind, entry in record.own.items()},
        learned_above=run_learned_above(record),
        missing=_missing(lines),
        clock_s=clock_s(lines)[-1] if lines else None,
        compute_energy_j=(
            sum(line.compute_energy_j or 0.0 for line in lines)
            if lines and computing_counted(record)
            else None
        ),
        energy_presets=energy_presets(record) if computing_counted(record) else [],
        first_empty=emptied(lines, experiment.federation.devices, 0.0),
        half_empty=emptied(lines, experiment.federation.devices, 0.5),
    )


def _missing(lines: list[RoundRecord]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.missing_counts)
    return dict(sorted(counts.items()))


def accuracy_over(evaluated: Sequence[RoundRecord]) -> dict[str, Accuracy]:
    """The accuracy at every width that these tested rounds end with."""
    if not evaluated:
        return {}
    widths = evaluated[0].accuracy
    curves = {width: [line.accuracy[width] for line in evaluated] for width in widths}
    return {
        width: Accuracy(fmean(values[-LAST:]), pstdev(values[-LAST:]), max(values))
        for width, values in curves.items()
    }


def _segment(lines: list[RoundRecord], segment: int) -> Segment:
    def megabytes(key: str) -> float:
        return float(sum(line[key][segment] for line in lines)) / 8e6

    sent = megabytes("bits_sent")
    asked = sum(line.asked for line in lines)
    delivered = sum(line.delivered[segment] for line in lines)
    return Segment(
        sent, megabytes("bits_decoded"), megabytes("bits_dropped"), delivered, asked if sent else 0
    )


def _images(lines: list[RoundRecord]) -> int | None:
    """Images in the local training of all rounds; None if a round does not report them."""
    known = [line.images for line in lines if line.images is not None]
    return sum(known) if lines and len(known) == len(lines) else None
