"""All methods over two populations, one channel and one clock, after the same number of rounds.

Only the rounds are equal: airtime, transmit energy and computing differ between methods, so every
table and sentence names the airtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.reproduction.exhibits.exhibit import Table
from lab.reproduction.judging.paired import Difference, difference
from lab.studies import standing
from lab.studies.drawings import (
    Dots,
    Lead,
    Point,
    fairness_figure,
    lead_figure,
    pareto_figure,
)
from lab.studies.rival_runs import (
    ALPHA,
    BASELINES,
    DEVICES,
    ENTRIES,
    SLIMFL,
    WIDTHS,
    Result,
    cells,
    result,
)
from lab.studies.scale import StudyScale
from lab.studies.standing import Standing
from lab.studies.study import Answer, Picture, Runs, Study, Titled

FULL = WIDTHS[-1]
#: On which data the full width is compared: a name, and where a result has it.
MEASURES: dict[str, Callable[[Result], Mapping[str, Standing]]] = {
    "on all test images": lambda each: each.by_width,
    "on the data of far devices": lambda each: each.far,
}


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """A table, the leads, two Pareto fronts and the ranking for each population."""
    sentences, tables, pictures, data = [], [], [], {}
    for population, entries in ENTRIES.items():
        results = [r for e in entries if (r := result(scale, population, e, runs))]
        sentences += [_ranking(population, results, width) for width in WIDTHS]
        sentences += [
            _ranking(population, results, FULL, "on the data of far devices"),
            _closest_rival(population, results),
            *_in_turn(population, results),
        ]
        title = (
            f"Population `{population}`: {DEVICES} devices, noise as poor, alpha = {ALPHA:g}. All "
            "methods have the same rounds, but neither the same airtime nor the same energy."
        )
        tables.append(Titled(population, title, _table(results)))
        data[population] = [_data(each) for each in results]
        if results:
            pictures += _pictures(population, results)
    return Answer([each for each in sentences if each], tables, pictures, data)


def _ranking(
    population: str, results: Sequence[Result], width: str, measure: str = "on all test images"
) -> str:
    """The highest mean at a width after equal rounds, and who is not told apart from it."""
    every = [MEASURES[measure](each) for each in results]
    podium = standing.podium([each[width] for each in every if width in each])
    if podium is None:
        return ""
    where = "" if measure == next(iter(MEASURES)) else f" {measure}"
    best = next(each for each in results if each.entry.name == podium.best.method)
    also = f"; {podium.words}" if podium.words else ""
    return (
        f"In `{population}` at {width}{where}, after equal rounds, the highest mean is "
        f"{podium.best.method} ({podium.best} %, {best.airtime_ms:.3f} ms on the air per upload)"
        f"{also}."
    )


def _closest_rival(population: str, results: Sequence[Result]) -> str:
    """Every superposed form of SlimFL against the rival that trains alike, one message."""
    rival = next((each for each in results if each.entry.method == "sheterofl"), None)
    slim = [each for each in results if each.entry.method == "slimfl" and not _takes_turns(each)]
    if rival is None or not slim:
        return ""
    leads = ", ".join(
        f"{each.entry.name} {standing.gap_words(_over(each, rival))} in {each.airtime_ms:.3f} ms"
        for each in slim
    )
    return (
        f"In `{population}`, points at {FULL} over {rival.entry.name}, which trains alike "
        f"and sends one message in {rival.airtime_ms:.3f} ms: {leads}. The airtimes differ, so "
        "this is not what superposition alone brings."
    )


def _takes_turns(each: Result) -> bool:
    return "radio__multiplexing" in each.entry.changes


def _is_longer_message(each: Result) -> bool:
    """Whether segments in turn were one message in all but name, in a longer airtime."""
    return _takes_turns(each) and each.is_one_message


def _left_out(results: Sequence[Result]) -> str:
    names = [each.entry.name for each in results if _is_longer_message(each)]
    return f"{', '.join(names)} is left out: it is one message in a longer airtime. " * bool(names)


def _in_turn(population: str, results: Sequence[Result]) -> list[str]:
    """Segments in turn with one threshold are one message, in a longer airtime."""
    rival = next((each for each in results if each.entry.method == "sheterofl"), None)
    return [
        f"In `{population}`, {each.entry.name} never delivered a part of the model: of "
        f"{sum(each.uploads.values()):,} uploads of whole models {each.uploads.get(0, 0):,} "
        f"delivered nothing and {each.uploads.get(len(WIDTHS), 0):,} all of it. Its segments have "
        f"one threshold, so it is one message in {each.airtime_ms / rival.airtime_ms:.1f} times "
        f"the airtime of {rival.entry.name}. Its lead over methods with a shorter airtime is not "
        "an effect of segments."
        for each in results
        if rival is not None and _is_longer_message(each)
    ]


def _over(one: Result, other: Result, measure: str = "on all test images") -> Difference | None:
    """How far one method's full width is ahead of another's."""
    first, second = (MEASURES[measure](each).get(FULL) for each in (one, other))
    if first is None or second is None:
        return None
    return difference(first.method, second.method, first.by_seed, second.by_seed, "points")


def _table(results: Sequence[Result]) -> Table:
    headings = ["method", "seeds", "0.5x, %", "1.0x, %", f"1.0x over {SLIMFL.name}",
                "on far devices' data, 0.5x / 1.0x, %", "heard, %", "airtime per upload, ms",
                "time, s", "sending, J", "sending and computing, J"]  # fmt: skip
    base = next((each for each in results if each.entry is SLIMFL), None)
    rows = []
    for each in results:
        over = _over(each, base) if base is not None and each is not base else None
        rows.append(
            [
                each.entry.name,
                str(max(len(one.by_seed) for one in each.by_width.values())),
                *(str(each.by_width.get(width, "")) for width in WIDTHS),
                standing.gap_words(over),
                " / ".join(str(each.far.get(width, "–")) for width in WIDTHS),
                f"{each.heard:.0f}",
                f"{each.airtime_ms:.3f}",
                f"{each.clock_s:.3g}",
                f"{each.sending_j:.3f}",
                f"{each.energy_j:.2f}",
            ]
        )
    return Table(headings, rows)


def _pictures(population: str, results: Sequence[Result]) -> list[Picture]:
    filled = "Filled marks, joined by a line, are those that no other beats in both."
    return [
        *_lead_picture(population, results),
        Picture(
            f"{population}-fairness",
            f"Accuracy of the full width, population `{population}`: on all test images, and on "
            "the data of the farthest quarter of the devices. Bars are deviations over seeds.",
            fairness_figure(_dots(results), f"full width, population {population}"),
        ),
        Picture(
            f"{population}-energy",
            f"Accuracy against the energy that all devices take for sending and computing, "
            f"population `{population}`. {filled}",
            pareto_figure(
                _panels(results, "energy_j"), "sending and computing, all devices, J", population
            ),
        ),
        Picture(
            f"{population}-time",
            f"Accuracy against virtual time, population `{population}`. {filled}",
            pareto_figure(_panels(results, "clock_s"), "virtual time, s", population),
        ),
    ]


def _lead_picture(population: str, results: Sequence[Result]) -> list[Picture]:
    """Every method's lead over the full width without segments."""
    base = next((each for each in results if each.entry.name == BASELINES[population]), None)
    if base is None:
        return []
    panels, shown = {}, [each for each in results if not _is_longer_message(each)]
    for measure in MEASURES:
        over = [(each, _over(each, base, measure)) for each in shown if each is not base]
        panels[measure] = [Lead(_timed(e), o.mean, o.half_width) for e, o in over if o is not None]
    same = " HeteroFL, FedRolex and Federated Dropout are the same there."
    caption = (
        f"Full-width accuracy over {base.entry.name}, population `{population}`, after equal "
        "rounds: paired differences over seeds. Behind a name stands the airtime of an upload; "
        "methods with different airtimes do not show what their way of sending brings. "
        f"{_left_out(results)}Far devices are the farthest quarter."
        f"{same if population == 'cell' else ''}"
    )
    return [Picture(f"{population}-lead", caption, lead_figure(panels, _timed(base)))]


def _timed(each: Result) -> str:
    """A method with the airtime of its uploads."""
    return f"{each.entry.name}, {each.airtime_ms:.3f} ms"


def _dots(results: Sequence[Result]) -> list[Dots]:
    return [
        Dots(
            each.entry.name,
            each.by_width[FULL].mean,
            each.by_width[FULL].deviation,
            each.far[FULL].mean,
            each.far[FULL].deviation,
        )
        for each in results
        if FULL in each.by_width and each.far[FULL].by_seed
    ]


def _panels(results: Sequence[Result], cost: str) -> dict[str, Sequence[Point]]:
    return {
        width: [
            Point(
                each.entry.name,
                getattr(each, cost),
                each.by_width[width].mean,
                each.by_width[width].deviation,
            )
            for each in results
            if width in each.by_width
        ]
        for width in WIDTHS
    }


def _data(each: Result) -> dict[str, Any]:
    return {
        "method": each.entry.name,
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


STUDY = Study(
    "rivals",
    "SlimFL among its rivals",
    "How good is the model of each method for unequal devices, for how much airtime and energy?",
    cells,
    answer,
)
