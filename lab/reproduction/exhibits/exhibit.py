"""An exhibit: one table or figure of the paper, with our results."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean, pstdev, stdev
from typing import TYPE_CHECKING, Any

from lab.reproduction.cells.cell import Cell
from lab.reproduction.cells.scale import Scale
from lab.reproduction.judging.verdict import Claim, Comparison, Verdict, worst
from slimfl.results import RunRecord
from slimfl.results.learned import run_learned_above
from slimfl.round import finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The existing runs by cell; cells that were never begun are absent.
Runs = Mapping[Cell, RunRecord]

#: Marks a number that more rounds or seeds may still change.
UNFINISHED = ", unfinished"


@dataclass(frozen=True)
class Table:
    """Text and numbers in rows, as printed."""

    headings: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Exhibit:
    """What one table or figure of the paper says, and our result."""

    name: str
    title: str
    paper: str
    """What the paper claims, in a sentence or two."""
    table: Table
    claims: list[Claim]
    notes: list[str] = field(default_factory=list)
    figure: Figure | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of its claims."""
        return worst([claim.verdict for claim in self.claims])

    def as_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers."""
        return {
            "name": self.name,
            "title": self.title,
            "paper": self.paper,
            "verdict": str(self.verdict),
            "table": {"headings": self.table.headings, "rows": self.table.rows},
            "claims": [_claim(claim) for claim in self.claims],
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Recipe:
    """How an exhibit is made: the runs that it needs at a scale, and how it shows them."""

    name: str
    cells: Callable[[Scale], list[Cell]]
    show: Callable[[Scale, Runs], Exhibit]
    study: bool = False
    """True for our own studies, which must be asked for by name."""


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "text": claim.text,
        "source": claim.source,
        **({"about": asdict(claim.about)} if claim.about else {}),
        "verdict": str(claim.verdict),
        "seeds": claim.seeds,
        **({"seeds_planned": claim.seeds_planned} if claim.seeds_planned else {}),
        "differences": [each.as_json() for each in claim.differences],
        "comparisons": [
            {
                "quantity": each.quantity,
                "unit": each.unit,
                "paper": each.paper,
                "paper_deviation": each.paper_deviation if each.paper is not None else None,
                "ours": each.ours if each.ours is not None and math.isfinite(each.ours) else None,
                "reached": each.ours is None or math.isfinite(each.ours),
                "ours_deviation": each.deviation,
                "seeds": each.seeds,
                "digits": each.digits,
                **({"seeds_reached": each.seeds_reached} if each.seeds_reached else {}),
                **({} if each.finished else {"finished": False}),
            }
            for each in claim.comparisons
        ],
    }


@dataclass(frozen=True)
class Final:
    """A width's final accuracy in percent, over runs that differ only in the seed."""

    mean: float
    over_seeds: float
    """Standard deviation between seeds; 0 for one."""
    over_rounds: float
    """Standard deviation over the last rounds, as a mean over seeds: the paper's ±."""
    over_rounds_spread: float
    """Standard deviation of that between seeds; for one its standard error s / sqrt(2 (n - 1)), as
    if the accuracies of its n last rounds were independent and normal."""
    seeds: int
    rounds: int
    """Number of last rounds behind each seed."""
    finished: bool = True
    """True if every run behind it is finished."""
    seeds_planned: int | None = None
    """Number of seeds in the end; None if no more are planned."""
    by_seed: Mapping[int, float] = field(default_factory=dict)
    """The mean for each seed."""
    over_rounds_by_seed: Mapping[int, float] = field(default_factory=dict)
    learned: bool = True
    """True if the mean is significantly better than guessing."""

    @classmethod
    def of(cls, records: Iterable[RunRecord], width: str, last: int) -> Final | None:
        """The mean over the last rounds of every run; None if there is no run.

        For an unfinished run the window shrinks with its progress.
        """
        ends = {}
        limit = 0.0
        for record in records:
            limit = max(limit, 100 * run_learned_above(record))
            tested = [line for line in record.evaluated if width in line.accuracy]
            if tested:
                reached = tested[-1].round
                since = reached - math.ceil(last * reached / record.experiment.rounds)
                ends[record.experiment.seed] = [
                    100 * e.accuracy[width] for e in tested if e.round > since
                ]
        if not ends:
            return None
        found = cls.over(
            {seed: fmean(end) for seed, end in ends.items()},
            {seed: pstdev(end) for seed, end in ends.items()},
            min(len(end) for end in ends.values()),
        )
        return replace(found, learned=found.mean > limit)

    @classmethod
    def over(
        cls, by_seed: Mapping[int, float], over_rounds: Mapping[int, float], rounds: int
    ) -> Final:
        """From the mean and the fluctuation of each seed over a number of last rounds."""
        means, fluctuations = list(by_seed.values()), list(over_rounds.values())
        error = fluctuations[0] / math.sqrt(2 * (rounds - 1)) if rounds > 1 else 0.0
        return cls(
            fmean(means),
            stdev(means) if len(means) > 1 else 0.0,
            fmean(fluctuations),
            stdev(fluctuations) if len(means) > 1 else error,
            len(means),
            rounds,
            by_seed=by_seed,
            over_rounds_by_seed=over_rounds,
        )

    def of_seeds(self, seeds: Collection[int], planned: int | None) -> Final:
        """The same over fewer seeds."""
        if set(seeds) == set(self.by_seed):
            return replace(self, seeds_planned=planned)
        fewer = Final.over(
            {seed: self.by_seed[seed] for seed in seeds},
            {seed: self.over_rounds_by_seed[seed] for seed in seeds},
            self.rounds,
        )
        return replace(fewer, finished=self.finished, seeds_planned=planned, learned=self.learned)

    @property
    def deviation(self) -> float:
        """Between seeds or, with a single seed, over rounds."""
        return self.over_seeds if self.seeds > 1 else self.over_rounds

    def compare(
        self, quantity: str, paper: float | None = None, paper_deviation: float = 0.0
    ) -> Comparison:
        """A comparison with the paper's number."""
        return Comparison(
            quantity,
            self.mean,
            self.deviation,
            self.seeds,
            paper,
            paper_deviation,
            unit="%",
            finished=self.finished,
            seeds_planned=self.seeds_planned,
            by_seed=self.by_seed,
            learned=self.learned,
        )

    def __sub__(self, other: Final) -> Final:
        """The difference in points, for runs with the same seeds.

        Deviations are combined as for independent runs.
        """
        return Final(
            self.mean - other.mean,
            math.hypot(self.over_seeds, other.over_seeds),
            math.hypot(self.over_rounds, other.over_rounds),
            0.0,
            min(self.seeds, other.seeds),
            min(self.rounds, other.rounds),
            self.finished and other.finished,
            self.seeds_planned or other.seeds_planned,
            {
                seed: self.by_seed[seed] - other.by_seed[seed]
                for seed in self.by_seed
                if seed in other.by_seed
            },
            learned=self.learned and other.learned,
        )

    def __str__(self) -> str:
        spread = f"seeds ± {self.over_seeds:.1f}" if self.seeds > 1 else ""
        lacking = f"{self.seeds} of {self.seeds_planned} seeds" if self.seeds_planned else ""
        brackets = ", ".join(filter(None, (spread, lacking if self.finished else "")))
        mark = "" if self.finished else UNFINISHED
        words = f" ({brackets})" if brackets else ""
        return f"{self.mean:.1f} ± {self.over_rounds:.1f}{words}{mark}"


