"""The report's sections as HTML, each from the data that it shows. All text is escaped here."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from html import escape

from slimfl import experiment as config
from slimfl.report.figures import colours
from slimfl.report.pages import plots
from slimfl.report.pages.cell_map import cell_map
from slimfl.report.pages.conclusions import caveats, conclusions_by_scene, rankings
from slimfl.report.pages.lines import Lines
from slimfl.report.pages.overview import overview
from slimfl.report.pages.plots import Plot
from slimfl.report.tables import html as tables
from slimfl.report.tables.devices import clocks_html, devices_html
from slimfl.results.clock import clock_summaries
from slimfl.results.devices import group_device_summaries
from slimfl.results.energy import computing_counted, energy_words
from slimfl.results.expected import expected_of
from slimfl.results.groups import Group, title
from slimfl.results.run_summary import LAST
from slimfl.results.summary import Summary

_ACCURACY = plots.Axis("accuracy on the test set, %", "%", decimals=1)
_COSTS = (
    plots.Axis("transmit energy so far, J", "J"),
    plots.Axis("airtime so far, s", "s"),
    plots.Axis("data sent so far, MB", "MB"),
    plots.Axis("virtual time so far, s", "s"),
    plots.Axis("energy of computing and sending so far, J", "J"),
)


#: The x-axes for the charge of batteries.
_CLOCK = (plots.ROUND, plots.Axis("virtual time, s", "s"))


class Canvas:
    """Collects the plots of a page; the page's script draws them into the placeholder figures."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.plots: dict[str, Plot] = {}
        self.thinned = False

    def figure(self, key: str, plot: Plot, label: str, caption: str = "") -> str:
        """The placeholder of a plot, with a description for people who cannot see it."""
        key = f"{key}-{len(self.plots)}"
        self.plots[key] = plot
        below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return (
            f'<figure><div class="plot" id="{key}" role="img" aria-label="{escape(label)}" '
            f'style="min-height:{plot["height"]}px"></div>{below}</figure>'
        )


def conclusions_section(summary: Summary) -> str:
    """The result in words; for several settings, first a table with one row each."""
    by_scene = conclusions_by_scene(summary)
    lists = {
        scene: "<ul class='conclusions'>"
        + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
        + "</ul>"
        for scene, sentences in by_scene.items()
    }
    notes = "".join(f"<p class='note'>{escape(note)}</p>" for note in caveats(summary))
    if len(lists) == 1:
        return "".join(lists.values()) + notes
    words = "".join(
        f"<h4>{escape(scene[:1].upper() + scene[1:])}</h4>{html}" for scene, html in lists.items()
    )
    return (
        f"{overview(rankings(summary), summary)}"
        "<p class='note'>The most accurate method for each setting and its lead, where their "
        "difference by seed has a 95% interval that excludes zero. Energy: one run of Vanilla FL "
        f"per width compared with one run of SlimFL.</p>{notes}<details>"
        f"<summary>In words, setting by setting</summary>{words}</details>"
    )


def table_section(summary: Summary) -> str:
    """The closing table over seeds, and every run below it."""
    rows, last = summary.groups, f"the last evaluated rounds, at most {LAST}"
    return (
        tables.closing(rows)
        + f"<p class='note'>Accuracy is the mean over {last}; ± is the deviation over seeds or, "
        "with one seed, over those rounds. Delivered: the share of the devices that were asked.</p>"
        + tables.costs(rows)
        + "<p class='note'>Power and computing are counted as in the paper's table VII."
        + "".join(
            f" {name} is the sum of the Vanilla FL runs of all widths, each of which stops on its "
            "own."
            for name in dict.fromkeys(title(row.method) for row in rows if row.computed)
        )
        + f"</p><details><summary>Every run</summary>{tables.runs(summary)}</details>"
    )


def accuracy_section(scenes: "Scenes", canvas: Canvas) -> str:
    """Curves with their bands."""
    several = any(len(group.runs) > 1 for groups in scenes.groups.values() for group in groups)
    band = " The line is the mean over seeds; the band reaches from the lowest seed to the highest."
    how = (
        f"The colour shows the method, the dash pattern the width.{band if several else ''} Click "
        "a name to hide or show its curve; drag across a plot to zoom in."
    )
    return f"<p>{how}</p>" + _curves(
        scenes, canvas, "accuracy", canvas.lines.accuracy, [plots.ROUND], _ACCURACY, 440,
        "Accuracy over rounds",
    )  # fmt: skip


