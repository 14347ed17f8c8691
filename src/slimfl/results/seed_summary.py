"""The runs of a group as one row: mean and deviation over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Self

from slimfl.results.run_summary import Costs, RunSummary


@dataclass(frozen=True)
class Spread:
    """Mean and deviation of a number over seeds."""

    mean: float
    deviation: float | None
    """The sample standard deviation; None for a single seed."""

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Self | None:
        """Mean and deviation; None if there are no values or a seed has none."""
        known = list(values)
        numbers = [float(value) for value in known if value is not None]
        if not numbers or len(numbers) < len(known):
            return None
        return cls(fmean(numbers), stdev(numbers) if len(numbers) > 1 else None)


@dataclass(frozen=True)
class GroupAccuracy:
    """One width's accuracy over seeds, as fractions of 1."""

    final: Spread
    best: Spread
    deviation_over_rounds: float
    """Deviation over the rounds behind each final value; the mean over seeds."""
    by_seed: dict[int, float]
    """The final accuracy of each seed."""

    @property
    def deviation(self) -> float:
        """Shown after ±: over seeds or, with a single seed, over rounds. It compares nothing."""
        over_seeds = self.final.deviation
        return self.deviation_over_rounds if over_seeds is None else over_seeds


@dataclass(frozen=True)
class GroupSummary:
    """One row of the closing table."""

    name: str
    scene: str
    method: str
    computed: bool
    """True if it is a sum of other rows."""
    seeds: list[int]
    channel: str
    noise_dbm: float
    alpha: float | None
    rounds_done: int
    """Of the slowest seed."""
    rounds_asked: int
    complete: bool
    accuracy: dict[str, GroupAccuracy]
    delivered_share: list[Spread | None]
    """Per segment; None for one that is never sent."""
    asked: list[int]
    """Number of requests to deliver a segment, over all seeds."""
    delivered: list[int]
    """How often it was delivered, over all seeds."""
    sent_mb: list[Spread]
    decoded_mb: list[Spread]
    dropped_mb: list[Spread]
    airtime_s: Spread
    energy_j: Spread
    paper_power_w: Spread
    paper_gflops: Spread
    converged_seeds: int
    converged_round: Spread | None
    """None unless every seed converged, like the fields below."""
    energy_until_j: Spread | None
    paper_power_until_w: Spread | None
    paper_gflops_until: Spread | None
    refused: int
    """Number of refused updates over all seeds."""
    images_per_s: Spread | None
    learned_above: float = 0.0
    """The accuracy, a fraction of 1, above which a network is better than guessing."""

    def has_learned(self, width: str) -> bool:
        """True if the mean accuracy at this width is significantly better than guessing."""
        return self.accuracy[width].final.mean > self.learned_above


def seed_summary(
    rows: Sequence[RunSummary], name: str, scene: str, *, computed: bool = False
) -> GroupSummary:
    """The row of a group from the rows of its runs."""
    first = rows[0]
    each_segment = list(zip(*(row.segments for row in rows), strict=True))
    return GroupSummary(
        name=name,
        scene=scene,
        method=first.method,
        computed=computed,
        seeds=[row.seed for row in rows],
        channel=first.channel,
        noise_dbm=first.noise_dbm,
        alpha=first.alpha,
        rounds_done=min(row.rounds_done for row in rows),
        rounds_asked=first.rounds_asked,
        complete=all(row.complete for row in rows),
        accuracy=_accuracy(rows),
        delivered_share=[Spread.of(s.delivered_share for s in same) for same in each_segment],
        asked=[sum(s.asked for s in same) for same in each_segment],
        delivered=[sum(s.delivered for s in same) for same in each_segment],
        sent_mb=[_known(s.sent_mb for s in same) for same in each_segment],
        decoded_mb=[_known(s.decoded_mb for s in same) for same in each_segment],
        dropped_mb=[_known(s.dropped_mb for s in same) for same in each_segment],
        airtime_s=_known(row.total.airtime_s for row in rows),
        energy_j=_known(row.total.energy_j for row in rows),
        paper_power_w=_known(row.total.paper_power_w for row in rows),
        paper_gflops=_known(row.total.paper_gflops for row in rows),
        converged_seeds=sum(row.converged_round is not None for row in rows),
        converged_round=Spread.of(row.converged_round for row in rows),
        energy_until_j=_until(rows, lambda costs: costs.energy_j),
        paper_power_until_w=_until(rows, lambda costs: costs.paper_power_w),
        paper_gflops_until=_until(rows, lambda costs: costs.paper_gflops),
        refused=sum(row.refused for row in rows),
        images_per_s=Spread.of(row.images_per_s for row in rows),
        learned_above=max(row.learned_above for row in rows),
    )


def _accuracy(rows: Sequence[RunSummary]) -> dict[str, GroupAccuracy]:
    """Over the seeds that have been evaluated; runs that have just begun are ignored."""
    begun = [row for row in rows if row.accuracy]
    return {
        width: GroupAccuracy(
            final=_known(row.accuracy[width].final for row in begun),
            best=_known(row.accuracy[width].best for row in begun),
            deviation_over_rounds=fmean(row.accuracy[width].deviation for row in begun),
            by_seed={row.seed: row.accuracy[width].final for row in begun},
        )
        for width in (begun[0].accuracy if begun else ())
    }


def _until(rows: Sequence[RunSummary], cost: Callable[[Costs], float]) -> Spread | None:
    return Spread.of(
        None if row.until_converged is None else cost(row.until_converged) for row in rows
    )


def _known(values: Iterable[float]) -> Spread:
    spread = Spread.of(values)
    assert spread is not None
    return spread