def fluctuation(quantity: str, final: Final | None) -> Comparison:
    """The variation of an accuracy over the last rounds."""
    if final is None:
        return Comparison(quantity, None, unit="points")
    return Comparison(
        quantity,
        final.over_rounds,
        final.over_rounds_spread,
        final.seeds,
        unit="points",
        finished=final.finished,
        seeds_planned=final.seeds_planned,
        by_seed=final.over_rounds_by_seed,
        learned=final.learned,
    )


def accuracy(
    quantity: str, final: Final | None, paper: float | None = None, paper_deviation: float = 0.0
) -> Comparison:
    """A comparison of an accuracy with the paper's, whether or not it was run."""
    if final is None:
        return Comparison(quantity, None, paper=paper, paper_deviation=paper_deviation, unit="%")
    return final.compare(quantity, paper, paper_deviation)


def final(runs: Runs, cells: Sequence[Cell], width: str, last: int) -> Final | None:
    """The final accuracy of the same run, over the seeds that are shown."""
    records = shown(runs, cells)
    found = Final.of(records, width, last)
    if found is None:
        return None
    return replace(
        found,
        finished=all(finished(each.experiment, each.lines) for each in records),
        seeds_planned=len(cells) if found.seeds < len(cells) else None,
    )


def curves(runs: Runs, cells: Sequence[Cell], final: Final | None) -> list[RunRecord]:
    """The runs behind a final accuracy."""
    seeds = final.by_seed if final else ()
    return [each for each in shown(runs, cells) if each.experiment.seed in seeds]


def shown(runs: Runs, cells: Sequence[Cell]) -> list[RunRecord]:
    """The finished runs or, while there are none, those that have been evaluated at least once.

    An unfinished run beside finished ones would only blur them.
    """
    records = [runs[cell] for cell in cells if cell in runs and runs[cell].evaluated]
    ended = [each for each in records if finished(each.experiment, each.lines)]
    return ended or records


def same_seeds(finals: Sequence[Final | None]) -> list[Final | None]:
    """What a claim compares, over the seeds that all have; unfinished if there is no such seed."""
    known = [each for each in finals if each]
    common = set.intersection(*(set(each.by_seed) for each in known)) if known else set()
    planned = max((each.seeds_planned or each.seeds for each in known), default=0)
    if not common:
        return [replace(each, finished=False) if each else None for each in finals]
    seeds, more = sorted(common), planned if planned > len(common) else None
    return [each.of_seeds(seeds, more) if each else None for each in finals]


def share_seeds(finals: dict[Any, Final | None], keys: Sequence[Any]) -> None:
    """Show what is compared over the seeds that all have: others would hide the difference."""
    finals.update(zip(keys, same_seeds([finals[key] for key in keys]), strict=True))
