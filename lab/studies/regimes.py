"""For which noise, rate, spread of distances and data which method is ahead, at each width.

SlimFL takes the split for each device that delivers the most segments (`radio.split = "per-device"`
with equal weights). Over the worst channels that split gives segment 2 no power: nothing is
superposed there, and those settings are marked. Vanilla FL-0.5x gets twice the rounds: it takes
about a third of the energy for sending and computing per round, and is compared after equal rounds
and at equal energy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lab.reproduction.cells.cell import Cell
from lab.reproduction.exhibits.exhibit import Table
from lab.reproduction.judging.paired import Difference, difference
from lab.studies import standing
from lab.studies.drawings import Verdict, regime_map
from lab.studies.scale import StudyScale
from lab.studies.standing import Podium, Standing
from lab.studies.study import Answer, Picture, Runs, Study, Titled, finished
from slimfl.experiment import CHANNELS
from slimfl.radio.bound import advise
from slimfl.results import RunRecord
from slimfl.results.groups import title
from slimfl.results.statistics import CONFIDENCE, holm, paired

DEVICES = 10
WIDTHS = ("0.5x", "1.0x")
#: How much noisier than the poor channel the third one is.
WORSE_DB = 7.0
NOISES_DBM = {**CHANNELS, "worse": CHANNELS["poor"] + WORSE_DB}
PLACES = {"same": "all at 100 m", "cell": "35 to 289 m"}
ALPHAS = (0.1, 1.0)
PAPER_RATE = 1.5
#: Beside the paper's rate, for the most uneven data over the poor channel in one place.
OTHER_RATES = (0.75, 2.5)
METHODS: dict[str, dict[str, Any]] = {
    "slimfl": {"radio__split": "per-device", "radio__split_objective": "weighted"},
    "vanilla-0.5x": {},
    "vanilla-1.0x": {},
}
#: Marks a setting in which SlimFL sent one segment only.
MARK = "*"
#: Vanilla FL-0.5x runs this many times as long as the others.
LONGER = {"vanilla-0.5x": 2}


@dataclass(frozen=True)
class Regime:
    """One setting in which the methods are compared."""

    noise: str
    place: str
    alpha: float
    rate: float = PAPER_RATE

    @property
    def words(self) -> str:
        """As a row is called."""
        return f"alpha {self.alpha:g}, {PLACES[self.place]}, {self.rate:g} bit/s/Hz"

    @property
    def changes(self) -> dict[str, Any]:
        """The keys that make it."""
        return {
            "data__alpha": self.alpha,
            "federation__devices": DEVICES,
            "radio__noise_dbm": NOISES_DBM[self.noise],
            "radio__spectral_efficiency": self.rate,
            **({"population__preset": "cell"} if self.place == "cell" else {}),
        }


def regimes() -> list[Regime]:
    """All settings, row by row of the map."""
    noises = sorted(NOISES_DBM, key=NOISES_DBM.__getitem__)
    paper = [Regime(n, p, a) for p, a, n in itertools.product(PLACES, ALPHAS, noises)]
    return paper + [Regime("poor", "same", ALPHAS[0], rate) for rate in OTHER_RATES]


def runs_of(scale: StudyScale, regime: Regime, method: str) -> list[Cell]:
    """A method in a regime, under every seed."""
    rounds = scale.rounds * LONGER.get(method, 1)
    return scale.each_seed(method, rounds=rounds, **METHODS[method], **regime.changes)


def cells(scale: StudyScale) -> list[Cell]:
    """Every method in every regime."""
    return [c for r in regimes() for m in METHODS for c in runs_of(scale, r, m)]


@dataclass(frozen=True)
class Found:
    """What came out in one regime."""

    regime: Regime
    by_width: dict[str, Podium]
    """After equal rounds."""
    by_energy: dict[str, Podium]
    """At the energy for sending and computing that all have spent."""
    best_model: Podium
    """Whichever width it has."""
    advised: tuple[str, ...]
    """Both methods in a tie."""
    airtime_ms: dict[str, float]
    """Of one upload, by method."""
    sending_share: float
    """Of SlimFL's energy for sending and computing."""
    is_superposed: bool
    """Whether SlimFL sent segment 2 at all."""


