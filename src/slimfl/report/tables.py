"""The tables of runs: one list of columns each, for the terminal, HTML, CSV and JSON.

Callers must print them on a console without markup, as names and paths may contain square brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import pandas as pd
from rich import box
from rich.table import Table as RichTable

from slimfl.experiment import EnergySection, TimeSection
from slimfl.results.devices import device_summary
from slimfl.results.groups import Group, by_scene, group
from slimfl.results.per_run import RunRow, run_summary
from slimfl.results.records import RunRecord
from slimfl.results.rules import ERRORS, energy_words
from slimfl.results.statistics import paired
from slimfl.results.summary import GroupRow, Summary, footing, summarise

NONE = "–"


# --- how numbers are written; a dash if there is none


def number(value: float | None, digits: int = 3) -> str:
    """The given significant digits and all digits before the point, never a power of ten.

    >>> number(1234.6), number(0.01041), number(None)
    ('1,235', '0.0104', '–')
    """
    if value is None:
        return NONE
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    text = f"{value:#.{digits}g}"
    return (f"{float(text):.9f}".rstrip("0") if "e" in text else text).rstrip(".")


def percent(share: float | None) -> str:
    """`93.4`, in percent."""
    return NONE if share is None else f"{100 * share:.1f}"


def plain(value: Any) -> str:
    """Words and whole numbers as they are, other numbers by `number`."""
    return str(value) if isinstance(value, str | int) else number(value)


def accuracy(row: GroupRow, width: str) -> str:
    """`84.1 ± 0.3`, in percent, with the deviation over seeds or else over rounds."""
    mean = row.accuracy_mean(width)
    return NONE if mean is None else f"{100 * mean:.1f} ± {100 * row.accuracy_deviation(width):.1f}"


def rounds(row: GroupRow) -> str:
    """`20`, or `6/20` while a run is not complete."""
    done = min(run["rounds_done"] for run in row.runs)
    asked = row.runs[0]["rounds_asked"]
    return f"{done}" if all(run["complete"] for run in row.runs) else f"{done}/{asked}"


def privacy(run: RunRow) -> str:
    """Epsilon and its delta; clipping without noise bounds nothing."""
    if run["privacy"] is None:
        return NONE
    epsilon = run["privacy"]["epsilon"]
    return f"{'unbounded' if epsilon is None else f'{epsilon:.3g}'} ({run['privacy']['delta']:g})"


def _spread(values: pd.Series, scale: float = 1, form: str = ".4g", error: str = ".2g") -> str:
    """Mean and deviation over seeds; a dash unless every seed has a value."""
    if not len(values) or values.hasnans:
        return NONE
    deviation = f" ± {scale * values.std():{error}}" if len(values) > 1 else ""
    return f"{scale * values.mean():{form}}{deviation}"


# --- what a table is


@dataclass(frozen=True)
class Column:
    """One column: its heading, what a program gets, and what a reader sees."""

    heading: str
    key: str
    value: Callable[[Any], Any]
    """Of a row: a number, a word, a list or None."""
    form: Callable[[Any], str] = plain
    """How the value is written."""
    text: Callable[[Any], str] | None = None
    """Of a row, where the value alone does not say it."""
    over: str = ""
    """A heading shared with the neighbours."""
    terminal: bool = True
    """False if it is shown on a page alone, for lack of room."""

    def shown(self, row: Any) -> str:
        """What a reader sees."""
        return self.text(row) if self.text else self.form(self.value(row))


@dataclass(frozen=True)
class RunTable:
    """Rows under headings; the first column is the name of a row."""

    key: str
    title: str
    name: Callable[[Any], str]
    columns: Sequence[Column]
    rows: Sequence[Any]
    caption: str = ""
    scene: Callable[[Any], str] = lambda row: ""
    """Rows of several scenes stand under headings, or have their scene below their name."""
    heading: str = "method"

    @property
    def scenes(self) -> list[str]:
        """The scenes in order; empty if there is only one."""
        found = list(dict.fromkeys(map(self.scene, self.rows)))
        return found if len(found) > 1 else []

    @property
    def over(self) -> list[tuple[str, int]]:
        """The shared headings with the number of columns below each."""
        spans = groupby(self.columns, key=lambda column: column.over)
        return [(over, len(list(same))) for over, same in spans]

    def as_json(self) -> list[dict[str, Any]]:
        """One dictionary per row."""
        return [
            {self.heading: self.name(row), "scene": self.scene(row)}
            | {column.key: column.value(row) for column in self.columns}
            for row in self.rows
        ]

    def csv(self) -> str:
        """The same for spreadsheets."""
        text: str = pd.DataFrame(self.as_json()).to_csv(index=False)
        return text

    def console(self) -> RichTable:
        """For the terminal."""
        table = RichTable(
            title=self.title,
            title_justify="left",
            caption=self.caption or None,
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            collapse_padding=True,
        )
        shown = [column for column in self.columns if column.terminal]
        table.add_column(self.heading, overflow="fold")
        for column in shown:
            over = f"{column.over}\n" if column.over else ""
            table.add_column(f"{over}{column.heading}", justify="right", vertical="top")
        for scene in self.scenes or [""]:
            if scene:
                table.add_section()
                table.add_row(scene, style="italic")
            for row in self.rows:
                if not scene or self.scene(row) == scene:
                    style = "dim" if getattr(row, "computed", False) else ""
                    table.add_row(self.name(row), *(c.shown(row) for c in shown), style=style)
        return table


# --- the tables


def console_tables(records: Iterable[RunRecord], differences: bool = False) -> list[RichTable]:
    """What runs reached and what it cost, for the terminal.

    Args:
        records: The runs.
        differences: Show each accuracy's difference from the first row, and all costs.
    """
    records = list(records)
    groups, summary = by_scene(group(records)), summarise(records)
    tables = [closing(summary, differences), *([costs(summary)] if differences else [])]
    return [table.console() for table in (*tables, *clocks(groups), *devices(groups))]


def closing(summary: Summary, differences: bool = False) -> RunTable:
    """The most important results of runs; fits 80 columns with two widths.

    Args:
        summary: The runs.
        differences: Add each accuracy's difference in points from the first row with that width.
    """
    rows = summary.groups
    spent = dict.fromkeys(privacy(run) for run in summary.runs if run["privacy"])
    notes = [_caption(rows) + _footing(rows), *(each.words for each in summary.budgets)]
    notes += [each.words for each in summary.averaged]
    if spent:
        notes.insert(1, f"differential privacy, epsilon (delta): {', '.join(spent)}")
    segments = range(1, max(row.segments for row in rows) + 1)

    def compared(row: GroupRow, width: str) -> str:
        first = next(other for other in rows if width in other.widths)
        own, base = row.accuracy_mean(width), first.accuracy_mean(width)
        if not differences or own is None or base is None or row is first:
            return accuracy(row, width)
        points = round(100 * (own - base), 1) + 0.0  # no -0.0
        lead = paired(
            (100 * row.accuracy(width)).to_dict(), (100 * first.accuracy(width)).to_dict()
        )
        interval = lead.interval() if lead is not None else None
        half = f" ± {(interval[1] - interval[0]) / 2:.1f}" if interval else ""
        return f"{accuracy(row, width)}\n({points:+.1f}{half})"

    def delivered(row: GroupRow) -> list[float | None]:
        return [row.mean(f"segments.{s}.delivered_share") for s in segments[: row.segments]]

    def converged(row: GroupRow) -> str:
        """The round, or how many seeds converged."""
        mean = row.mean("converged_round")
        some = sum(run["converged_round"] is not None for run in row.runs)
        partly = f"{some} of {len(row.seeds)}" if some else NONE
        return partly if mean is None else f"{mean:.0f}"

    columns = [
        Column("seeds", "seeds", lambda row: len(row.seeds), terminal=False),
        Column("\nrounds", "rounds", rounds),
        *(
            Column(f"{width}\naccuracy %", f"accuracy.{width}",
                   partial(GroupRow.accuracy_mean, width=width),
                   text=partial(compared, width=width))
            for width in width_names(rows)
        ),
        Column("delivered %\nper segment", "delivered", delivered,
               lambda shares: " / ".join(map(percent, shares))),
        _mean("sent\nJ", "total.energy_j"),
        Column("conver-\nged in", "converged_round", lambda row: row.mean("converged_round"),
               text=converged),
        _mean("images\nper s", "images_per_s", terminal=False),
    ]  # fmt: skip
    title = "Final accuracy and what it cost"
    if differences:
        title += "; in brackets: difference in points from the first row with that width"
        if any(len(row.seeds) > 1 for row in rows):
            title += ", with Student's 95% interval"
    return _of_groups("closing", title, columns, rows, "\n".join(notes))


def costs(summary: Summary) -> RunTable:
    """Costs in total and until convergence; power and computing as in the paper's table VII."""
    whole, until = "in all", "until\nconvergence"

    def megabytes(row: GroupRow, word: str) -> float:
        return sum(row.mean(f"segments.{s + 1}.{word}_mb") or 0.0 for s in range(row.segments))

    columns = [
        *(
            Column(f"{word}\nMB", f"{word}_mb", partial(megabytes, word=word), over=whole)
            for word in ("decoded", "dropped")
        ),
        _mean("airtime\ns", "total.airtime_s", over=whole),
        *(
            _mean(heading, f"{part}.{key}", over=over)
            for part, over in (("total", whole), ("until_converged", until))
            for heading, key in (("energy\nJ", "energy_j"), ("power\nW", "paper_power_w"),
                                 ("computing\nGFLOPS", "paper_gflops"))
        ),
    ]  # fmt: skip
    return _of_groups("cost", "Costs", columns, summary.groups)