def accuracy_cost_section(scenes: "Scenes", canvas: Canvas) -> str:
    """Accuracy against costs."""
    how = (
        "Accuracy of the model against the cost of all devices together. Vanilla FL at one width "
        "pays only for that width. Computing energy follows a preset, and presets differ by two "
        f"orders of magnitude; here: {_presets(scenes)}."
    )
    return f"<p>{how}</p>" + _curves(
        scenes, canvas, "accuracy-cost", canvas.lines.accuracy_against_cost, _COSTS, _ACCURACY, 400,
        "Accuracy against energy, airtime, data sent or virtual time",
    )  # fmt: skip


def loss_section(scenes: "Scenes", canvas: Canvas) -> str:
    """The losses on the test set and in training; empty if no run recorded any."""
    test = _curves(
        scenes, canvas, "loss", lambda group: canvas.lines.losses(group, "loss"), [plots.ROUND],
        plots.Axis("cross-entropy on the test set"), 360, "Loss on the test set over rounds",
    )  # fmt: skip
    training = _curves(
        scenes, canvas, "training-loss",
        lambda group: canvas.lines.losses(group, "training_loss"), [plots.ROUND],
        plots.Axis("training loss of the devices"), 360, "Training loss over rounds",
    )  # fmt: skip
    parts = [("On the test set", test), ("In training, mean over devices", training)]
    return "".join(f"<h3>{name}</h3>{html}" for name, html in parts if html)


def _curves(
    scenes: "Scenes",
    canvas: Canvas,
    key: str,
    lines_of: Callable[[Group], list[plots.Line]],
    x: Sequence[plots.Axis],
    y: plots.Axis,
    height: int,
    what: str,
) -> str:
    """One plot per scene, all with the same vertical axis; empty if there is nothing to show."""
    drawn: list[tuple[str, Plot, str]] = []
    for scene, groups in scenes.groups.items():
        lines = [line for group in groups for line in lines_of(group)]
        if not lines and key != "accuracy":
            continue
        widths = groups[0].runs[0].width_names
        plot = plots.curves(lines, scenes.palette, widths, x, y, height)
        names = ", ".join(dict.fromkeys(line.method for line in lines))
        at = f" at widths {', '.join(widths)}" if any(line.width for line in lines) else ""
        drawn.append((scene, plot, f"{what} of {names}{at}, {scene}"))
    plots.share_axis(plot for _, plot, _ in drawn)
    return _side_by_side(
        scenes.heading(scene) + canvas.figure(key, plot, label) for scene, plot, label in drawn
    )


def _side_by_side(parts: Iterable[str]) -> str:
    """Settings next to each other if the screen is wide enough, as they share an axis."""
    items = "".join(f"<div>{html}</div>" for html in parts)
    return f"<div class='side-by-side'>{items}</div>" if items else ""


def arrival_section(scenes: "Scenes", canvas: Canvas) -> str:
    """One heat map per group, of its first seed; those of further settings are collapsed."""
    parts = []
    most = max(len(g.runs[0].width_names) for groups in scenes.groups.values() for g in groups)
    for number, (scene, groups) in enumerate(scenes.groups.items()):
        maps = "".join(_heat_map(group, scene, most, canvas) for group in groups)
        if len(scenes.groups) > 1:
            words = escape(scene[:1].upper() + scene[1:])
            state = " open" if number == 0 else ""
            maps = f"<details{state}><summary>{words}</summary>{maps}</details>"
        parts.append(maps)
    return _legend(most) + "".join(parts)


def _heat_map(group: Group, scene: str, most: int, canvas: Canvas) -> str:
    run = group.runs[0]
    if not run.lines:
        return ""
    segments = len(run.width_names)
    name = f"{group.name}, seed {run.experiment.seed}"
    label = f"How many segments of each device were decoded in each round: {name}, {scene}"
    legend = _legend(segments) if segments != most else ""
    plot = plots.arrivals(canvas.lines.arrivals(run), segments)
    return f"<h5>{escape(name)}</h5>{legend}{canvas.figure('arrivals', plot, label)}"


