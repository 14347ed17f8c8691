"""The report's sections as HTML, each from the data that it shows. All text is escaped here."""

import shlex
from collections.abc import Sequence
from html import escape

from slimfl import config
from slimfl.report.figures import colours
from slimfl.report.pages import plots
from slimfl.report.pages.cell_map import cell_map
from slimfl.report.pages.conclusions import caveats, conclusions
from slimfl.report.pages.plots import Plot
from slimfl.report.tables import html as tables
from slimfl.report.tables.devices import clocks_html, devices_html
from slimfl.results import curves
from slimfl.results.clock import clock_summaries
from slimfl.results.devices import group_device_summaries
from slimfl.results.expected import expected_of
from slimfl.results.groups import Group, title
from slimfl.results.run_summary import LAST
from slimfl.results.summary import Summary


class Canvas:
    """Collects the plots of a page; the page's script draws them into the figures left here."""

    def __init__(self) -> None:
        self.plots: dict[str, Plot] = {}
        self.thinned = False

    def figure(self, key: str, plot: Plot, label: str, caption: str = "") -> str:
        """The place of a plot, with a description for those who cannot see it."""
        key = f"{key}-{len(self.plots)}"
        self.plots[key] = plot
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return (
            f'<figure><div class="plot" id="{key}" role="img" aria-label="{escape(label)}" '
            f'style="height:{plot["height"]}px"></div>{below}</figure>'
        )


def conclusions_section(summary: Summary) -> str:
    """The result in words."""
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in conclusions(summary))
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in caveats(summary))
    return f"<ul class='conclusions'>{said}</ul>{notes}"


def table_section(summary: Summary) -> str:
    """The closing table over seeds, and every run below it."""
    rows, last = summary.groups, f"the last evaluated rounds, at most {LAST}"
    return (
        tables.closing(rows)
        + f"<p class='note'>Accuracy is the mean over {last}; ± is the deviation over seeds or, "
        "with one seed, over those rounds. Delivered: the share of the asked devices.</p>"
        + tables.costs(rows)
        + "<p class='note'>Power and computing are counted as in the paper's table VII."
        + "".join(
            f" {name} is the sum of the Vanilla FL runs of all widths, each stopping by itself."
            for name in dict.fromkeys(title(row.method) for row in rows if row.computed)
        )
        + f"</p><details><summary>Every run</summary>{tables.runs(summary)}</details>"
    )


def accuracy_section(scenes: "Scenes", canvas: Canvas) -> str:
    """Curves with their bands."""
    parts = []
    for scene, groups in scenes.groups.items():
        drawn = [(group.name, curves.accuracy_curves(group)) for group in groups]
        canvas.thinned |= any(c.thinned for _, by in drawn for c in by.values())
        widths = groups[0].runs[0].width_names
        plot = plots.accuracy(drawn, scenes.palette, widths)
        names = ", ".join(name for name, _ in drawn)
        label = f"Accuracy over rounds of {names} at widths {', '.join(widths)}, {scene}"
        parts.append(scenes.heading(scene) + canvas.figure("accuracy", plot, label))
    several = any(len(group.runs) > 1 for groups in scenes.groups.values() for group in groups)
    band = " The line is the mean over seeds, the band goes from the lowest seed to the highest."
    how = f"Colour says the method, the dash the width.{band if several else ''}"
    return f"<p>{how}</p>" + "".join(parts)


def arrival_section(scenes: "Scenes", canvas: Canvas) -> str:
    """One heat map a group, of its first seed."""
    parts = []
    most = max(len(g.runs[0].width_names) for groups in scenes.groups.values() for g in groups)
    for scene, groups in scenes.groups.items():
        parts.append(scenes.heading(scene))
        for group in groups:
            run = group.runs[0]
            if not run.lines:
                continue
            table = curves.arrivals(run)
            canvas.thinned |= table.thinned
            segments = len(run.width_names)
            name = f"{group.name}, seed {run.experiment.seed}"
            label = f"How many segments of each device were decoded in each round: {name}, {scene}"
            parts.append(f"<h4>{escape(name)}</h4>")
            if segments != most:
                parts.append(_legend(segments))
            parts.append(canvas.figure("arrivals", plots.arrivals(table, segments), label))
    return _legend(most) + "".join(parts)


def delivered_section(scenes: "Scenes", canvas: Canvas) -> str:
    """Measured against expected."""
    parts = []
    for scene, groups in scenes.groups.items():
        rows = [(group, scenes.rows[group.setting, group.method]) for group in groups]
        label = f"Delivered share of every segment, measured and expected, {scene}"
        plot = plots.delivered(rows, scenes.palette)
        parts.append(scenes.heading(scene) + canvas.figure("delivered", plot, label))
    unknown = [
        group.name
        for groups in scenes.groups.values()
        for group in groups
        if expected_of(group.runs[0].experiment, group.runs[0].provenance) is None
    ]
    note = f" Nothing is expected of {', '.join(unknown)}: there is no formula." if unknown else ""
    return (
        "<p>Bars: measured. Diamonds: the decoding probability of equation (5), less dropout, with "
        f"two standard errors of a share over as many uploads.{escape(note)}</p>" + "".join(parts)
    )


