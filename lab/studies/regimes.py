"""For which noise, rate, spread of distances and data which method is ahead, at each width.

SlimFL takes the split for each device that delivers the most segments (`radio.split = "per-device"`
with equal weights). Over the worst channels that split gives segment 2 no power: nothing is
superposed there, and those settings are marked. Vanilla FL-0.5x gets twice the rounds: it takes
about a third of the energy for sending and computing per round, and is compared after equal rounds
and at equal energy.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from lab.cell import Cell
from lab.drawing import Square, regime_map
from lab.judge import gap_words, not_told_apart_words
from lab.question import Answer, Final, Picture, Question, Runs, Table, complete, late_tests, spent
from lab.scale import StudyScale
from lab.studies.compare import WIDTHS, Told, each_seed, final_of, tell_apart
from slimfl.experiment import CHANNELS
from slimfl.methods.names import title
from slimfl.results.records import RunRecord
from slimfl.results.rules import round_energy_j
from slimfl.results.statistics import paired

DEVICES = 10
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
AFTER = ("after equal rounds", "at equal energy for sending and computing")


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
    return each_seed(scale, method, rounds=rounds, **METHODS[method], **regime.changes)


def cells(scale: StudyScale) -> list[Cell]:
    """Every method in every regime."""
    return [c for r in regimes() for m in METHODS for c in runs_of(scale, r, m)]


#: By when they are compared and at which width: SlimFL and Vanilla FL.
Pairs = dict[tuple[str, str], tuple[Final, Final]]


@dataclass(frozen=True)
class Found:
    """What came out in one regime."""

    regime: Regime
    pairs: Pairs
    airtime_ms: dict[str, float]
    """Of one upload, by method."""
    sending_share: float
    """Of SlimFL's energy for sending and computing."""
    is_superposed: bool
    """Whether SlimFL sent segment 2 at all."""

    @property
    def mark(self) -> str:
        """Behind the name of a setting without superposition."""
        return "" if self.is_superposed else MARK


def found(scale: StudyScale, regime: Regime, runs: Runs) -> Found | None:
    """The comparison in one regime; None while a method has no finished run."""
    records = {m: complete(runs, runs_of(scale, regime, m)) for m in METHODS}
    if not all(records.values()):
        return None
    budgets = _budgets(list(records.values()))
    pairs: Pairs = {}
    for width in WIDTHS:
        both = [records[m] for m in ("slimfl", f"vanilla-{width}")]
        first, second = (final_of(some, width, scale.rounds) for some in both)
        pairs[AFTER[0], width] = first, second
        first, second = (Final(_within(some, width, budgets)) for some in both)
        pairs[AFTER[1], width] = first, second
    slim = spent(records["slimfl"])
    return Found(
        regime,
        pairs,
        {m: 1000 * spent(some)["airtime per upload"] for m, some in records.items()},
        slim["transmit energy"] / slim["all energy"],
        any(line.bits_sent[-1] > 0 for record in records["slimfl"] for line in record.lines),
    )


def _budgets(records: Sequence[Sequence[RunRecord]]) -> dict[int, float]:
    """By seed: the energy that every method has spent at least."""
    used = [
        {r.experiment.seed: sum(map(round_energy_j, r.lines)) for r in some} for some in records
    ]
    common = set.intersection(*(set(each) for each in used))
    return {seed: min(each[seed] for each in used) for seed in common}


def _within(
    records: Sequence[RunRecord], width: str, budget_j: Mapping[int, float]
) -> dict[int, float]:
    """The accuracy in the last round that a seed's budget of energy pays for."""
    reached = {}
    for record in records:
        seed = record.experiment.seed
        if seed in budget_j:
            total = itertools.accumulate(map(round_energy_j, record.lines))
            paid = sum(used <= budget_j[seed] * (1 + 1e-9) for used in total)
            tests = late_tests(record, width, StudyScale.last_share, paid)
            if tests:
                reached[seed] = 100 * fmean(line.accuracy[width] for line in tests)
    return reached


