"""The report: one HTML file for some runs, with the scripts that draw its plots.

A section is a list of blocks, each a kind and its contents; the template `report.html` knows all
kinds and escapes all text.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from slimfl import experiment as config
from slimfl.errors import RequestError
from slimfl.files import atomic_write
from slimfl.methods.names import title
from slimfl.report import tables
from slimfl.report.figures import colours
from slimfl.report.pages import conclusions, plots
from slimfl.report.pages.page_shell import asset, charts, render
from slimfl.report.pages.plots import DEVICES, Axis, Line, Lines, Plot
from slimfl.results.groups import Group, by_scene, group
from slimfl.results.records import RunRecord
from slimfl.results.rules import LAST, energy_words, expected_of
from slimfl.results.summary import summarise

Block = tuple[str, Any]
#: How `Experiment.read` is given an object in place of a name, by the kind of the object.
OWN = {
    "dataset": 'data={"dataset": ...}',
    "network": 'model={"name": ...}',
    "channel": 'radio={"model": ...}',
    "method": "method=...",
}


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
    report = _Report(records)
    sections = [part for part in report.sections() if part[2]]
    values = {"points": report.lines.points, "devices": DEVICES, "thinned": report.lines.thinned}
    data = {"summary": report.summary.as_json(), "thinned": report.lines.thinned}
    return render(
        "page.html",
        css=asset("page.css"),
        kind="slimfl report",
        title=_title(report.groups),
        subtitle=_subtitle(records, report.groups),
        contents=[(key, title) for key, title, _ in sections],
        main=render("report.html", sections=sections, **values),
        scripts=_json("slimfl-data", data)
        + _json("slimfl-plots", report.plots)
        + charts()
        + f"<script>{asset('report.js')}</script>",
    )


class _Report:
    """The sections of a report, and the plots that they show."""

    def __init__(self, records: Sequence[RunRecord]) -> None:
        self.groups, self.summary = by_scene(group(records)), summarise(records)
        self.lines = Lines.for_page(self.groups)
        self.plots: dict[str, Plot] = {}
        self.scenes: dict[str, list[Group]] = {}
        for each in self.groups:
            self.scenes.setdefault(each.scene, []).append(each)
        rows = [row for row in self.summary.groups if not row.computed]
        self.rows = dict(zip(map(id, self.groups), rows, strict=True))
        self.palette = colours.by_name(each.name for each in self.groups)

    def sections(self) -> list[tuple[str, str, list[Block]]]:
        """Key, title and blocks of every section, in the order of the page."""
        return [
            ("result", "The result", self._result()),
            ("table", "Closing table", self._tables()),
            ("accuracy", "Accuracy over rounds", self._accuracy()),
            ("accuracy-cost", "Accuracy against cost", self._accuracy_cost()),
            ("losses", "Losses", self._losses()),
            ("devices", "Who was heard", self._devices()),
            ("arrivals", "What arrived", self._arrivals()),
            ("delivered", "Measured and expected", self._delivered()),
            ("costs", "Bits", self._bits()),
            ("partition", "Who holds what", self._partition()),
            ("experiment", "The experiment", [_experiment(each) for each in self.groups]),
        ]

    def _figure(self, key: str, plot: Plot, label: str, caption: str = "") -> Block:
        """The place of a plot, with a description for people who cannot see it."""
        key = f"{key}-{len(self.plots)}"
        self.plots[key] = plot
        values = {"key": key, "label": label, "caption": caption, "height": plot["height"]}
        return "figure", values

    def _by_scene(self, key: str, label: str, made: dict[str, Plot]) -> list[Block]:
        """One plot per setting on a common scale, side by side if the screen is wide enough."""
        plots.share_axis(made.values())
        parts = [
            [
                *([("h4", _capital(scene))] if len(self.scenes) > 1 else []),
                self._figure(key, plot, f"{label}, {scene}"),
            ]
            for scene, plot in made.items()
        ]
        return [("side-by-side", parts)] if parts else []

    def _curves(
        self,
        key: str,
        label: str,
        lines_of: Callable[[Group], list[Line]],
        x: Sequence[Axis],
        y: Axis,
        height: int,
    ) -> list[Block]:
        """Curves of every setting; empty if there are none."""
        made = {}
        for scene, groups in self.scenes.items():
            lines = [line for each in groups for line in lines_of(each)]
            if lines or key == "accuracy":
                widths = groups[0].runs[0].width_names
                made[scene] = plots.curves(lines, self.palette, widths, x, y, height)
        names = ", ".join(dict.fromkeys(each.name for each in self.groups))
        return self._by_scene(key, f"{label}, of {names}", made)

    def _result(self) -> list[Block]:
        """The result in words; for several settings, first a table with one row each."""
        said = conclusions.conclusions_by_scene(self.summary)
        notes: list[Block] = [("note", note) for note in conclusions.caveats(self.summary)]
        if len(said) == 1:
            return [("sentences", sentences) for sentences in said.values()] + notes
        how = (
            "The most accurate method for each setting and its lead, where their difference by "
            "seed has a 95% interval that excludes zero. Energy: one run of Vanilla FL per width "
            "compared with one run of SlimFL."
        )
        words: list[Block] = []
        for scene, sentences in said.items():
            words += [("h4", _capital(scene)), ("sentences", sentences)]
        return [
            ("table", conclusions.overview(self.summary)),
            ("note", how),
            *notes,
            _fold("In words, setting by setting", words),
        ]

    def _tables(self) -> list[Block]:
        """The closing table over seeds, the costs, and every run."""
        sums = dict.fromkeys(title(row.method) for row in self.summary.groups if row.computed)
        summed = "".join(
            f" {name} is the sum of the Vanilla FL runs of all widths, each of which stops on its "
            "own."
            for name in sums
        )
        accuracy = (
            f"Accuracy is the mean over the last evaluated rounds, at most {LAST}; ± is the "
            "deviation over seeds or, with one seed, over those rounds. Delivered: the share of "
            "the devices that were asked."
        )
        return [
            ("table", tables.closing(self.summary)),
            ("note", accuracy),
            ("table", tables.costs(self.summary)),
            ("note", "Power and computing are counted as in the paper's table VII." + summed),
            _fold("Every run", [("table", tables.every_run(self.summary))]),
        ]

    def _accuracy(self) -> list[Block]:
        band = (
            " The line is the mean over seeds; the band reaches from the lowest seed to the "
            "highest."
        )
        how = (
            "The colour shows the method, the dash pattern the width."
            f"{band if any(len(each.runs) > 1 for each in self.groups) else ''} "
            "Click a name to hide or show its curve; drag across a plot to zoom in."
        )
        lines = partial(self.lines.of_widths, what="accuracy", scale=100)
        x, y = [plots.ROUND], plots.ACCURACY
        return [("p", how), *self._curves("accuracy", "Accuracy over rounds", lines, x, y, 440)]

    def _accuracy_cost(self) -> list[Block]:
        counted = energy_words(run for each in self.groups for run in each.runs) or "none"
        how = (
            "Accuracy of the model against the cost of all devices together. Vanilla FL at one "
            "width pays only for that width. Computing energy follows a preset, and presets "
            f"differ by two orders of magnitude; here: {counted}."
        )
        label = "Accuracy over energy, airtime, data sent or virtual time"
        lines, x = self.lines.against_cost, list(plots.COSTS.values())
        drawn = self._curves("accuracy-cost", label, lines, x, plots.ACCURACY, 400)
        return [("p", how), *drawn]

    def _losses(self) -> list[Block]:
        """The losses on the test set and in training; empty if no run recorded any."""
        blocks: list[Block] = []
        for what, name, label in (
            ("loss", "On the test set", "cross-entropy on the test set"),
            ("training_loss", "In training, mean over devices", "training loss of the devices"),
        ):
            lines, key = partial(self.lines.of_widths, what=what), what.replace("_", "-")
            drawn = self._curves(key, _capital(label), lines, [plots.ROUND], Axis(label), 360)
            blocks += [("h3", name), *drawn] if drawn else []
        return blocks

    def _devices(self) -> list[Block]:
        """Time, batteries, who was heard and why others were missing."""
        blocks: list[Block] = []
        for table in tables.clocks(self.groups):
            how = (
                "Virtual time of all rounds; joules of all devices together, computing according "
                "to the named presets, which differ by two orders of magnitude. First empty and "
                "half empty: the round in which the first battery and half of the batteries were "
                "empty."
            )
            blocks += [("table", table), ("note", how)]
        axes = [plots.ROUND, Axis("virtual time, s", "s")]
        charge = Axis("charge left of all batteries, %", "%", from_zero=True)
        label = "Charge of all batteries together"
        batteries = self._curves("batteries", label, self.lines.batteries, axes, charge, 340)
        blocks += [("h3", "Batteries"), *batteries] if batteries else []
        notes = (
            "In percent of the times that a device was asked. Never heard: devices from which "
            "nothing was ever merged.",
            "Accuracy in percent on the devices' own data: the accuracy of every label on the "
            "test set, weighted by the labels of each device, as the mean over devices. Heard "
            "least: the quarter of the devices that delivered least often.",
        )
        found = tables.devices(self.groups)
        for table, note in zip(found, notes, strict=False):
            blocks += [("table", table), ("note", note)]
        for each in self.groups if found else ():
            plot = self.lines.cell_map(each.runs[0])
            if plot is not None:
                name = f"{each.name}, {each.scene}, seed {each.runs[0].experiment.seed}"
                label = f"Where the devices are and how often each was heard: {name}"
                how = (
                    "blue devices were always heard, orange ones never; circles train all "
                    "widths, squares cannot"
                )
                blocks.append(self._figure("cell", plot, label, f"{name}: {how}"))
        return blocks

    def _arrivals(self) -> list[Block]:
        """One heat map per group, of its first seed; those of further settings are folded."""
        most = max(len(each.runs[0].width_names) for each in self.groups)
        blocks: list[Block] = [_legend(most)]
        for number, (scene, groups) in enumerate(self.scenes.items()):
            maps: list[Block] = []
            for run, each in ((each.runs[0], each) for each in groups if each.runs[0].lines):
                name = f"{each.name}, seed {run.experiment.seed}"
                label = f"Segments of each device that were decoded in each round: {name}, {scene}"
                segments = len(run.width_names)
                own = [_legend(segments)] if segments != most else []
                drawn = self._figure("arrivals", self.lines.heat(run), label)
                maps += [("h5", name), *own, drawn]
            blocks += [_fold(_capital(scene), maps, number == 0)] if len(self.scenes) > 1 else maps
        return blocks

    def _delivered(self) -> list[Block]:
        made = {
            scene: plots.delivered([(each, self.rows[id(each)]) for each in groups], self.palette)
            for scene, groups in self.scenes.items()
        }
        unknown = [
            each.name
            for each in self.groups
            if expected_of(each.runs[0].experiment, each.runs[0].provenance) is None
        ]
        none = f" For {', '.join(unknown)} there is no formula, so no expected values are shown."
        how = (
            "Bars: measured. Diamonds: the decoding probability of equation (5), reduced by "
            "dropout, with two standard errors for the same number of uploads."
        )
        label = "Delivered share of every segment, measured and expected"
        return [("p", how + (none if unknown else "")), *self._by_scene("delivered", label, made)]

    def _bits(self) -> list[Block]:
        made = {
            scene: plots.bits([self.rows[id(each)] for each in groups], self.palette)
            for scene, groups in self.scenes.items()
        }
        drawn = self._by_scene("bits", "Decoded and dropped MB per segment", made)
        return [("p", "Solid: decoded. Hatched: sent but dropped."), *drawn]

    def _partition(self) -> list[Block]:
        """Every distinct partition among the groups' first seeds."""
        shown: dict[str, list[Block]] = {}
        for run in (each.runs[0] for each in self.groups):
            if not run.class_counts or str(run.class_counts) in shown:
                continue
            data = run.experiment.data
            alpha = f", alpha {data.alpha:g}" if data.partition.startswith("dirichlet") else ""
            name = f"{run.dataset_name}, {data.partition}{alpha}, seed {run.experiment.seed}"
            plot = self.lines.partition(run.class_counts)
            label = f"Samples of every class on every device: {name}"
            shown[str(run.class_counts)] = [self._figure("partition", plot, label, name)]
        return [("side-by-side", list(shown.values()))] if shown else [("p", "No run has started.")]