def cost_section(scenes: "Scenes", canvas: Canvas) -> str:
    """Bits per segment, and energy over rounds."""
    parts = ["<p>Solid: decoded. Hatched: sent, and dropped.</p>"]
    for scene, groups in scenes.groups.items():
        rows = [scenes.rows[group.setting, group.method] for group in groups]
        drawn = [(group.name, curves.energy_curve(group)) for group in groups]
        canvas.thinned |= any(curve.thinned for _, curve in drawn)
        bits, energy = plots.bits(rows, scenes.palette), plots.energy(drawn, scenes.palette)
        parts += [
            scenes.heading(scene),
            canvas.figure("bits", bits, f"Decoded and dropped MB per segment, {scene}"),
            canvas.figure("energy", energy, f"Transmit energy of all devices so far, {scene}"),
        ]
    return "".join(parts)


def partition_section(groups: Sequence[Group], canvas: Canvas) -> str:
    """Who holds what: once for every different partition among the groups' first seeds."""
    shown: dict[str, str] = {}
    for group in groups:
        run = group.runs[0]
        if not run.class_counts or str(run.class_counts) in shown:
            continue
        data = run.experiment.data
        alpha = f", alpha {data.alpha:g}" if data.partition.startswith("dirichlet") else ""
        name = f"{run.dataset_name}, {data.partition}{alpha}, seed {run.experiment.seed}"
        plot, fewer = plots.partition(run.class_counts)
        canvas.thinned |= fewer
        label = f"Samples of every class on every device: {name}"
        shown[str(run.class_counts)] = canvas.figure("partition", plot, label, name)
    return "".join(shown.values()) or "<p>No run has begun.</p>"


def experiment_section(groups: Sequence[Group]) -> str:
    """Everything needed to repeat the runs."""
    return "".join(_experiment(group) for group in groups)


class Scenes:
    """The groups by scene, with their rows of the table and their colours."""

    def __init__(self, groups: Sequence[Group], summary: Summary) -> None:
        self.groups: dict[str, list[Group]] = {}
        for group in groups:
            self.groups.setdefault(group.scene, []).append(group)
        rows = [row for row in summary.groups if not row.computed]
        pairs = zip(groups, rows, strict=True)
        self.rows = {(group.setting, group.method): row for group, row in pairs}
        self.palette = colours.by_name(group.name for group in groups)

    def heading(self, scene: str) -> str:
        """The scene's name, where there are several."""
        words = scene[:1].upper() + scene[1:]
        return f"<h3>{escape(words)}</h3>" if len(self.groups) > 1 else ""


def _experiment(group: Group) -> str:
    first = group.runs[0]
    versions = first.provenance.get("versions", {})
    made_with = ", ".join(f"{name} {version}" for name, version in versions.items())
    files = [str(run.path / "experiment.toml") for run in group.runs]
    if first.own:  # a command line has no objects
        needed = "".join(f", {kind}=..." for kind in first.own)
        commands = [f"slimfl.run({file!r}, out='NEW_FOLDER'{needed})" for file in files]
    else:
        commands = [f"slimfl run {shlex.quote(file)} --out NEW_FOLDER" for file in files]
    own = "".join(
        f"<dt>Own {escape(kind)}, given in Python</dt><dd><code>{escape(entry.get('name', ''))}"
        f"</code>, <code>{escape(entry.get('fingerprint', ''))}</code></dd>"
        for kind, entry in first.own.items()
    )
    joined = "\n".join(commands)
    seeds = ", ".join(str(run.experiment.seed) for run in group.runs)
    text = config.dump(first.experiment)
    return (
        f"<details><summary>{escape(group.name)}, {escape(group.scene)} (seeds {seeds})</summary>"
        f"<dl><dt>Made with</dt><dd>{escape(made_with) or 'unknown'}</dd>"
        f"<dt>SHA-256 of the data</dt>"
        f"<dd><code>{escape(str(first.provenance.get('data_sha256', 'unknown')))}</code></dd>"
        f"{own}</dl>"
        f"<p>Repeat it:</p><pre class='command'>{escape(joined)}</pre>"
        f"<p>The experiment of seed {first.experiment.seed}:</p><pre>{escape(text)}</pre></details>"
    )


def _legend(segments: int) -> str:
    pairs = zip(plots.arrival_words(segments), colours.arrivals(segments), strict=True)
    items = "".join(f"<li><i style='background:{c}'></i>{escape(word)}</li>" for word, c in pairs)
    return f"<ul class='legend' aria-label='Colours'>{items}</ul>"


def devices_section(groups: Sequence[Group]) -> str:
    """Who was heard and why others were missing; empty where all devices are alike."""
    summaries = group_device_summaries(groups)
    maps = "".join(cell_map(group) for group in groups)
    clocks = clocks_html(clock_summaries(groups))
    return clocks + (devices_html(summaries) + maps if summaries else "")
