"""The README's results: what both widths cost, what superposition brings, where not to use it.

The first is from the results of the reproduction, the others from those of the planned runs. The
table of the first run and its figure are made from the folder of a run:

    slimfl run --out FOLDER && python docs/_ext/headline.py FOLDER
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from convergence import table
from two_modes import save

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
STANDARD = RESULTS / "reproduction" / "standard" / "results.json"
PLAN, FIRST_RUN = RESULTS / "plans" / "superposition.json", RESULTS / "first-run.json"
BLUE, GREY = "#2a6f97", "#9a9a9a"
WIDTHS = ("0.5x", "1.0x")


def texts() -> dict[str, str]:
    """The sentences of the README and the table of the page on the reproduction."""
    return {
        "both widths": both_widths_words(),
        "superposition in short": superposition_words(),
        "superposition among rivals": superposition_words().replace("(docs/", "("),
        "where not": where_not_words(),
        "first run": first_run_words(),
    }


def draw(folder: Path) -> None:
    """One picture per result that has none yet."""
    leads(
        [
            (each["name"].removeprefix("budget "), each)
            for each in budget_claims()
            if each["seeds"] > 1
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
def budget_claims() -> list[dict[str, Any]]:
    """SlimFL's leads at the paper's accounting of transmit budget, by setting and width."""
    document = json.loads(STANDARD.read_text(encoding="utf-8"))
    [question] = [each for each in document["questions"] if each["name"] == "budget"]
    return [each for each in question["claims"] if each["name"].startswith("budget ")]


def both_widths_words() -> str:
    """The paper's own comparison, in two sentences."""
    claims = budget_claims()
    several = [each for each in claims if each["seeds"] > 1]
    apart = sum(each["low"] > 0 for each in several)
    kept = sum(each["p_holm"] < 0.05 for each in several)
    full = next(each for each in claims if each["name"] == "budget poor, α = 1 1.0x")
    return (
        "One SlimFL run gives both widths for half the transmit power and bandwidth of the two "
        "Vanilla FL runs that it replaces; when these have spent the same, SlimFL's full width is "
        f"ahead by {full['ours']}, preliminary (poor channel, α = 1).\n\n"
        f"It is ahead in {sum(each['mean'] > 0 for each in claims)} of the {len(claims)} archived "
        f"comparisons of table III, by {min(each['mean'] for each in claims):.1f} to "
        f"{max(each['mean'] for each in claims):.1f} points. {len(several)} of them have several "
        f"seeds: {apart} intervals exclude 0, {kept} after Holm's correction. After equal rounds "
        "the accuracies are not told apart, so the lead shrinks as runs converge. One nested "
        "message (SHeteroFL) would share most of it. Computing costs the same per round, so SlimFL "
        "computes more rounds. [Other ways to count](docs/reproduction.md#the-papers-own-"
        "comparison) give smaller leads."
    )


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
    from slimfl.report.figures.runs import accuracy_figure
    from slimfl.report.tables import accuracy
    from slimfl.results.records import find
    from slimfl.results.summary import summarise

    records = find([folder])
    summary = summarise(records)
    computing = {
        r.experiment.method: sum(x.compute_energy_j or 0 for x in r.lines) for r in records
    }
    both = sum(computing[method] for method in computing if "vanilla" in method)
    rows = []
    for row in summary.groups:
        shares = [row.mean(f"segments.{s + 1}.delivered_share") for s in range(row.segments)]
        delivered = [f"{100 * share:.1f}" for share in shares if share is not None]
        rows.append(
            [
                row.name + (", both" if row.computed else ""),
                *(accuracy(row, width) if width in row.widths else "" for width in WIDTHS),
                "" if row.computed else " / ".join(delivered),
                f"{row.mean('total.airtime_s'):.3f}",
                f"{row.mean('total.energy_j'):.4f}",
                f"{both if row.computed else computing[row.method]:.1f}",
            ]
        )
    document = {"rows": rows, "at equal energy": [each.words for each in summary.budgets]}
    FIRST_RUN.write_text(
        json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    save(accuracy_figure(records), RESULTS / "accuracy.svg")


def leads(rows: list[tuple[str, dict[str, Any]]], label: str, path: Path) -> None:
    """One line per difference with its interval."""
    figure, axes = plt.subplots(figsize=(6.4, 0.55 + 0.42 * len(rows)), layout="constrained")
    for place, (_, row) in enumerate(rows):
        mean, low, high = row["mean"], row["low"], row["high"]
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
