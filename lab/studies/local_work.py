"""How many local steps per round, with the same number of steps in all (in whole rounds).

Fewer steps mean more rounds, more uploads and more energy on the air; more steps let the devices
drift apart. The setting is that of `regimes` with the poor channel, all devices in one place.
"""

from __future__ import annotations

from lab.cell import Cell
from lab.drawing import Line, line_figure
from lab.question import Answer, Picture, Question, Runs, Table, complete, spent
from lab.scale import StudyScale
from lab.studies.compare import close_words, each_seed, final_of, highest
from lab.studies.regimes import METHODS, Regime
from slimfl.methods.names import title

SETTING = Regime("poor", "same", 0.1)
#: Steps per round, as multiples of the other studies'.
MULTIPLES = (0.25, 0.5, 1, 2, 4)
COMPARED = {"slimfl": ("0.5x", "1.0x"), "vanilla-1.0x": ("1.0x",)}


def runs_of(scale: StudyScale, method: str, multiple: float) -> list[Cell]:
    """A method with some number of steps per round, under every seed."""
    rounds, steps = _size(scale, multiple)
    every = max(1, round(scale.evaluate_every / multiple))
    changes = {**METHODS[method], **SETTING.changes, "training__steps": steps}
    return each_seed(scale, method, rounds=rounds, federation__evaluate_every=every, **changes)


def _size(scale: StudyScale, multiple: float) -> tuple[int, int]:
    """Rounds, and steps per round."""
    return max(1, round(scale.rounds / multiple)), max(1, round(scale.steps * multiple))


def cells(scale: StudyScale) -> list[Cell]:
    """Every method with every number of steps."""
    return [c for multiple in MULTIPLES for m in COMPARED for c in runs_of(scale, m, multiple)]


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """Accuracy over steps per round."""
    rows, lines, data, sentences = [], [], {}, []
    for method, widths in COMPARED.items():
        for width in widths:
            found = {
                m: final_of(complete(runs, runs_of(scale, method, m)), width) for m in MULTIPLES
            }
            known = {m: each for m, each in found.items() if each.by_seed}
            if not known:
                continue
            name = f"{title(method)} at {width}"
            steps = [scale.steps * m for m in known]
            lines.append(Line(name, steps, [each.mean for each in known.values()],
                              [each.deviation for each in known.values()],
                              dashed=method != "slimfl"))  # fmt: skip
            data[name] = {f"{scale.steps * m:g}": dict(e.by_seed) for m, e in known.items()}
            rows.append([name, *(e.brief if e.by_seed else "" for e in found.values())])
            podium = highest({f"{scale.steps * m:g}": each for m, each in known.items()})
            assert podium is not None
            best, leads = podium
            sentences.append(
                f"{name}: the highest mean with {best} steps per round{close_words(leads)}."
            )
    energy = []
    for multiple in MULTIPLES:
        records = complete(runs, runs_of(scale, "slimfl", multiple))
        energy.append(spent(records)["transmit energy"] if records else None)
    rows.append(["SlimFL, transmit energy, J", *("" if e is None else f"{e:.3f}" for e in energy)])
    headings = ["accuracy, %", *(f"{scale.steps * m:g} steps" for m in MULTIPLES)]
    if data:
        in_all = [rounds * steps for rounds, steps in (_size(scale, m) for m in MULTIPLES)]
        sentences.append(
            f"The number of local steps in all is between {min(in_all):,} and {max(in_all):,}, "
            "because the rounds are whole."
        )
    if energy[0] and energy[-1]:
        few, many = (f"{scale.steps * m:g}" for m in (MULTIPLES[0], MULTIPLES[-1]))
        sentences.append(
            f"With {many} steps per round SlimFL takes {energy[-1] / energy[0]:.0%} of the "
            f"transmit energy that it takes with {few}."
        )
    pictures = []
    if lines:
        where = "alpha 0.1, poor channel"
        drawn = line_figure(lines, "local steps per round", "accuracy, %", where,
                        log=True)  # fmt: skip
        pictures.append(Picture("steps", "Accuracy after as many local steps in all.", drawn))
    table = Table("steps", "Final accuracy by steps per round.", headings, rows)
    return Answer([table], [], sentences, pictures, data)


LOCAL_WORK = Question(
    "local-work",
    "How much to train between uploads",
    "How many local steps per round are best, if the number of steps in all is the same?",
    cells,
    answer,
)
