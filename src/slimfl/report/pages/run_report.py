"""The report: one HTML file for some runs, with the script that draws its plots."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from slimfl.errors import RequestError
from slimfl.report.atomic_write import atomic_write
from slimfl.report.pages import charts, sections
from slimfl.report.pages.lines import Lines
from slimfl.report.pages.page_shell import asset, page_shell, section
from slimfl.results.curves import DEVICES
from slimfl.results.groups import Group, by_scene, group
from slimfl.results.records import RunRecord
from slimfl.results.summary import summarise


def write_report(records: Iterable[RunRecord], path: Path) -> Path:
    """Write the report of these runs and return its path."""
    contents = page(list(records))
    with atomic_write(path) as temporary:
        temporary.write_text(contents, encoding="utf-8", errors="replace")
    return path


def page(records: Sequence[RunRecord]) -> str:
    """The whole report as text."""
    if not records:
        raise RequestError("there is nothing to report; give at least one run folder")
    groups, summary = by_scene(group(records)), summarise(records)
    canvas = sections.Canvas(Lines.for_page(groups))
    scenes = sections.Scenes(groups, summary)
    parts = [
        ("result", "The result", sections.conclusions_section(summary)),
        ("table", "Closing table", sections.table_section(summary)),
        ("accuracy", "Accuracy over rounds", sections.accuracy_section(scenes, canvas)),
        ("accuracy-cost", "Accuracy against cost", sections.accuracy_cost_section(scenes, canvas)),
        ("losses", "Losses", sections.loss_section(scenes, canvas)),
        ("arrivals", "What arrived", sections.arrival_section(scenes, canvas)),
        ("delivered", "Measured and expected", sections.delivered_section(scenes, canvas)),
        ("costs", "Bits and energy", sections.cost_section(scenes, canvas)),
        ("partition", "Who holds what", sections.partition_section(groups, canvas)),
        ("experiment", "The experiment", sections.experiment_section(groups)),
    ]
    devices = sections.devices_section(scenes, canvas, groups)
    if devices:
        parts.insert(5, ("devices", "Who was heard", devices))
    parts = [part for part in parts if part[2]]
    thinned = canvas.thinned or canvas.lines.thinned
    main = (
        "<noscript><p class='note'>The plots need JavaScript; the text and tables do not.</p>"
        f"</noscript>{_thinned(canvas.lines) if thinned else ''}"
        + "".join(section(key, title, html) for key, title, html in parts)
    )
    data = _json({"summary": summary.as_json(), "thinned": thinned})
    return page_shell(
        kind="slimfl report",
        title=_title(groups),
        subtitle=_subtitle(records, groups),
        contents=[(key, title) for key, title, _ in parts],
        main=main,
        scripts=f'<script type="application/json" id="slimfl-data">{data}</script>'
        f'<script type="application/json" id="slimfl-plots">{_json(canvas.plots)}</script>'
        f"<script>{charts.script()}</script>"
        f"<script>{asset('slimfl.report.pages', 'page.js')}</script>",
    )


def _title(groups: Sequence[Group]) -> str:
    names = list(dict.fromkeys(each.name for each in groups))
    scenes = list(dict.fromkeys(each.scene for each in groups))
    shown = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    if len(shown) > 1:
        shown = [", ".join(shown[:-1]) + f" and {shown[-1]}"]
    where = f"the {scenes[0]}" if len(scenes) == 1 else f"{len(scenes)} settings"
    return f"{shown[0]} over {where}"


def _subtitle(records: Sequence[RunRecord], groups: Sequence[Group]) -> str:
    first = groups[0].runs[0].experiment
    datasets = ", ".join(dict.fromkeys(r.dataset_name for r in records))
    devices = "/".join(dict.fromkeys(str(r.experiment.federation.devices) for r in records))
    runs = f"{len(records)} runs" if len(records) > 1 else "1 run"
    widths = ", ".join(f"{width}x" for width in first.model.widths)
    return f"{datasets} · {devices} devices · widths {widths} · {runs}"


def _thinned(lines: Lines) -> str:
    return (
        "<p class='note' id='thinned'>There is too much data to draw: plots show at most "
        f"{lines.points:,} rounds and {DEVICES} devices (twice as many in the partition), evenly "
        "spaced. Tables and sentences use all of them.</p>"
    )


def _json(value: Any) -> str:
    """JSON in which no text can end the surrounding script element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
