"""How the paper's claims are judged.

1. A claim is a contrast with a sign and, where the paper prints one, a size E; levels are shown and
   not judged. Claims are written down in `claims.toml`.
2. The verdict is read from the 95% interval of the contrast, paired by seed, with one deviation for
   all contrasts of an exhibit that share alpha and width, and Holm's method within an exhibit. E is
   one unpaired draw of the paper's, so it has the deviation of a single run over seeds.
3. One seed gives no verdict; fewer than five give a preliminary one.
4. Fluctuation over rounds and deviation over seeds are never combined.
5. A claim that holds under one reading and not under another depends on the reading.
6. What was fitted or copied is by construction, and not counted.
7. An exhibit shows the counts of its verdicts, not the worst.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import Any

from slimfl.results.statistics import (
    CONFIDENCE,
    ENOUGH_SEEDS,
    Paired,
    equivalence_margin,
    holm,
    student_t,
    with_pooled_deviation,
)

RULE = (
    "A claim is a contrast between two of our settings, paired by seed, with Student's 95% "
    "interval; the deviation is pooled over the contrasts of one table or figure with the same "
    "alpha and width, and Holm's method is applied within it. The paper's number counts as one "
    "unpaired draw, with the deviation of a single run of ours. *Reproduced*: the interval "
    "excludes no effect, and the paper's size or more is possible. *Reproduced, smaller*: it "
    "excludes both. *Not reproduced*: it excludes the paper's size. *Inconclusive*: both are "
    "possible. *By construction*: copied from the paper or fitted to it. *Depends on the "
    "reading*: readings of the paper disagree. One seed gives no verdict; fewer than five a "
    "preliminary one."
)


class Verdict(StrEnum):
    """The verdicts on a claim."""

    REPRODUCED = "reproduced"
    SMALLER = "reproduced, smaller"
    NOT = "not reproduced"
    INCONCLUSIVE = "inconclusive"
    READING = "depends on the reading"
    CONSTRUCTION = "by construction"
    NONE = "no verdict"


#: Verdicts that are counted as a judgement.
JUDGED = (Verdict.REPRODUCED, Verdict.SMALLER, Verdict.NOT, Verdict.INCONCLUSIVE, Verdict.READING)


@dataclass(frozen=True)
class Claim:
    """One statement of the paper, with its number and ours."""

    name: str
    """By which the fourteen claims refer to it."""
    text: str
    source: str
    paper: str = ""
    """What the paper prints."""
    ours: str = ""
    """What came out, for claims without runs."""
    verdict: Verdict = Verdict.NONE
    reason: str = ""
    contrast: Paired | None = None
    effect: float | None = None
    """E, on the scale of the contrast; None if the paper states an order only."""
    sign: int = 1
    """-1 where the paper says that the first is smaller and gives no size."""
    effect_deviation: float = 0.0
    """Of a single unpaired draw."""
    family: str = ""
    """Contrasts of one family share their deviation: alpha and width."""
    unit: str = "points"
    adjusted_p: float | None = None
    seeds: int | None = None
    """Number of different seeds; None if it needs no runs."""

    @property
    def is_preliminary(self) -> bool:
        """True if a verdict rests on fewer seeds than a final one needs."""
        few = self.seeds is not None and self.seeds < ENOUGH_SEEDS
        return few and self.verdict in JUDGED

    @property
    def said(self) -> str:
        """Our number with its interval."""
        if self.contrast is None:
            return self.ours
        said = interval_words(self.contrast, self.unit)
        if self.seeds == self.contrast.seeds:
            return said
        return f"{said.rpartition(', ')[0]}, {self.contrast.seeds} pairs of {self.seeds} seeds"

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        interval = self.contrast.interval() if self.contrast else None
        return {
            "name": self.name,
            "text": self.text,
            "source": self.source,
            "paper": self.paper,
            "ours": self.said,
            "verdict": str(self.verdict),
            "preliminary": self.is_preliminary,
            "reason": self.reason,
            "seeds": self.seeds,
            "unit": self.unit,
            "effect": self.effect,
            "effect_deviation": _plain(self.effect_deviation),
            "mean": _plain(self.contrast.mean) if self.contrast else None,
            "low": _plain(interval[0]) if interval else None,
            "high": _plain(interval[1]) if interval else None,
            "by_seed": dict(self.contrast.by_seed) if self.contrast else {},
            "p_holm": _plain(self.adjusted_p),
            "p_sign_flip": self.contrast.p_sign_flip if self.contrast else None,
        }


def judged(claims: Sequence[Claim]) -> list[Claim]:
    """The claims of one exhibit with their verdicts: pooled, adjusted, read from the intervals."""
    claims = _pooled(claims)
    tested = [i for i, each in enumerate(claims) if _p_value(each) is not None]
    adjusted = holm([_p_value(claims[i]) or 0.0 for i in tested])
    for i, p in zip(tested, adjusted, strict=True):
        claims[i] = replace(claims[i], adjusted_p=p)
    return [_judged(each) if each.contrast is not None else each for each in claims]


def by_reading(name: str, text: str, source: str, readings: Mapping[str, Claim]) -> Claim:
    """One claim from its readings: their common verdict, or that it depends on them."""
    verdicts = {each.verdict for each in readings.values()}
    told = "; ".join(f"{reading}: {each.said or 'not run'}" for reading, each in readings.items())
    verdict = next(iter(verdicts)) if len(verdicts) == 1 else Verdict.READING
    if Verdict.NONE in verdicts:
        verdict = Verdict.NONE
    reasons = dict.fromkeys(each.reason for each in readings.values() if each.reason)
    counts = [each.seeds for each in readings.values() if each.seeds is not None]
    return Claim(name, text, source, next(iter(readings.values())).paper, told, verdict,
                 " ".join(reasons), seeds=min(counts, default=None))  # fmt: skip


def counted(verdicts: Iterable[str]) -> str:
    """How often each verdict was given.

    >>> counted(["reproduced", "inconclusive", "reproduced"])
    'reproduced 2, inconclusive 1'
    """
    counts = Counter(verdicts)
    return ", ".join(f"{v} {counts[v]}" for v in Verdict if counts[v])


def _pooled(claims: Sequence[Claim]) -> list[Claim]:
    """One deviation per family; a single seed gets no interval from others."""
    pooled = list(claims)
    several = [i for i, c in enumerate(claims) if c.contrast is not None and c.contrast.seeds > 1]
    several.sort(key=lambda i: claims[i].family)
    for family, members in groupby(several, key=lambda i: claims[i].family):
        if family:
            group = list(members)
            shared = with_pooled_deviation([c for i in group if (c := claims[i].contrast)])
            for i, contrast in zip(group, shared, strict=True):
                pooled[i] = replace(claims[i], contrast=contrast)
    return pooled


def _p_value(claim: Claim) -> float | None:
    return claim.contrast.p_student if claim.contrast is not None else None


def _judged(claim: Claim) -> Claim:
    contrast = claim.contrast
    assert contrast is not None
    if contrast.interval() is None:
        return replace(claim, verdict=Verdict.NONE, reason=claim.reason or "One seed.")
    middle = math.log(contrast.mean) if contrast.is_ratio else contrast.mean
    towards = claim.sign if claim.effect is None else _logarithm(claim, claim.effect)
    towards = math.copysign(1.0, towards)
    excludes_none = claim.adjusted_p is not None and claim.adjusted_p < 1 - CONFIDENCE
    opposite = excludes_none and middle * towards < 0
    below = _excludes_effect(claim, middle, towards)
    if claim.effect is None:
        verdict = Verdict.REPRODUCED if excludes_none else Verdict.INCONCLUSIVE
        verdict = Verdict.NOT if opposite else verdict
    elif excludes_none and not opposite:
        verdict = Verdict.SMALLER if below else Verdict.REPRODUCED
    else:
        verdict = Verdict.NOT if below else Verdict.INCONCLUSIVE
    reason = claim.reason or ("The opposite holds." if opposite else "")
    return replace(claim, verdict=verdict, reason=reason)


def _excludes_effect(claim: Claim, middle: float, towards: float) -> bool:
    """Whether the paper's size is larger than what fits, given that both numbers are uncertain."""
    contrast = claim.contrast
    assert contrast is not None
    low, high = contrast.interval() or (0.0, 0.0)
    if contrast.is_ratio:
        low, high = math.log(low), math.log(high)
    degrees = contrast.degrees or contrast.seeds - 1
    t = student_t(degrees)
    error = math.hypot((high - low) / 2 / t, claim.effect_deviation)
    if claim.effect is None:
        return False
    return (_logarithm(claim, claim.effect) - middle) * towards > t * error