def found(scale: StudyScale, regime: Regime, runs: Runs) -> Found | None:
    """The comparison in one regime; None while a method has no finished run."""
    records = {m: finished(runs_of(scale, regime, m), runs) for m in METHODS}
    if not all(records.values()):
        return None
    budgets = _budgets(list(records.values()))
    by_width, by_energy = {}, {}
    for width in WIDTHS:
        having = [m for m in METHODS if m == "slimfl" or m.endswith(width)]
        rows = [standing.final_standing(m, records[m], width, scale.rounds) for m in having]
        within = [standing.standing_within(m, records[m], width, budgets) for m in having]
        first, second = standing.podium(rows), standing.podium(within)
        if first is None or second is None:
            return None
        by_width[width], by_energy[width] = first, second
    best = standing.podium(
        [standing.best_width_standing(m, records[m], scale.rounds) for m in METHODS]
    )
    slim = records["slimfl"]
    experiment = slim[0].experiment
    section = experiment.radio.model_copy(update={"split": "optimal"})
    advised = advise(section, experiment.model.widths, DEVICES).methods
    assert best is not None
    return Found(
        regime,
        by_width,
        by_energy,
        best,
        advised,
        {method: standing.airtime_ms(some) for method, some in records.items()},
        standing.sending_j(slim) / fmean(map(standing.energy_j, slim)),
        any(line.bits_sent[-1] > 0 for record in slim for line in record.lines),
    )


def _budgets(records: Sequence[Sequence[RunRecord]]) -> dict[int, float]:
    """By seed: the energy that every method has spent at least."""
    spent = [{r.experiment.seed: standing.energy_j(r) for r in some} for some in records]
    common = set.intersection(*(set(each) for each in spent))
    return {seed: min(each[seed] for each in spent) for seed in common}


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """Tables, a map, and what the theory's advice is worth."""
    outcomes = [each for regime in regimes() if (each := found(scale, regime, runs))]
    superposed = [each for each in outcomes if each.is_superposed]
    sentences = [f"{len(outcomes)} of {len(regimes())} settings have been measured."]
    if len(superposed) < len(outcomes):
        sentences.append(
            f"In {len(outcomes) - len(superposed)} of them (marked {MARK}) SlimFL never sent "
            "segment 2, because its split gives that segment no power. Nothing was superposed "
            "there, so they are not counted below."
        )
    if superposed:
        sentences += [_counted(superposed, width) for width in WIDTHS]
        sentences.append(_by_chance(superposed))
        sentences += [_counted(superposed, width, energy=True) for width in WIDTHS]
        sending = max(each.sending_share for each in superposed)
        sentences.append(
            f"Energy is that for sending and computing, of which sending is at most {sending:.1%}. "
            "At equal energy, training two widths is therefore compared with training one; the "
            "way of sending hardly counts, and whoever needs both widths has to add up two runs "
            "of Vanilla FL."
        )
    if outcomes:
        sentences.append(_advice_words(outcomes))
    pictures = [_map(outcomes, energy=energy) for energy in (False, True)] if outcomes else []
    headings = ["setting", "noise", *(f"{title(m)}, %" for m in ("slimfl", "vanilla-0.5x")),
                "SlimFL over it", "SlimFL at 1.0x, %", "Vanilla FL-1.0x, %", "SlimFL over it",
                "at equal energy for sending and computing: 0.5x", "1.0x",
                "airtime per upload, ms: SlimFL / 0.5x / 1.0x", "advice", "highest mean",
                "not told apart from it"]  # fmt: skip
    headings[2] = "SlimFL at 0.5x, %"
    table = Table(headings, [_row(each) for each in outcomes])
    titled = (
        "Final accuracy by setting and method, after equal rounds where nothing else is said. "
        f"{MARK}: SlimFL never sent segment 2."
    )
    return Answer(
        sentences,
        [Titled("regimes", titled, table)],
        pictures,
        {"settings": [_data(each) for each in outcomes]},
    )


def _map(outcomes: Sequence[Found], *, energy: bool) -> Picture:
    when = "at equal energy for sending and computing" if energy else "after equal rounds"
    verdicts = [v for each in outcomes for v in _verdicts(each, energy=energy)]
    return Picture(
        "map-at-equal-energy" if energy else "map",
        f"The higher mean at each width, {when}. A number is its lead in points; hatched: not told "
        f"apart; {MARK}: SlimFL never sent segment 2.",
        regime_map(verdicts, WIDTHS),
    )


def _counted(outcomes: Sequence[Found], width: str, energy: bool = False) -> str:
    """How often a method is ahead at a width, and what the other settings leave possible."""
    podiums = [(each.regime.alpha, (each.by_energy if energy else each.by_width)[width])
               for each in outcomes]  # fmt: skip
    ahead = {m: sum(p.best.method == m and p.told_apart for _, p in podiums) for m in METHODS}
    rival = f"vanilla-{width}"
    when = "at equal energy" if energy else "after equal rounds"
    said = (
        f"At {width}, {when}, in {len(podiums)} settings: the 95% interval has SlimFL ahead in "
        f"{ahead['slimfl']} and {title(rival)} in {ahead[rival]}."
    )
    open_bounds: dict[float, list[float]] = {}
    for alpha, podium in podiums:
        limit = standing.bound(podium.lead)
        if not podium.told_apart and limit is not None:
            open_bounds.setdefault(alpha, []).append(limit)
    if not open_bounds:
        return said
    limits = " and ".join(
        f"{math.ceil(10 * max(found)) / 10} points at alpha = {alpha:g}"
        for alpha, found in sorted(open_bounds.items())
    )
    return f"{said} Elsewhere the seeds cannot tell them apart: differences of up to {limits} fit."


