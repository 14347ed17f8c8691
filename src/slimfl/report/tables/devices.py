"""Tables of runs whose devices differ: time, energy, missing devices, accuracy by group."""

from collections.abc import Iterable, Sequence
from html import escape

from rich import box
from rich.table import Table

from slimfl.report.tables.number_format import NONE
from slimfl.results.clock import ClockSummary, clock_summaries
from slimfl.results.devices import GroupDeviceSummary, group_device_summaries
from slimfl.results.groups import by_scene, group
from slimfl.results.records import RunRecord
from slimfl.results.seed_summary import Spread

Rows = list[list[str]]


def devices_tables(records: Iterable[RunRecord]) -> list[Table]:
    """For the console; none if all devices are identical."""
    summaries = group_device_summaries(by_scene(group(records)))
    if not summaries:
        return []
    tables = [_console(*reasons(summaries), "Missing, % of the times a device was asked")]
    headings, rows = fairness(summaries)
    if rows:
        tables.append(_console(headings, rows, "Accuracy % on the devices' own data"))
    return tables


def clock_tables(records: Iterable[RunRecord]) -> list[Table]:
    """Time and energy for the console; none without a clock or unequal devices."""
    summaries = clock_summaries(by_scene(group(records)))
    return [_console(*time_and_energy(summaries), "Time and energy")] if summaries else []


def devices_html(summaries: Sequence[GroupDeviceSummary]) -> str:
    """For the report."""
    missing = (
        _html("missing-table", *reasons(summaries))
        + "<p class='note'>In percent of the times that a device was asked. Never heard: devices "
        "from which nothing was ever merged.</p>"
    )
    headings, rows = fairness(summaries)
    if not rows:
        return missing
    return (
        missing
        + _html("fairness-table", headings, rows)
        + "<p class='note'>Accuracy in percent on the devices' own data: the accuracy of every "
        "label on the test set, weighted by the labels of each device, as the mean over devices. "
        "Heard least: the quarter of the devices that delivered least often.</p>"
    )


def clocks_html(summaries: Sequence[ClockSummary]) -> str:
    """Time and batteries for the report; empty if they are not configured."""
    if not summaries:
        return ""
    return _html("clock-table", *time_and_energy(summaries)) + (
        "<p class='note'>Virtual time of all rounds; joules of all devices together, computing "
        "according to the named presets, which differ by two orders of magnitude. First empty and "
        "half empty: the round in which the first battery and half of the batteries were empty.</p>"
    )


def time_and_energy(summaries: Sequence[ClockSummary]) -> tuple[list[str], Rows]:
    """Headings and rows: time and energy of all rounds of a method."""
    several = len({each.scene for each in summaries}) > 1
    rows = [
        [
            f"{each.name}, {each.scene}" if several else each.name,
            _number(each.clock_s),
            _number(each.sending_j),
            _number(each.computing_j),
            each.counted,
            _number(each.first_empty_round),
            _number(each.half_empty_round),
        ]
        for each in summaries
    ]
    return [
        "method", "time s", "sending J", "computing J", "counted by", "first empty", "half empty",
    ], rows  # fmt: skip


def _number(spread: Spread | None) -> str:
    if spread is None:
        return NONE
    deviation = "" if spread.deviation is None else f" ± {spread.deviation:.2g}"
    return f"{spread.mean:.4g}{deviation}"


def reasons(summaries: Sequence[GroupDeviceSummary]) -> tuple[list[str], Rows]:
    """Headings and rows: one column per reason."""
    known = sorted({why for each in summaries for why in each.missing})
    rows = [
        [
            _name(each, summaries),
            *(_percent(each.missing.get(why)) for why in known),
            f"{each.never_heard.mean:.3g}",
        ]
        for each in summaries
    ]
    return ["method", *known, "never heard, devices"], rows


def fairness(summaries: Sequence[GroupDeviceSummary]) -> tuple[list[str], Rows]:
    """Headings and rows: one row per method and width, one column per group of devices."""
    kinds = list(dict.fromkeys(kind for each in summaries for kind in each.accuracy))
    rows = []
    for each in summaries:
        widths = dict.fromkeys(width for values in each.accuracy.values() for width in values)
        for width in widths:
            values = [each.accuracy.get(kind, {}).get(width) for kind in kinds]
            rows.append([_name(each, summaries), width, *map(_percent, values)])
    return ["method", "width", *kinds], rows


def _name(one: GroupDeviceSummary, among: Sequence[GroupDeviceSummary]) -> str:
    several = len({each.scene for each in among}) > 1
    return f"{one.name}, {one.scene}" if several else one.name


def _percent(spread: Spread | None) -> str:
    if spread is None:
        return NONE
    deviation = "" if spread.deviation is None else f" ± {100 * spread.deviation:.1f}"
    return f"{100 * spread.mean:.1f}{deviation}"


def _console(headings: list[str], rows: Rows, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    return table


def _html(key: str, headings: list[str], rows: Rows) -> str:
    head = "".join(f"<th scope='col'>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        f"<tr><th scope='row'>{escape(row[0])}</th>"
        + "".join(f"<td>{escape(value)}</td>" for value in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f"<div class='scroll'><table id='{key}'><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