def _logarithm(claim: Claim, effect: float) -> float:
    is_ratio = claim.contrast is not None and claim.contrast.is_ratio
    return math.log(effect) if is_ratio else effect


def interval_words(contrast: Paired, unit: str = "points") -> str:
    """A contrast with its interval and the number of seeds.

    >>> interval_words(Paired({0: 1.0, 1: 3.0, 2: 2.0}))
    '+2.0 [-0.5, +4.5] points, 3 seeds'
    """
    form = ".2f" if contrast.is_ratio else "+.1f"
    interval = contrast.interval()
    spread = f" [{interval[0]:{form}}, {interval[1]:{form}}]" if interval else ""
    seeds = "1 seed" if contrast.seeds == 1 else f"{contrast.seeds} seeds"
    return f"{contrast.mean + 0.0:{form}}{spread} {unit}, {seeds}"


def gap_words(contrast: Paired | None) -> str:
    """A difference with its interval, in points, for a table's cell; empty without a seed."""
    if contrast is None:
        return ""
    interval = contrast.interval()
    spread = f" ± {(interval[1] - interval[0]) / 2:.1f}" if interval else ""
    return f"{contrast.mean:+.1f}{spread}"


def not_told_apart_words(contrast: Paired | None) -> str:
    """How far apart two methods can be, from the equivalence test.

    >>> not_told_apart_words(Paired({0: 1.0, 1: 3.0, 2: 2.0})), not_told_apart_words(None)
    ('|difference| < 3.7 points', 'no interval')
    """
    margin = equivalence_margin(contrast) if contrast is not None else None
    if margin is None:
        return "no interval"
    # rounded up, so that what is printed is a bound as well
    return f"|difference| < {math.ceil(10 * margin) / 10} points"


def _plain(value: float | None) -> float | None:
    """Nine digits: the last bits of t depend on the version of SciPy."""
    return None if value is None else float(f"{value:.9g}")