def _experiment(group: Group) -> Block:
    """Everything needed to repeat the runs of a group."""
    first = group.runs[0]
    versions = first.provenance.get("versions", {})
    made_with = ", ".join(f"{name} {version}" for name, version in versions.items())
    files = [str(run.path / "experiment.toml") for run in group.runs]
    if first.own:  # a command line cannot pass objects
        needed = "".join(f", {OWN[kind]}" for kind in first.own if kind in OWN)
        commands = [f"slimfl.Experiment.read({file!r}{needed}).run('NEW_FOLDER')" for file in files]
    else:
        commands = [f"slimfl run {shlex.quote(file)} --out NEW_FOLDER" for file in files]
    facts = [
        ("Made with", made_with or "unknown"),
        ("SHA-256 of the data", str(first.provenance.get("data_sha256", "unknown"))),
        *(
            (f"Own {kind}, given in Python", f"{own.get('name', '')} {own.get('fingerprint', '')}")
            for kind, own in first.own.items()
        ),
    ]
    seeds = ", ".join(str(run.experiment.seed) for run in group.runs)
    blocks: list[Block] = [
        ("facts", facts),
        ("p", "Repeat it:"),
        ("pre", "\n".join(commands)),
        ("p", f"The experiment of seed {first.experiment.seed}:"),
        ("pre", config.dump(first.experiment)),
    ]
    return _fold(f"{group.name}, {group.scene} (seeds {seeds})", blocks)


def _legend(segments: int) -> Block:
    pairs = zip(plots.arrival_words(segments), colours.arrivals(segments), strict=True)
    return "legend", [(word, *colours.on_screen(shade)) for word, shade in pairs]


def _fold(title: str, blocks: list[Block], is_open: bool = False) -> Block:
    return "fold", {"title": title, "blocks": blocks, "open": is_open}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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


def _json(key: str, value: Any) -> str:
    """A script element with data in which no text can end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    text = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return f'<script type="application/json" id="{key}">{text}</script>\n'
