"""All methods over two populations, one channel and one clock, after the same number of rounds.

Only the rounds are equal: airtime, transmit energy and computing differ between methods, so every
table and sentence names the airtime. In `cell` every device can train the full width, so HeteroFL,
FedRolex, Federated Dropout and the exclusive baseline are all Vanilla FL-1.0x there and are not run
again. In `phones` half of the devices train 0.5x at most. US-Net with two widths is SHeteroFL: the
sandwich has nothing between its narrowest and its widest, so it is not run either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from lab.cell import Cell
from lab.drawing import Lead, Point, lead_figure, pareto_figure
from lab.judge import gap_words
from lab.question import Answer, Final, Picture, Question, Runs, Table, complete, late_tests, spent
from lab.scale import StudyScale
from lab.studies.compare import WIDTHS, Told, close_words, each_seed, final_of, highest, tell_apart
from slimfl.devices import population_of
from slimfl.methods.names import title
from slimfl.results.devices import accuracy_by_device
from slimfl.results.records import RunRecord
from slimfl.results.statistics import paired

DEVICES = 20
ALPHA = 0.3
FULL = WIDTHS[-1]
PER_DEVICE = {"radio__split": "per-device", "radio__split_objective": "weighted"}
IN_TURN = {"radio__multiplexing": "orthogonal-energy"}


@dataclass(frozen=True)
class Entry:
    """A method as it takes part: its name, and the keys beside it."""

    name: str
    method: str
    changes: Mapping[str, Any]


def _entry(method: str, **changes: Any) -> Entry:
    return Entry(title(method), method, changes)


SLIMFL = Entry("SlimFL (split per device)", "slimfl", PER_DEVICE)
_ALL = (
    SLIMFL,
    _entry("slimfl"),
    Entry("SlimFL (segments in turn)", "slimfl", IN_TURN),
    _entry("sheterofl"),
    _entry("heterofl"),
    _entry("fjord"),
    _entry("fjord-kd"),
    _entry("fedrolex"),
    _entry("federated-dropout"),
    _entry("split-mix", model__name="split-mix"),
    _entry("vanilla-0.5x"),
    _entry("vanilla-1.0x"),
    _entry("exclusive"),
)
_ONLY = {
    "cell": {"vanilla-1.0x"},
    "phones": {"heterofl", "fedrolex", "federated-dropout", "exclusive"},
}
ENTRIES = {
    population: tuple(
        e for e in _ALL if e.method in own or e.method not in set.union(*_ONLY.values())
    )
    for population, own in _ONLY.items()
}
#: What a population's methods are drawn over: the full width without segments.
BASELINES = {"cell": title("vanilla-1.0x"), "phones": title("exclusive")}


def runs_of(
    scale: StudyScale, population: str, entry: Entry, *, seeds: int, rounds: int
) -> list[Cell]:
    """One method in one population, under every seed.

    With twice the devices of the reproduction, each takes half the steps.
    """
    shared = {
        "data__alpha": ALPHA,
        "federation__devices": DEVICES,
        "population__preset": population,
        "training__steps": max(1, scale.steps // 2),
    }
    return each_seed(scale, entry.method, seeds, rounds=rounds, **shared, **entry.changes)


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
    by_width: dict[str, Final]
    far: dict[str, Final]
    """On the data of the farthest quarter of the devices, which is the same for all methods."""
    heard: float
    """Percent of all uploads whose first segment arrived."""
    uploads: dict[int, int]
    """Of the devices that send the whole model: the number of uploads by segments delivered."""
    airtime_ms: float
    """Of one upload."""
    energy_j: float
    """Sending and computing, of all devices."""
    sending_j: float
    clock_s: float

    @property
    def name(self) -> str:
        """As a row is called."""
        return self.entry.name

    @property
    def timed(self) -> str:
        """The name with the airtime of its uploads."""
        return f"{self.name}, {self.airtime_ms:.3f} ms"

    @property
    def is_longer_message(self) -> bool:
        """Whether segments in turn were one message in all but name, in a longer airtime."""
        whole = max(self.uploads, default=0)
        all_or_nothing = all(count in (0, whole) for count in self.uploads)
        return "radio__multiplexing" in self.entry.changes and all_or_nothing


#: On which data the full width is compared: a name, and where a result has it.
MEASURES: dict[str, Callable[[Result], Mapping[str, Final]]] = {
    "on all test images": lambda each: each.by_width,
    "on the data of far devices": lambda each: each.far,
}


def result(scale: StudyScale, population: str, entry: Entry, runs: Runs) -> Result | None:
    """What came out; None before the first run is finished."""
    records = complete(runs, rival_runs(scale, population, entry))
    if not records:
        return None
    every = {width: final_of(records, width) for width in WIDTHS}
    tested = {width: each for width, each in every.items() if each.by_seed}
    took = spent(records)
    heard = [sum(e.delivered[0] for e in r.lines) / max(sum(e.asked for e in r.lines), 1)
             for r in records]  # fmt: skip
    return Result(
        entry,
        tested,
        {width: Final(_far(records, width)) for width in tested},
        100 * fmean(heard),
        _uploads(records),
        1000 * took["airtime per upload"],
        took["all energy"],
        took["transmit energy"],
        fmean(record.lines[-1].clock_s or 0.0 for record in records),
    )


def _uploads(records: Sequence[RunRecord]) -> dict[int, int]:
    counts: Counter[int] = Counter()
    for record in records:
        able = population_of(record.experiment).max_width == len(WIDTHS) - 1
        for line in record.lines:
            pairs = zip(line.devices, line.decoded, strict=True)
            counts.update(decoded for device, decoded in pairs if able[device])
    return dict(sorted(counts.items()))


def _far(records: Sequence[RunRecord], width: str) -> dict[int, float]:
    found = {}
    for record in records:
        late = late_tests(record, width, StudyScale.last_share, record.experiment.rounds)
        accuracies = accuracy_by_device(record, late).get(width)
        if accuracies is not None:
            distances = population_of(record.experiment).distance_m
            farthest = np.argsort(-distances, kind="stable")[: len(distances) // 4]
            found[record.experiment.seed] = 100 * float(np.nanmean(accuracies[farthest]))
    return found


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """A table, the leads and two Pareto fronts for each population."""
    sentences, tables, pictures, data = [], [], [], {}
    for population, entries in ENTRIES.items():
        results = [r for e in entries if (r := result(scale, population, e, runs))]
        sentences += [_ranking(population, results, width) for width in WIDTHS]
        sentences += [
            _ranking(population, results, FULL, "on the data of far devices"),
            _closest_rival(population, results),
            *_in_turn(population, results),
        ]
        words = (
            f"Population `{population}`: {DEVICES} devices, noise as poor, alpha = {ALPHA:g}. All "
            "methods have the same rounds, but neither the same airtime nor the same energy."
        )
        tables.append(_table(population, words, results))
        data[population] = [_data(each) for each in results]
        if results:
            pictures += _pictures(population, results)
    return Answer(tables, [], [each for each in sentences if each], pictures, data)


def _ranking(
    population: str, results: Sequence[Result], width: str, measure: str = "on all test images"
) -> str:
    """The highest mean at a width after equal rounds, and who is not told apart from it.

    Without segments in turn that are one message in a longer airtime: they answer another question.
    """
    finals = {
        each.name: some[width]
        for each in results
        if width in (some := MEASURES[measure](each)) and not each.is_longer_message
    }
    podium = highest(finals)
    if podium is None:
        return ""
    best, leads = podium
    where = "" if measure == next(iter(MEASURES)) else f" {measure}"
    airtime = next(each.airtime_ms for each in results if each.name == best)
    return (
        f"In `{population}` at {width}{where}, after equal rounds, the highest mean is {best} "
        f"({finals[best].brief} %, {airtime:.3f} ms on the air per upload){close_words(leads)}."
    )


def _closest_rival(population: str, results: Sequence[Result]) -> str:
    """Every superposed form of SlimFL against the rival that trains alike, one message."""
    rival = _sheterofl(results)
    slim = [each for each in results if each.entry.method == "slimfl"]
    superposed = [each for each in slim if "radio__multiplexing" not in each.entry.changes]
    if rival is None or not superposed:
        return ""
    told = _over(superposed, rival)
    leads = ", ".join(
        f"{each.name} {gap_words(told[each.name].contrast)} in {each.airtime_ms:.3f} ms"
        for each in superposed
        if each.name in told
    )
    return (
        f"In `{population}`, points at {FULL} over {rival.name}, which trains alike and sends one "
        f"message in {rival.airtime_ms:.3f} ms: {leads}. The airtimes differ, so this is not what "
        "superposition alone brings."
    )


def _in_turn(population: str, results: Sequence[Result]) -> list[str]:
    """Segments in turn with one threshold are one message, in a longer airtime."""
    rival = _sheterofl(results)
    return [
        f"In `{population}`, {each.name} never delivered a part of the model: of "
        f"{sum(each.uploads.values()):,} uploads of whole models {each.uploads.get(0, 0):,} "
        f"delivered nothing and {each.uploads.get(len(WIDTHS), 0):,} all of it. Its segments have "
        f"one threshold, so it is one message in {each.airtime_ms / rival.airtime_ms:.1f} times "
        f"the airtime of {rival.name}. Its lead over methods with a shorter airtime is not an "
        "effect of segments, so it is not ranked above."
        for each in results
        if rival is not None and each.is_longer_message
    ]


def _sheterofl(results: Sequence[Result]) -> Result | None:
    return next((each for each in results if each.entry.method == "sheterofl"), None)


def _over(
    results: Sequence[Result], base: Result, measure: str = "on all test images"
) -> dict[str, Told]:
    """How far each method's full width is ahead of one, with their common deviation."""
    other = MEASURES[measure](base).get(FULL)
    leads = {
        each.name: lead
        for each in results
        if each.name != base.name
        and other
        and (one := MEASURES[measure](each).get(FULL))
        and (lead := paired(one.by_seed, other.by_seed))
    }
    return tell_apart(leads)