def delivered_section(scenes: "Scenes", canvas: Canvas) -> str:
    """Measured and expected deliveries."""
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
    note = (
        f" For {', '.join(unknown)} there is no formula, so no expected values are shown."
        if unknown
        else ""
    )
    return (
        "<p>Bars: measured. Diamonds: the decoding probability of equation (5), reduced by "
        f"dropout, with two standard errors for the same number of uploads.{escape(note)}</p>"
        + _side_by_side(parts)
    )


def cost_section(scenes: "Scenes", canvas: Canvas) -> str:
    """Bits per segment, and energy over rounds."""
    drawn = []
    for scene, groups in scenes.groups.items():
        rows = [scenes.rows[group.setting, group.method] for group in groups]
        drawn.append((scene, plots.bits(rows, scenes.palette)))
    plots.share_axis(plot for _, plot in drawn)
    bits = _side_by_side(
        scenes.heading(scene)
        + canvas.figure("bits", plot, f"Decoded and dropped MB per segment, {scene}")
        for scene, plot in drawn
    )
    energy = _curves(
        scenes, canvas, "energy", canvas.lines.energy, [plots.ROUND],
        plots.Axis("transmit energy so far, J", "J", from_zero=True), 340,
        "Transmit energy of all devices so far",
    )  # fmt: skip
    return (
        f"<h3>Bits</h3><p>Solid: decoded. Hatched: sent but dropped.</p>{bits}"
        f"<h3>Energy</h3>{energy}"
    )


def partition_section(groups: Sequence[Group], canvas: Canvas) -> str:
    """The partition of the data: every distinct one among the groups' first seeds."""
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
    return _side_by_side(shown.values()) or "<p>No run has started.</p>"


def experiment_section(groups: Sequence[Group]) -> str:
    """Everything needed to repeat the runs."""
    return "".join(_experiment(group) for group in groups)


class Scenes:
    """The groups by scene, with their table rows and colours."""

    def __init__(self, groups: Sequence[Group], summary: Summary) -> None:
        self.groups: dict[str, list[Group]] = {}
        for group in groups:
            self.groups.setdefault(group.scene, []).append(group)
        rows = [row for row in summary.groups if not row.computed]
        pairs = zip(groups, rows, strict=True)
        self.rows = {(group.setting, group.method): row for group, row in pairs}
        self.palette = colours.by_name(group.name for group in groups)

    def heading(self, scene: str) -> str:
        """The scene's name, if there are several."""
        words = scene[:1].upper() + scene[1:]
        return f"<h4>{escape(words)}</h4>" if len(self.groups) > 1 else ""


def _experiment(group: Group) -> str:
    first = group.runs[0]
    versions = first.provenance.get("versions", {})
    made_with = ", ".join(f"{name} {version}" for name, version in versions.items())
    files = [str(run.path / "experiment.toml") for run in group.runs]
    if first.own:  # a command line cannot pass objects
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
    items = "".join(
        f"<li><i style='--light:{light};--dark:{dark}'></i>{escape(word)}</li>"
        for word, (light, dark) in ((word, colours.on_screen(shade)) for word, shade in pairs)
    )
    return f"<ul class='legend' aria-label='Colours'>{items}</ul>"


def devices_section(scenes: "Scenes", canvas: Canvas, groups: Sequence[Group]) -> str:
    """Who was heard and why others were missing; empty if all devices are identical."""
    summaries = group_device_summaries(groups)
    maps = "".join(cell_map(group) for group in groups)
    clocks = clocks_html(clock_summaries(groups))
    charge = _curves(
        scenes, canvas, "batteries", canvas.lines.batteries, _CLOCK,
        plots.Axis("charge left of all batteries, %", "%", from_zero=True), 340,
        "Charge of all batteries together",
    )  # fmt: skip
    batteries = f"<h3>Batteries</h3>{charge}" if charge else ""
    return clocks + batteries + (devices_html(summaries) + maps if summaries else "")


def _presets(scenes: "Scenes") -> str:
    """How the joules of the runs are counted, in words."""
    runs = [run for groups in scenes.groups.values() for group in groups for run in group.runs]
    words = dict.fromkeys(energy_words(run, computing_counted(run)) for run in runs if run.lines)
    return "; ".join(words) or "none"