def every_run(summary: Summary) -> RunTable:
    """Every single run."""

    def best(run: RunRow, width: str) -> str:
        own = run["accuracy"].get(width)
        if own is None:
            return NONE
        return f"{percent(own['final'])} ± {percent(own['deviation'])} ({percent(own['best'])})"

    columns = [
        Column("seed", "seed", itemgetter("seed")),
        Column("rounds", "rounds", lambda run: f"{run['rounds_done']}/{run['rounds_asked']}"),
        *(
            Column(f"{width} accuracy (best), %", f"accuracy.{width}", partial(best, width=width))
            for width in width_names(summary.groups)
        ),
        Column("energy, J", "energy_j", lambda run: run["total"]["energy_j"]),
        Column("converged in round", "converged", itemgetter("converged_round")),
        Column("refused updates", "refused", itemgetter("refused")),
    ]
    if any(run["privacy"] for run in summary.runs):
        columns.append(Column("epsilon (delta)", "privacy", privacy))
    return RunTable("run", "Every run", itemgetter("method"), columns, summary.runs)


def clocks(groups: Iterable[Group]) -> list[RunTable]:
    """Time and energy of groups that configure a clock, energy or unequal devices."""
    set_up = [each for each in groups if _has_clock(each.runs[0])]
    if not set_up:
        return []
    rows = [(each, pd.DataFrame(_clock(run) for run in each.runs)) for each in set_up]

    def column(heading: str, key: str) -> Column:
        return Column(
            heading,
            key,
            lambda row: row[1][key].mean(skipna=False),
            text=lambda row: _spread(row[1][key].astype(float)),
        )

    columns = [
        column("time s", "clock_s"),
        column("sending J", "sending_j"),
        column("computing J", "computing_j"),
        Column("counted by", "counted_by", lambda row: energy_words(row[0].runs)),
        column("first empty", "first_empty"),
        column("half empty", "half_empty"),
    ]
    return [RunTable("clock", "Time and energy", _full_name(set_up), columns, rows)]