def _table(population: str, words: str, results: Sequence[Result]) -> Table:
    headings = ["method", "seeds", "0.5x, %", "1.0x, %", f"1.0x over {SLIMFL.name}",
                "on far devices' data, 0.5x / 1.0x, %", "heard, %", "airtime per upload, ms",
                "time, s", "sending, J", "sending and computing, J"]  # fmt: skip
    base = next((each for each in results if each.entry is SLIMFL), None)
    told = _over(results, base) if base is not None else {}
    rows = [
        [
            each.name,
            str(max(len(one.by_seed) for one in each.by_width.values())),
            *(one.brief if (one := each.by_width.get(width)) else "" for width in WIDTHS),
            gap_words(told[each.name].contrast) if each.name in told else "",
            " / ".join(one.brief if (one := each.far.get(w)) else "–" for w in WIDTHS),
            f"{each.heard:.0f}",
            f"{each.airtime_ms:.3f}",
            f"{each.clock_s:.3g}",
            f"{each.sending_j:.3f}",
            f"{each.energy_j:.2f}",
        ]
        for each in results
    ]
    return Table(population, words, headings, rows)


def _pictures(population: str, results: Sequence[Result]) -> list[Picture]:
    filled = "Filled marks, joined by a line, are those that no other beats in both."
    energy, clock = "sending and computing, all devices, J", "virtual time, s"
    return [
        *_lead_picture(population, results),
        Picture(
            f"{population}-energy",
            "Accuracy against the energy that all devices take for sending and computing, "
            f"population `{population}`. {filled}",
            pareto_figure(_panels(results, "energy_j"), energy, population),
        ),
        Picture(
            f"{population}-time",
            f"Accuracy against virtual time, population `{population}`. {filled}",
            pareto_figure(_panels(results, "clock_s"), clock, population),
        ),
    ]


