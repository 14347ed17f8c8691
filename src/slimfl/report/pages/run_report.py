"""The report: one HTML file of some runs, with Plotly embedded."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slimfl.errors import RequestError
from slimfl.report.pages import sections
from slimfl.report.pages.page_shell import asset, page_shell, section
from slimfl.report.whole_file import whole_file
from slimfl.results import curves
from slimfl.results.curves import DEVICES, POINTS
from slimfl.results.groups import Group, by_scene, group
from slimfl.results.records import RunRecord
from slimfl.results.summary import Summary, summarise


def write_report(records: Iterable[RunRecord], path: Path) -> Path:
    """Write the report of these runs and return its path."""
    contents = page(list(records))
    with whole_file(path) as temporary:
        temporary.write_text(contents, encoding="utf-8")
    return path


def page(records: Sequence[RunRecord]) -> str:
    """The whole report as text."""
    from plotly.offline import get_plotlyjs

    if not records:
        raise RequestError("there is nothing to report; give at least one run folder")
    groups, summary = by_scene(group(records)), summarise(records)
    canvas = sections.Canvas()
    scenes = sections.Scenes(groups, summary)
    parts = [
        ("result", "The result", sections.conclusions_section(summary)),
        ("table", "Closing table", sections.table_section(summary)),
        ("accuracy", "Accuracy over rounds", sections.accuracy_section(scenes, canvas)),
        ("arrivals", "What arrived", sections.arrival_section(scenes, canvas)),
        ("delivered", "Measured and expected", sections.delivered_section(scenes, canvas)),
        ("costs", "Bits and energy", sections.cost_section(scenes, canvas)),
        ("partition", "Who holds what", sections.partition_section(groups, canvas)),
        ("experiment", "The experiment", sections.experiment_section(groups)),
    ]
    devices = sections.devices_section(groups)
    if devices:
        parts.insert(5, ("devices", "Who was heard", devices))
    main = (
        "<noscript><p class='note'>The plots need JavaScript; the words and tables do not.</p>"
        f"</noscript>{_thinned() if canvas.thinned else ''}"
        + "".join(section(key, title, html) for key, title, html in parts)
    )
    data = _json(_data(groups, summary, canvas))
    return page_shell(
        kind="slimfl report",
        title=_title(groups),
        subtitle=_subtitle(records, groups),
        contents=[(key, title) for key, title, _ in parts],
        main=main,
        scripts=f'<script type="application/json" id="slimfl-data">{data}</script>'
        f'<script type="application/json" id="slimfl-plots">{_json(canvas.plots)}</script>'
        f"<script>{get_plotlyjs()}</script>"
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


def _thinned() -> str:
    return (
        f"<p class='note' id='thinned'>The runs are long: plots show at most {POINTS:,} rounds and "
        f"{DEVICES} devices (twice as many in the partition), evenly picked. Tables and sentences "
        "use all of them.</p>"
    )


def _data(groups: Sequence[Group], summary: Summary, canvas: sections.Canvas) -> dict[str, Any]:
    """The numbers behind the page, for scripts that read it."""
    return {
        "summary": summary.as_json(),
        "curves": [
            {
                "name": each.name,
                "scene": each.scene,
                "method": each.method,
                "seeds": [run.experiment.seed for run in each.runs],
                "accuracy": {w: asdict(c) for w, c in curves.accuracy_curves(each).items()},
                "energy_j": asdict(curves.energy_curve(each)),
            }
            for each in groups
        ],
        "thinned": canvas.thinned,
    }


def _json(value: Any) -> str:
    """JSON that no text inside can end the script element around it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