def devices(groups: Iterable[Group]) -> list[RunTable]:
    """Who was missing, and accuracy on the devices' own data; none if all devices are identical."""
    known = [
        (each, found)
        for each in groups
        if (found := [s for run in each.runs if (s := device_summary(run)) is not None])
    ]
    if not known:
        return []
    name = _full_name([each for each, _ in known])
    reasons = sorted({why for _, found in known for one in found for why in one.missing})

    def missing(row: Any, why: str) -> pd.Series:
        shares = [one.missing.get(why) for one in row[1]]
        happened = any(share is not None for share in shares)
        return pd.Series([share or 0.0 for share in shares] if happened else [], dtype=float)

    columns = [_shares(why, partial(missing, why=why)) for why in reasons]
    never = Column(
        "never heard, devices",
        "never_heard",
        lambda row: float(pd.Series([one.never_heard for one in row[1]]).mean()),
        "{:.3g}".format,
    )
    title = "Missing, % of the times a device was asked"
    tables = [RunTable("missing", title, name, [*columns, never], known)]

    kinds = list(dict.fromkeys(k for _, found in known for one in found for k in one.accuracy))
    rows = [
        (each, found, width)
        for each, found in known
        for width in dict.fromkeys(w for one in found for k in one.accuracy.values() for w in k)
    ]

    def own(row: Any, kind: str) -> pd.Series:
        values = (one.accuracy.get(kind, {}).get(row[2]) for one in row[1])
        return pd.Series([value for value in values if value is not None], dtype=float)

    if rows:
        columns = [_shares(kind, partial(own, kind=kind)) for kind in kinds]
        title = "Accuracy % on the devices' own data"
        width = Column("width", "width", itemgetter(2))
        tables.append(RunTable("fairness", title, name, [width, *columns], rows))
    return tables