def _lead_picture(population: str, results: Sequence[Result]) -> list[Picture]:
    """Every method's lead over the full width without segments."""
    base = next((each for each in results if each.name == BASELINES[population]), None)
    if base is None:
        return []
    shown = [each for each in results if not each.is_longer_message]
    timed = {each.name: each.timed for each in results}
    panels = {}
    for measure in MEASURES:
        panels[measure] = [
            Lead(timed[name], told.contrast.mean, told.contrast.interval(), told.apart)
            for name, told in _over(shown, base, measure).items()
        ]
    left_out = [each.name for each in results if each.is_longer_message]
    caption = (
        f"Full-width accuracy over {base.name}, population `{population}`, after equal rounds: "
        "paired differences over seeds. Behind a name stands the airtime of an upload; methods "
        "with different airtimes do not show what their way of sending brings. "
        + f"{', '.join(left_out)} is left out: it is one message in a longer airtime. "
        * bool(left_out)
        + "Far devices are the farthest quarter."
        + " HeteroFL, FedRolex and Federated Dropout are the same there." * (population == "cell")
    )
    return [Picture(f"{population}-lead", caption, lead_figure(panels, base.timed))]


def _panels(results: Sequence[Result], cost: str) -> dict[str, Sequence[Point]]:
    return {
        width: [
            Point(each.name, getattr(each, cost), one.mean, one.deviation)
            for each in results
            if (one := each.by_width.get(width))
        ]
        for width in WIDTHS
    }


def _data(each: Result) -> dict[str, Any]:
    return {
        "method": each.name,
        "keys": {"method": each.entry.method, **each.entry.changes},
        "accuracy": {width: dict(one.by_seed) for width, one in each.by_width.items()},
        "far": {width: dict(one.by_seed) for width, one in each.far.items()},
        "heard_percent": each.heard,
        "uploads_by_segments_delivered": each.uploads,
        "airtime_ms": each.airtime_ms,
        "energy_j": each.energy_j,
        "sending_j": each.sending_j,
        "clock_s": each.clock_s,
    }


RIVALS = Question(
    "rivals",
    "SlimFL among its rivals",
    "How good is the model of each method for unequal devices, for how much airtime and energy?",
    cells,
    answer,
)
