"""How many local steps per round, with the same number of steps in all (in whole rounds).

Fewer steps mean more rounds, more uploads and more energy on the air; more steps let the devices
drift apart. The setting is that of `regimes` with the poor channel, all devices in one place.
"""

from __future__ import annotations

from typing import Any

from lab.reproduction.cells.cell import Cell
from lab.reproduction.exhibits.exhibit import Table
from lab.studies import standing
from lab.studies.drawings import Line, line_figure
from lab.studies.regimes import METHODS, Regime
from lab.studies.scale import StudyScale
from lab.studies.study import Answer, Picture, Runs, Study, Titled, finished
from slimfl.results.groups import title

SETTING = Regime("poor", "same", 0.1)
#: Steps per round, as multiples of the other studies'.
MULTIPLES = (0.25, 0.5, 1, 2, 4)
COMPARED = {"slimfl": ("0.5x", "1.0x"), "vanilla-1.0x": ("1.0x",)}


def runs_of(scale: StudyScale, method: str, multiple: float) -> list[Cell]:
    """A method with some number of steps per round, under every seed."""
    return scale.each_seed(
        method,
        rounds=_rounds(scale, multiple),
        **{
            **METHODS[method],
            **SETTING.changes,
            "training__steps": _steps(scale, multiple),
            "federation__evaluate_every": max(1, round(scale.evaluate_every / multiple)),
        },
    )


def _rounds(scale: StudyScale, multiple: float) -> int:
    return max(1, round(scale.rounds / multiple))


def _steps(scale: StudyScale, multiple: float) -> int:
    return max(1, round(scale.steps * multiple))


def cells(scale: StudyScale) -> list[Cell]:
    """Every method with every number of steps."""
    return [c for multiple in MULTIPLES for m in COMPARED for c in runs_of(scale, m, multiple)]


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """Accuracy over steps per round."""
    rows, lines = [], []
    data: dict[str, dict[str, dict[int, float]]] = {}
    for method, widths in COMPARED.items():
        for width in widths:
            found = {m: _one(scale, method, width, m, runs) for m in MULTIPLES}
            known = {m: each for m, each in found.items() if each.by_seed}
            if not known:
                continue
            name = f"{title(method)} at {width}"
            lines.append(
                Line(
                    name,
                    [scale.steps * m for m in known],
                    [each.mean for each in known.values()],
                    [each.deviation for each in known.values()],
                    dashed=method != "slimfl",
                )
            )
            data[name] = {f"{scale.steps * m:g}": dict(e.by_seed) for m, e in known.items()}
            rows.append([name, *(str(each) if each.by_seed else "" for each in found.values())])
    energy = [_sending_j(scale, m, runs) for m in MULTIPLES]
    rows.append(["SlimFL, transmit energy, J", *("" if e is None else f"{e:.3f}" for e in energy)])
    headings = ["accuracy, %", *(f"{scale.steps * m:g} steps" for m in MULTIPLES)]
    sentences = [_best_words(name, by_steps) for name, by_steps in data.items()]
    if data:
        in_all = {_rounds(scale, m) * _steps(scale, m) for m in MULTIPLES}
        fewest, most = (f"{number:,}" for number in (min(in_all), max(in_all)))
        sentences.append(
            f"The number of local steps in all is {most} in every case."
            if fewest == most
            else f"The number of local steps in all is between {fewest} and {most}, because the "
            "rounds are whole."
        )
    if energy[0] and energy[-1]:
        few, many = (f"{scale.steps * m:g}" for m in (MULTIPLES[0], MULTIPLES[-1]))
        sentences.append(
            f"With {many} steps per round SlimFL takes {energy[-1] / energy[0]:.0%} of the "
            f"transmit energy that it takes with {few}."
        )
    pictures = []
    if lines:
        drawn = line_figure(lines, "local steps per round", "accuracy, %",
                            "alpha 0.1, poor channel", log=True)  # fmt: skip
        pictures.append(Picture("steps", "Accuracy after as many local steps in all.", drawn))
    table = Titled("steps", "Final accuracy by steps per round.", Table(headings, rows))
    return Answer(sentences, [table], pictures, data)


def _best_words(name: str, by_steps: dict[str, dict[int, float]]) -> str:
    """The number of steps with the highest mean, and those that are not told from it."""
    podium = standing.podium([standing.Standing(s, seeds) for s, seeds in by_steps.items()])
    assert podium is not None
    also = f"; {podium.words}" if podium.words else ""
    return (
        f"{name}: the highest mean with {podium.best.method} steps per round ({podium.best} %)"
        f"{also}."
    )


def _finished(scale: StudyScale, method: str, multiple: float, runs: Runs) -> list[Any]:
    return finished(runs_of(scale, method, multiple), runs)


def _one(
    scale: StudyScale, method: str, width: str, multiple: float, runs: Runs
) -> standing.Standing:
    records = _finished(scale, method, multiple, runs)
    return standing.final_standing(method, records, width)


def _sending_j(scale: StudyScale, multiple: float, runs: Runs) -> float | None:
    records = _finished(scale, "slimfl", multiple, runs)
    return standing.sending_j(records) if records else None


STUDY = Study(
    "local-work",
    "How much to train between uploads",
    "How many local steps per round are best, if the number of steps in all is the same?",
    cells,
    answer,
)
