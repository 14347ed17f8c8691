"""All methods over two populations, one channel, one clock and one energy budget.

In `cell` every device can train the full width, so HeteroFL, FedRolex, Federated Dropout and the
exclusive baseline are all Vanilla FL-1.0x there and are not run again. In `phones` half of the
devices train 0.5x at most. US-Net with two widths is SHeteroFL: the sandwich has nothing between
its narrowest and its widest, so it is not run either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from slimfl.reproduction.cells.cell import Cell
from slimfl.reproduction.exhibits.exhibit import Table
from slimfl.reproduction.judging.paired import Difference, difference
from slimfl.results import RunRecord
from slimfl.results.devices import LEAST_HEARD, device_summary
from slimfl.results.groups import title
from slimfl.studies import standing
from slimfl.studies.drawings import (
    Dots,
    Lead,
    Point,
    fairness_figure,
    lead_figure,
    pareto_figure,
)
from slimfl.studies.scale import StudyScale
from slimfl.studies.standing import Standing
from slimfl.studies.study import Answer, Picture, Runs, Study, Titled, finished

DEVICES = 20
ALPHA = 0.3
WIDTHS = ("0.5x", "1.0x")
PER_DEVICE = {"radio__split": "per-device", "radio__split_objective": "weighted"}


@dataclass(frozen=True)
class Entry:
    """A method as it takes part: its name, and the keys beside it."""

    name: str
    method: str
    changes: Mapping[str, Any]


def _entry(method: str, **changes: Any) -> Entry:
    return Entry(title(method), method, changes)


SLIMFL = Entry("SlimFL (split per device)", "slimfl", PER_DEVICE)
ENTRIES = {
    "cell": (
        SLIMFL,
        _entry("slimfl"),
        Entry("SlimFL (segments in turn)", "slimfl", {"radio__multiplexing": "orthogonal-energy"}),
        _entry("sheterofl"),
        _entry("fjord"),
        _entry("fjord-kd"),
        _entry("split-mix", model__name="split-mix"),
        _entry("vanilla-0.5x"),
        _entry("vanilla-1.0x"),
    ),
    "phones": (
        SLIMFL,
        _entry("slimfl"),
        Entry("SlimFL (segments in turn)", "slimfl", {"radio__multiplexing": "orthogonal-energy"}),
        _entry("sheterofl"),
        _entry("heterofl"),
        _entry("fjord"),
        _entry("fjord-kd"),
        _entry("fedrolex"),
        _entry("federated-dropout"),
        _entry("split-mix", model__name="split-mix"),
        _entry("vanilla-0.5x"),
        _entry("exclusive"),
    ),
}


#: What a population's methods are drawn over: the full width without segments.
BASELINES = {"cell": title("vanilla-1.0x"), "phones": title("exclusive")}


def runs_of(
    scale: StudyScale, population: str, entry: Entry, *, seeds: int, rounds: int
) -> list[Cell]:
    """One method in one population, under every seed.

    With twice the devices of the reproduction, each takes half the steps.
    """
    return scale.each_seed(
        entry.method,
        seeds=seeds,
        rounds=rounds,
        data__alpha=ALPHA,
        federation__devices=DEVICES,
        population__preset=population,
        training__steps=max(1, scale.steps // 2),
        **entry.changes,
    )


def rival_runs(scale: StudyScale, population: str, entry: Entry) -> list[Cell]:
    """One method in one population, as this study runs it.

    More seeds in `cell`, where differences are small; not of Split-Mix, which torch alone trains.
    """
    many = population == "cell" and entry.method != "split-mix"
    seeds = scale.rival_seeds if many else scale.seeds
    return runs_of(scale, population, entry, seeds=seeds, rounds=scale.rival_rounds)


def cells(scale: StudyScale) -> list[Cell]:
    """Every method in both populations."""
    return [c for p, entries in ENTRIES.items() for e in entries for c in rival_runs(scale, p, e)]


@dataclass(frozen=True)
class Result:
    """One method in one population."""

    entry: Entry
    by_width: dict[str, Standing]
    least_heard: dict[str, Standing]
    """On the data of the quarter of the devices that it heard least."""
    heard: float
    """Percent of all uploads whose first segment arrived."""
    energy_j: float
    sending_j: float
    clock_s: float


def result(scale: StudyScale, population: str, entry: Entry, runs: Runs) -> Result | None:
    """What came out; None before the first run is finished."""
    records = finished(rival_runs(scale, population, entry), runs)
    if not records:
        return None
    standings = {width: standing.final_standing(entry.name, records, width) for width in WIDTHS}
    return Result(
        entry,
        {width: each for width, each in standings.items() if each.by_seed},
        _least_heard(entry.name, records),
        fmean(map(_heard, records)),
        fmean(map(standing.energy_j, records)),
        fmean(sum(line.energy_j for line in record.lines) for record in records),
        fmean(record.lines[-1].clock_s or 0.0 for record in records),
    )


def _heard(record: RunRecord) -> float:
    asked = sum(len(line.devices) + len(line.dropped_out) for line in record.lines)
    return 100 * sum(line.delivered[0] for line in record.lines) / max(asked, 1)


def _least_heard(name: str, records: Sequence[RunRecord]) -> dict[str, Standing]:
    found: dict[str, dict[int, float]] = {}
    for record in records:
        summary = device_summary(record)
        accuracies = summary.accuracy.get(LEAST_HEARD, {}) if summary else {}
        for width, accuracy in accuracies.items():
            found.setdefault(width, {})[record.experiment.seed] = 100 * accuracy
    return {width: Standing(name, by_seed) for width, by_seed in found.items()}


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """A table, two Pareto fronts and the ranking for each population."""
    sentences, tables, pictures, data = [], [], [], {}
    for population, entries in ENTRIES.items():
        results = [r for e in entries if (r := result(scale, population, e, runs))]
        sentences += [s for w in WIDTHS if (s := _ranking(population, results, w))]
        sentences += [s for s in [_closest_rival(population, results)] if s]
        tables.append(Titled(population, _title(population), _table(results)))
        data[population] = [_data(each) for each in results]
        if results:
            pictures += _pictures(population, results)
    return Answer(sentences, tables, pictures, data)


def _title(population: str) -> str:
    return f"Population `{population}`: {DEVICES} devices, noise as poor, alpha = {ALPHA:g}."


def _ranking(population: str, results: Sequence[Result], width: str) -> str:
    """Who is best at a width, who is tied, and where SlimFL stands."""
    rows = [each.by_width[width] for each in results if width in each.by_width]
    podium = standing.podium(rows)
    if podium is None:
        return ""
    told = f"In `{population}` at {width} the best is {podium.best.method} ({podium.best} %)"
    if podium.tied:
        told += f", tied with {_listed([each.method for each in podium.tied])}"
    slim = max((r for r in rows if r.method.startswith("SlimFL")), key=lambda r: r.mean)
    if not podium.wins_or_ties(slim.method):
        told += f"; the best form of SlimFL has {slim} %"
    return told + "."


def _closest_rival(population: str, results: Sequence[Result]) -> str:
    """Every form of SlimFL against the rival that trains alike and sends one message."""
    rival = next((each for each in results if each.entry.method == "sheterofl"), None)
    slim = [each for each in results if each.entry.method == "slimfl"]
    if rival is None or not slim:
        return ""
    leads = ", ".join(
        f"{each.entry.name} {standing.gap_words(_over(each, rival))}" for each in slim
    )
    return (
        f"In `{population}`, points at {WIDTHS[-1]} over {rival.entry.name}, which trains alike "
        f"and sends one message: {leads}."
    )


def _over(one: Result, other: Result) -> Difference | None:
    """How far one method's full width is ahead of another's."""
    if WIDTHS[-1] not in one.by_width or WIDTHS[-1] not in other.by_width:
        return None
    first, second = one.by_width[WIDTHS[-1]], other.by_width[WIDTHS[-1]]
    return difference(first.method, second.method, first.by_seed, second.by_seed, "points")


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _table(results: Sequence[Result]) -> Table:
    headings = ["method", "seeds", "0.5x, %", "1.0x, %", "1.0x over SlimFL (split per device)",
                "heard least, 0.5x / 1.0x, %", "heard, %", "time, s", "energy, J",
                "of which sending, J"]  # fmt: skip
    base = next((each for each in results if each.entry is SLIMFL), None)
    rows = []
    for each in results:
        full = each.by_width.get("1.0x")
        over = None
        if base is not None and full is not None and each is not base:
            reference = base.by_width["1.0x"]
            over = difference(
                full.method, reference.method, full.by_seed, reference.by_seed, "points"
            )
        seeds = max(len(one.by_seed) for one in each.by_width.values())
        rows.append(
            [
                each.entry.name,
                str(seeds),
                *(str(each.by_width.get(width, "")) for width in WIDTHS),
                standing.gap_words(over),
                " / ".join(str(each.least_heard.get(width, "–")) for width in WIDTHS),
                f"{each.heard:.0f}",
                f"{each.clock_s:.3g}",
                f"{each.energy_j:.2f}",
                f"{each.sending_j:.3f}",
            ]
        )
    return Table(headings, rows)


def _pictures(population: str, results: Sequence[Result]) -> list[Picture]:
    def panels(cost: str) -> dict[str, Sequence[Point]]:
        return {
            width: [
                Point(
                    each.entry.name,
                    getattr(each, cost),
                    each.by_width[width].mean,
                    each.by_width[width].deviation,
                )
                for each in results
                if width in each.by_width
            ]
            for width in WIDTHS
        }

    fair = [
        Dots(
            each.entry.name,
            each.by_width[width].mean,
            each.by_width[width].deviation,
            each.least_heard[width].mean,
            each.least_heard[width].deviation,
        )
        for each in results
        for width in WIDTHS[-1:]
        if width in each.by_width and width in each.least_heard
    ]
    filled = "Filled marks, joined by a line, are those that no other beats in both."
    base = next((each for each in results if each.entry.name == BASELINES[population]), None)
    lead = []
    if base is not None:
        over = [_over(each, base) for each in results if each is not base]
        leads = [Lead(one.larger, one.mean, one.half_width) for one in over if one is not None]
        same = " HeteroFL, FedRolex and Federated Dropout are the same there."
        lead = [
            Picture(
                f"{population}-lead",
                f"Full-width accuracy over {base.entry.name}, population `{population}`: paired "
                f"differences over seeds.{same if population == 'cell' else ''}",
                lead_figure(leads, base.entry.name),
            )
        ]
    return [
        *lead,
        Picture(
            f"{population}-fairness",
            f"Accuracy of the full width, population `{population}`: on all test images, and on "
            "the data of the devices that each method hears least. Bars are deviations over "
            "seeds.",
            fairness_figure(fair, f"full width, population {population}"),
        ),
        Picture(
            f"{population}-energy",
            f"Accuracy against the energy of all devices, population `{population}`. {filled}",
            pareto_figure(panels("energy_j"), "energy of all devices, J", population),
        ),
        Picture(
            f"{population}-time",
            f"Accuracy against virtual time, population `{population}`. {filled}",
            pareto_figure(panels("clock_s"), "virtual time, s", population),
        ),
    ]


def _data(each: Result) -> dict[str, Any]:
    return {
        "method": each.entry.name,
        "keys": {"method": each.entry.method, **each.entry.changes},
        "accuracy": {width: dict(one.by_seed) for width, one in each.by_width.items()},
        "least_heard": {width: dict(one.by_seed) for width, one in each.least_heard.items()},
        "heard_percent": each.heard,
        "energy_j": each.energy_j,
        "sending_j": each.sending_j,
        "clock_s": each.clock_s,
    }


STUDY = Study(
    "rivals",
    "SlimFL among its rivals",
    "Which method gives the best model for unequal devices, for how much energy and time?",
    cells,
    answer,
)