def width_names(rows: Iterable[GroupRow]) -> list[str]:
    """Every width that some row has, narrowest first."""
    return sorted({width for row in rows for width in row.widths}, key=lambda w: float(w[:-1]))


def _of_groups(
    key: str, title: str, columns: Sequence[Column], rows: Sequence[GroupRow], caption: str = ""
) -> RunTable:
    return RunTable(key, title, lambda row: row.name, columns, rows, caption, lambda row: row.scene)


def _mean(heading: str, key: str, *, over: str = "", terminal: bool = True) -> Column:
    return Column(heading, key, lambda row: row.mean(key), over=over, terminal=terminal)


def _shares(heading: str, values: Callable[[Any], pd.Series]) -> Column:
    """Percentages over the seeds."""
    return Column(
        heading,
        heading,
        lambda row: None if not len(values(row)) else float(values(row).mean()),
        text=lambda row: _spread(values(row), 100, ".1f", ".1f"),
    )


def _clock(run: RunRecord) -> dict[str, float | None]:
    row = run_summary(run)
    return {
        "clock_s": row["clock_s"],
        "sending_j": row["total"]["energy_j"],
        "computing_j": row["compute_energy_j"],
        "first_empty": row["first_empty"] and row["first_empty"]["round"],
        "half_empty": row["half_empty"] and row["half_empty"]["round"],
    }


def _has_clock(run: RunRecord) -> bool:
    experiment = run.experiment
    differ = run.devices is not None
    return differ or experiment.time != TimeSection() or experiment.energy != EnergySection()


def _full_name(groups: Sequence[Group]) -> Callable[[Any], str]:
    """The name of a row's group, with its scene if there are several."""
    several = len({each.scene for each in groups}) > 1
    return lambda row: f"{row[0].name}, {row[0].scene}" if several else row[0].name


def _caption(rows: Sequence[GroupRow]) -> str:
    seeds = {len(row.seeds) for row in rows}
    if seeds == {1}:
        deviation = "± is the deviation over the last evaluated rounds"
    elif 1 in seeds:
        deviation = "± is the deviation over seeds, or over the last rounds for a single seed"
    else:
        deviation = f"± is the deviation over {'/'.join(map(str, sorted(seeds)))} seeds"
    scenes = {row.scene for row in rows}
    where = f"{scenes.pop()}; " if len(scenes) == 1 else ""
    return f"{where}{deviation}{_not_learned(rows)}"


def _footing(rows: Sequence[GroupRow]) -> str:
    """In what the runs of one scene agree, and in what not."""
    single = [row for row in rows if not row.computed]
    if len(single) < 2 or len({row.scene for row in single}) > 1:
        return ""
    equal, unequal = footing(single)
    words = [f"{'equal' if some is equal else 'not equal'} for all single runs: {', '.join(some)}"
             for some in (equal, unequal) if some]  # fmt: skip
    return "".join(f"\n{each}" for each in words)


def _not_learned(rows: Sequence[GroupRow]) -> str:
    """A warning about methods that are not better than guessing."""
    tested = [(row, width) for row in rows if not row.computed for width in row.widths]
    guessing = [(row, width) for row, width in tested if not row.has_learned(width)]
    if not guessing:
        return ""
    limit = 100 * max(row.learned_above for row, _ in guessing)
    which = "no network has learned yet"
    if len(guessing) < len(tested):
        named = dict.fromkeys(f"{row.name} at {width}" for row, width in guessing)
        which = f"not learned yet: {', '.join(named)}"
    return (
        f"\n{which} (not above {limit:.1f} %, which is guessing plus {ERRORS:.0f} standard errors)"
    )