def answer(scale: StudyScale, runs: Runs) -> Answer:
    """A table and a map; only settings in which something was superposed are counted."""
    outcomes = [each for regime in regimes() if (each := found(scale, regime, runs))]
    contrasts = {
        (each.regime, *key): contrast
        for each in outcomes
        for key, (slim, vanilla) in each.pairs.items()
        if (contrast := paired(slim.by_seed, vanilla.by_seed)) is not None
    }
    family = {key: f"{key[1]} {key[0].alpha:g} {key[2]}" for key in contrasts}
    told = tell_apart(contrasts, family)
    superposed = [each for each in outcomes if each.is_superposed]
    sentences = [f"{len(outcomes)} of {len(regimes())} settings have been measured."]
    if len(superposed) < len(outcomes):
        sentences.append(
            f"In {len(outcomes) - len(superposed)} of them (marked {MARK}) SlimFL never sent "
            "segment 2, because its split gives that segment no power. Nothing was superposed "
            "there, so they are not counted below."
        )
    if superposed:
        sentences += [_counted(superposed, told, when, w) for when in AFTER for w in WIDTHS]
        sending = max(each.sending_share for each in superposed)
        sentences.append(
            f"Energy is that for sending and computing, of which sending is at most {sending:.1%}. "
            "At equal energy, training two widths is therefore compared with training one; the "
            "way of sending hardly counts, and whoever needs both widths has to add up two runs "
            "of Vanilla FL."
        )
    headings = ["setting", "noise", "SlimFL at 0.5x, %", "Vanilla FL-0.5x, %", "SlimFL over it",
                "SlimFL at 1.0x, %", "Vanilla FL-1.0x, %", "SlimFL over it",
                f"{AFTER[1]}: 0.5x", "1.0x",
                "airtime per upload, ms: SlimFL / 0.5x / 1.0x"]  # fmt: skip
    table = Table(
        "regimes",
        "Final accuracy by setting and method, after equal rounds where nothing else is said; ± is "
        "Student's 95% interval with one deviation per alpha and width. "
        f"{MARK}: SlimFL never sent segment 2.",
        headings,
        [_row(each, told) for each in outcomes],
    )
    pictures = [_map(outcomes, told, when) for when in AFTER] if outcomes else []
    data = {"settings": [_data(each) for each in outcomes]}
    return Answer([table], [], sentences, pictures, data)


def _counted(outcomes: Sequence[Found], told: Mapping[Any, Told], when: str, width: str) -> str:
    """How often a method is told apart at a width, and what the other settings leave possible."""
    some = [(each, told[each.regime, when, width]) for each in outcomes]
    ahead = sum(t.apart and t.contrast.mean > 0 for _, t in some)
    behind = sum(t.apart and t.contrast.mean < 0 for _, t in some)
    said = (
        f"At {width}, {when}, in {len(some)} settings: after Holm's correction SlimFL is ahead in "
        f"{ahead} and {title(f'vanilla-{width}')} in {behind}."
    )
    bounds = []
    for alpha in ALPHAS:
        rest = [t.contrast for e, t in some if e.regime.alpha == alpha and not t.apart]
        known = [each for each in rest if each.interval(0.90)]
        if known:
            widest = max(known, key=lambda c: max(map(abs, c.interval(0.90) or (0.0,))))
            bounds.append(f"{not_told_apart_words(widest)} at alpha = {alpha:g}")
    return said + (f" Elsewhere they are not told apart: {', '.join(bounds)}." if bounds else "")


def _map(outcomes: Sequence[Found], told: Mapping[Any, Told], when: str) -> Picture:
    squares = []
    for each in outcomes:
        for width in WIDTHS:
            one = told.get((each.regime, when, width))
            if one is not None:
                winner = "slimfl" if one.contrast.mean > 0 else f"vanilla-{width}"
                column = f"{each.regime.noise} ({NOISES_DBM[each.regime.noise]:g} dBm)"
                squares.append(Square(each.regime.words, column, width, title(winner),
                                      abs(one.contrast.mean), one.apart, each.mark))  # fmt: skip
    return Picture(
        "map" if when == AFTER[0] else "map-at-equal-energy",
        f"The higher mean at each width, {when}. A number is its lead in points; hatched: not told "
        f"apart; {MARK}: SlimFL never sent segment 2.",
        regime_map(squares, WIDTHS),
    )


def _row(each: Found, told: Mapping[Any, Told]) -> list[str]:
    row = [f"{each.regime.words} {each.mark}".strip(), f"{NOISES_DBM[each.regime.noise]:g} dBm"]

    def gap(when: str, width: str) -> str:
        one = told.get((each.regime, when, width))
        return gap_words(one.contrast if one else None)

    for width in WIDTHS:
        row += [*(one.brief for one in each.pairs[AFTER[0], width]), gap(AFTER[0], width)]
    row += [gap(AFTER[1], width) for width in WIDTHS]
    return [*row, " / ".join(f"{each.airtime_ms[method]:.3f}" for method in METHODS)]


def _data(each: Found) -> dict[str, Any]:
    def by_method(when: str) -> dict[str, Any]:
        return {
            width: {"slimfl": dict(slim.by_seed), f"vanilla-{width}": dict(vanilla.by_seed)}
            for (at, width), (slim, vanilla) in each.pairs.items()
            if at == when
        }

    return {
        "noise_dbm": NOISES_DBM[each.regime.noise],
        "place": each.regime.place,
        "alpha": each.regime.alpha,
        "spectral_efficiency": each.regime.rate,
        "accuracy": by_method(AFTER[0]),
        "accuracy_at_equal_energy": by_method(AFTER[1]),
        "airtime_ms": each.airtime_ms,
        "segment_2_was_sent": each.is_superposed,
    }


REGIMES = Question(
    "regimes",
    "Noise, rate, distances and data",
    "For which noise, rate, spread of distances and data is which method ahead?",
    cells,
    answer,
)
