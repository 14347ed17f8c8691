"""The README's results: what both widths cost, what superposition brings, where not to use it.

The first is computed from the archived runs of table III, the others from the planned runs. The
table of the first run and its figure are made from the folder of a run:

    slimfl run --out FOLDER && python docs/_ext/headline.py FOLDER
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt
from convergence import table
from growth import STANDARD, lines_of
from lab.reproduction.cells.scale import ALPHAS
from lab.reproduction.exhibits import table3_runs as grid
from two_modes import save

from slimfl.results.statistics import Paired, holm, paired

ROOT = Path(__file__).parents[2]
ARCHIVE, RESULTS = ROOT / "results" / "cells", ROOT / "docs" / "results"
PLAN, FIRST_RUN = RESULTS / "plans" / "superposition.json", RESULTS / "first-run.json"
BLUE, GREY = "#2a6f97", "#9a9a9a"
WIDTHS = ("0.5x", "1.0x")
#: What the Vanilla FL runs of both widths cost together over one SlimFL run, per round: by how it
#: is accounted for.
BUDGETS = {
    "equal rounds": 1.0,
    "true sizes, equal rates": 5 / 4,
    "true sizes, rates by size": 5 / 3,
    "the paper's": 2.0,
}


def texts() -> dict[str, str]:
    """The sentences of the README and the table of the page on the reproduction."""
    return {
        "both widths": both_widths_words(),
        "both widths, every budget": both_widths_table(),
        "superposition in short": superposition_words(),
        "where not": where_not_words(),
        "first run": first_run_words(),
    }


def draw(folder: Path) -> None:
    """One picture per result that has none yet."""
    leads(
        [
            (f"{width}, α = {alpha:g}", lead)
            for alpha in ALPHAS
            for width in WIDTHS
            if (lead := budget_leads("poor", alpha, BUDGETS["the paper's"])[width]) is not None
        ],
        "SlimFL's lead over both Vanilla FL runs, points",
        folder / "both-widths.svg",
    )
    leads(
        [
            (f"{row['contrast']}\n({row['of']} − {row['over']})", row)
            for row in planned("late tests")
        ],
        "difference in accuracy, points",
        folder / "superposition-lead.svg",
    )


@cache
def budget_leads(channel: str, alpha: float, cost: float) -> dict[str, Paired | None]:
    """SlimFL after all rounds against Vanilla FL when both have spent its budget, by width.

    The final accuracy of each is the mean over the same share of its rounds.
    """
    ours: dict[str, dict[int, float]] = {width: {} for width in WIDTHS}
    theirs: dict[str, dict[int, float]] = {width: {} for width in WIDTHS}
    for width in WIDTHS:
        pairs = zip(
            grid.setting(STANDARD, channel, alpha, "slimfl"),
            grid.setting(STANDARD, channel, alpha, f"vanilla-{width}"),
            strict=True,
        )
        for slim, vanilla in pairs:
            seed, rounds = slim.experiment.seed, slim.rounds
            one, other = (lines_of(ARCHIVE, cell)[:rounds] for cell in (slim, vanilla))
            if len(one) == len(other) == rounds:
                ours[width][seed] = _final(one, width)
                theirs[width][seed] = _final(other[: int(rounds / cost + 1e-9)], width)
    return {width: paired(ours[width], theirs[width]) for width in WIDTHS}


def _final(lines: list[Any], width: str) -> float:
    late = lines[-max(1, round(len(lines) * STANDARD.last_share)) :]
    return 100 * fmean(line.accuracy[width] for line in late)


def both_widths_words() -> str:
    """The paper's own comparison, in two sentences."""
    every = [
        lead
        for channel in grid.CHANNELS
        for alpha in ALPHAS
        for lead in budget_leads(channel, alpha, BUDGETS["the paper's"]).values()
        if lead is not None
    ]
    several = [lead for lead in every if lead.seeds > 1]
    apart = sum(lead.told_apart for lead in several)
    kept = sum(p < 0.05 for p in holm([lead.p_student or 0.0 for lead in several]))
    full = budget_leads("poor", 1.0, BUDGETS["the paper's"])["1.0x"]
    assert full is not None
    return (
        "One SlimFL run gives both widths for half the transmit power and bandwidth of the two "
        "Vanilla FL runs that it replaces; when these have spent the same, SlimFL's full width is "
        f"ahead by {full.in_points} (poor channel, α = 1).\n\n"
        f"It is ahead in {sum(lead.mean > 0 for lead in every)} of the {len(every)} archived "
        f"comparisons of table III, by {min(lead.mean for lead in every):.1f} to "
        f"{max(lead.mean for lead in every):.1f} points. {len(several)} of them have several "
        f"seeds: {apart} intervals exclude 0, {kept} after Holm's correction. After equal rounds "
        "the accuracies are not told apart, so the lead shrinks as runs converge. One nested "
        "message (SHeteroFL) would share most of it. Computing costs the same per round, so SlimFL "
        "computes more rounds. [Other ways to count](docs/reproduction.md#both-widths-at-equal-"
        "transmit-budget) give smaller leads."
    )


def both_widths_table() -> str:
    """Every setting at every budget."""
    rows = []
    for channel in grid.CHANNELS:
        for alpha in ALPHAS:
            found = [budget_leads(channel, alpha, cost) for cost in BUDGETS.values()]
            if all(lead is not None for each in found for lead in each.values()):
                seeds = max(lead.seeds for lead in found[0].values() if lead)
                said = [" / ".join(_short(lead) for lead in each.values()) for each in found]
                rows.append([f"{channel}, α = {alpha:g}", str(seeds), *said])
    costs = [f"{name}: {cost:.3g} times" for name, cost in BUDGETS.items()]
    return table(["channel and data", "seeds", *costs], rows)