def _by_chance(outcomes: Sequence[Found]) -> str:
    """How many of the comparisons after equal rounds stay after a correction for their number."""
    pairs = [_slim_and_rival(podium) for each in outcomes for podium in each.by_width.values()]
    contrasts = [paired(slim.by_seed, rival.by_seed) for slim, rival in pairs]
    tests = [p for each in contrasts if each is not None and (p := each.p_student) is not None]
    kept = sum(p < 1 - CONFIDENCE for p in holm(tests))
    return (
        f"Of these {len(tests)} comparisons after equal rounds, "
        f"{(1 - CONFIDENCE) * len(tests):.1f} would be told apart by chance alone; with Holm's "
        f"correction {kept or 'none'} of them {'is' if kept == 1 else 'are'}."
    )


def _advice_words(outcomes: Sequence[Found]) -> str:
    """How often the advice names the highest mean, beside what a constant answer would get."""
    best = [each.best_model.best.method for each in outcomes]
    right = sum(method in each.advised for each, method in zip(outcomes, best, strict=True))
    constant = {method: best.count(method) for method in METHODS}
    always = ", ".join(f"always {title(method)} {count}" for method, count in constant.items())
    more = right > max(constant.values())
    return (
        "The advice of `slimfl link` names the method with the highest mean, whichever its width, "
        f"alone or as one of two, in {right} of {len(outcomes)} settings; a constant answer gets "
        f"as much as this: {always}."
        f"{'' if more else ' So these runs do not show that the advice is of use.'}"
    )


def _verdicts(each: Found, *, energy: bool) -> list[Verdict]:
    regime = each.regime
    return [
        Verdict(
            row=regime.words,
            column=f"{regime.noise} ({NOISES_DBM[regime.noise]:g} dBm)",
            panel=width,
            winner=title(p.best.method),
            lead=p.lead.mean if p.lead else 0.0,
            told_apart=p.told_apart,
            note="" if each.is_superposed else MARK,
        )
        for width, p in (each.by_energy if energy else each.by_width).items()
    ]


def _row(each: Found) -> list[str]:
    mark = "" if each.is_superposed else f" {MARK}"
    row = [each.regime.words + mark, f"{NOISES_DBM[each.regime.noise]:g} dBm"]
    for podium in each.by_width.values():
        slim, rival = _slim_and_rival(podium)
        row += [str(slim), str(rival), standing.gap_words(_over(slim, rival))]
    for podium in each.by_energy.values():
        row.append(standing.gap_words(_over(*_slim_and_rival(podium))))
    best = each.best_model
    close = ", ".join(title(one.method) for one, _ in best.not_told_apart)
    airtimes = " / ".join(f"{each.airtime_ms[method]:.3f}" for method in METHODS)
    advised = " or ".join(map(title, each.advised)) or "none"
    return [*row, airtimes, advised, title(best.best.method), close]


def _over(slim: Standing, rival: Standing) -> Difference | None:
    return difference(slim.method, rival.method, slim.by_seed, rival.by_seed, "points")


def _slim_and_rival(podium: Podium) -> tuple[Standing, Standing]:
    every = [podium.best, *([podium.runner_up] if podium.runner_up else [])]
    slim = next(each for each in every if each.method == "slimfl")
    return slim, next(each for each in every if each is not slim)


def _data(each: Found) -> dict[str, Any]:
    def told(podium: Podium) -> dict[str, Any]:
        slim, rival = _slim_and_rival(podium)
        return {slim.method: dict(slim.by_seed), rival.method: dict(rival.by_seed)}

    return {
        "noise_dbm": NOISES_DBM[each.regime.noise],
        "place": each.regime.place,
        "alpha": each.regime.alpha,
        "spectral_efficiency": each.regime.rate,
        "accuracy": {width: told(p) for width, p in each.by_width.items()},
        "accuracy_at_equal_energy": {width: told(p) for width, p in each.by_energy.items()},
        "advised": list(each.advised),
        "best_model": each.best_model.best.method,
        "not_told_apart": [one.method for one, _ in each.best_model.not_told_apart],
        "airtime_ms": each.airtime_ms,
        "segment_2_was_sent": each.is_superposed,
    }


STUDY = Study(
    "regimes",
    "Noise, rate, distances and data",
    "For which noise, rate, spread of distances and data is which method ahead?",
    cells,
    answer,
)