def _short(lead: Paired | None) -> str:
    if lead is None:
        return "–"
    interval = lead.interval()
    text = f"{lead.mean:+.1f}" + (f" ± {interval[1] - lead.mean:.1f}" if interval else "")
    return f"**{text}**" if lead.told_apart else text


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(PLAN.read_text(encoding="utf-8"))
    return document


def planned(score: str) -> list[dict[str, Any]]:
    """The differences of a score, as planned."""
    rows = _document()["contrasts"]
    return [row for row in rows if row["score"] == score and row["scale"] == "difference"]


def _said(row: dict[str, Any]) -> str:
    return f"{row['mean']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}] points"


def _row(of: str, over: str, score: str = "late tests", width: str = "full") -> dict[str, Any]:
    return next(
        row
        for row in planned(score)
        if (row["of"], row["over"]) == (of, over)
        and (width in row["contrast"] or "width" not in row["contrast"])
    )


def superposition_words() -> str:
    """The planned runs, in three sentences."""
    document = _document()
    full, half = (_row("SlimFL", "SHeteroFL", width=w) for w in ("full", "half"))
    vanilla = _row("SlimFL", "Vanilla FL-1.0x")
    averaged = _row("SlimFL", "Vanilla FL-1.0x", "mean of the last models")
    if document["finished"] < document["planned"]:
        return "Planned, and the runs are not finished."
    return (
        f"Among 20 devices spread over a cell, at equal airtime, transmit energy and computing, "
        f"superposition itself brings {_said(full)} at full width and {_said(half)} at half width "
        f"over one nested message (SHeteroFL).\n\n"
        f"That is {_said(vanilla)} over Vanilla FL-1.0x at equal airtime and transmit energy; "
        f"Vanilla FL-1.0x computes less. With the mean of the last 30 models tested instead, "
        f"{_said(averaged)} over Vanilla FL-1.0x remain, which "
        f"{'is' if averaged['decided'] else 'is not'} told apart from 0. {full['seeds']} seeds "
        "that nobody had used before; the question, the arms and the test were [written down "
        "first](docs/planned.md)."
    )


def where_not_words() -> str:
    """What speaks against it, in the same runs."""
    own = _row("SlimFL", "Vanilla FL-0.5x")
    return (
        "If you need only the half width, train only that: in the same cell, at equal airtime and "
        f"transmit energy, SlimFL at 0.5x minus a Vanilla FL-0.5x run of its own is {_said(own)}."
    )


def first_run_words() -> str:
    """The closing table of the main experiment, and what it says at equal transmit energy."""
    document = json.loads(FIRST_RUN.read_text(encoding="utf-8"))
    headings = [
        "method",
        *(f"{width} accuracy, %" for width in WIDTHS),
        "delivered, % per segment",
        "airtime, s",
        "sending, J",
        "computing, J",
    ]
    return table(headings, document["rows"]) + "\n" + " ".join(document["at equal energy"])


def write_first_run(folder: Path) -> None:
    """Write the table and the figure of a finished run."""
    from slimfl.report.figures import accuracy_figure
    from slimfl.results import find
    from slimfl.results.summary import summarise

    records = find([folder])
    summary = summarise(records)
    computing = {
        r.experiment.method: sum(x.compute_energy_j or 0 for x in r.lines) for r in records
    }
    rows = []
    for row in summary.groups:
        accuracy = [row.accuracy.get(width) for width in WIDTHS]
        joules = sum(computing[m] for m in computing if "vanilla" in m)
        rows.append(
            [
                row.name + (", both" if row.computed else ""),
                *(
                    f"{100 * a.final.mean:.1f} ± {100 * a.deviation:.1f}" if a else ""
                    for a in accuracy
                ),
                ""
                if row.computed
                else " / ".join(
                    f"{100 * s.mean:.1f}" for s in row.delivered_share if s is not None
                ),
                f"{row.airtime_s.mean:.3f}",
                f"{row.energy_j.mean:.4f}",
                f"{joules if row.computed else computing[row.method]:.1f}",
            ]
        )
    document = {"rows": rows, "at equal energy": [each.words for each in summary.budgets]}
    FIRST_RUN.write_text(
        json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    save(accuracy_figure(records), RESULTS / "accuracy.svg")


def leads(rows: list[tuple[str, Any]], label: str, path: Path) -> None:
    """One line per difference with its interval."""
    figure, axes = plt.subplots(figsize=(6.4, 0.55 + 0.42 * len(rows)), layout="constrained")
    for place, (_, row) in enumerate(rows):
        mean = row["mean"] if isinstance(row, dict) else row.mean
        low, high = (row["low"], row["high"]) if isinstance(row, dict) else row.interval()
        shade = GREY if low <= 0 <= high else BLUE
        axes.plot([low, high], [place, place], color=shade, linewidth=2)
        axes.plot(mean, place, "o", color=shade)
    axes.axvline(0, color="#5b6670", linewidth=0.8)
    axes.set_yticks(range(len(rows)), labels=[name for name, _ in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"{label}; bars: 95% intervals", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)
    plt.close(figure)


if __name__ == "__main__":
    write_first_run(Path(sys.argv[1]))
