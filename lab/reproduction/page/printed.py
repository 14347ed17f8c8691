"""The two numbers of a comparison for readers, from `results.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

#: Both are shown with one decimal, as in the tables.
_ACCURACIES = ("%", "points")
#: Quantities that need runs, for which even a single seed is mentioned.
TRAINED = (*_ACCURACIES, "W", "GFLOPS")
#: Verdicts that say that there is none yet.
OPEN = ("not run", "unfinished")
#: Verdicts by which a table or figure is judged.
JUDGED = ("agrees", "agrees in order only", "differs")


def papers(comparison: Mapping[str, Any]) -> str | None:
    """The paper's number; None if it states an order without one.

    >>> papers({"paper": 54, "paper_deviation": 2.2, "digits": 0, "unit": "%"})
    '54 ± 2.2 %'
    >>> papers({"paper": 172688, "paper_deviation": 0.0, "digits": 0, "unit": ""})
    '172,688'
    """
    value, deviation, digits = (comparison[k] for k in ("paper", "paper_deviation", "digits"))
    if value is None:
        return None
    # a number with more decimals than `digits` is shown with all of them
    text = f"{value:,.{digits}f}" if digits or value == round(value) else f"{value:,g}"
    spread = f" ± {deviation:.{digits or 1}f}" if deviation else ""
    return _with_unit(text + spread, comparison["unit"])


def ours(comparison: Mapping[str, Any]) -> str:
    """Our number; `not run` before there is one. A cost is a number if every seed converged.

    >>> same = {"digits": 0, "unit": "%", "paper": 54, "reached": True, "seeds": 3}
    >>> ours({**same, "ours": 51.26, "ours_deviation": 0.84})
    '51.3 ± 0.8 %'
    >>> ours({**same, "ours": None, "ours_deviation": 0.0})
    'not run'
    >>> ours({**same, "ours": None, "ours_deviation": 0.0, "reached": False})
    'not under every seed'
    """
    if comparison["ours"] is None:
        return "not run" if comparison["reached"] else "not under every seed"
    value, deviation = comparison["ours"], comparison["ours_deviation"]
    digits = _digits(comparison)
    spread = f" ± {deviation:,.{digits}f}" if deviation or comparison["seeds"] > 1 else ""
    return _with_unit(f"{_number(value, digits)}{spread}", comparison["unit"])


def seeds(comparison: Mapping[str, Any]) -> str:
    """The number of seeds behind our number; nothing if it is computed without runs."""
    count = comparison["seeds"]
    if comparison["ours"] is None:
        return ""
    if count > 1:
        return f"{count} seeds"
    # the reference value of a claim, such as zero points or a ratio of one, equal on both sides
    reference = comparison["ours"] == comparison["paper"] and not comparison["ours_deviation"]
    return "1 seed" if comparison["unit"] in TRAINED and not reference else ""


def claim_seeds(claim: Mapping[str, Any]) -> str:
    """The number of seeds behind a verdict; nothing if it needs no runs or there is none yet.

    >>> claim_seeds({"seeds": 3}), claim_seeds({"seeds": 1}), claim_seeds({"seeds": None})
    ('3 seeds', '1 seed', '')
    >>> claim_seeds({"seeds": 1, "seeds_planned": 3})
    '1 of 3 seeds'
    >>> claim_seeds({"seeds": 1, "seeds_planned": 3, "verdict": "not run"})
    ''
    """
    count, planned = claim.get("seeds"), claim.get("seeds_planned")
    if claim.get("verdict") in OPEN:
        return ""
    if count and planned:
        return f"{count} of {planned} seeds"
    return "" if not count else "1 seed" if count == 1 else f"{count} seeds"


def rests_on(exhibit: Mapping[str, Any]) -> str:
    """On how many of its claims and planned seeds an exhibit's verdict rests; nothing if on all.

    >>> judged = {"verdict": "agrees", "seeds": 3}
    >>> rests_on({"verdict": "agrees", "claims": [judged]})
    ''
    >>> early = {"verdict": "differs", "seeds": 1, "seeds_planned": 3}
    >>> rests_on({"verdict": "differs", "claims": [early, judged]})
    '1 to 3 of 3 seeds'
    >>> open = {"verdict": "unfinished", "seeds": 1, "seeds_planned": 3}
    >>> rests_on({"verdict": "differs", "claims": [early, open]})
    '1 of 2 claims, 1 of 3 seeds'
    >>> rests_on({"verdict": "unfinished", "claims": [open]})
    ''
    """
    return ", ".join(filter(None, (_judged_claims(exhibit), _lacking_seeds(exhibit))))


def has_open_claims(exhibit: Mapping[str, Any]) -> bool:
    """True if an exhibit has a verdict although some of its claims have none yet.

    >>> judged, open = {"verdict": "agrees"}, {"verdict": "not run"}
    >>> has_open_claims({"verdict": "agrees", "claims": [judged, open]})
    True
    >>> has_open_claims({"verdict": "not run", "claims": [open]})
    False
    """
    still_open = any(each["verdict"] in OPEN for each in exhibit["claims"])
    return exhibit["verdict"] in JUDGED and still_open


def _judged_claims(exhibit: Mapping[str, Any]) -> str:
    if not has_open_claims(exhibit):
        return ""
    judged = sum(each["verdict"] in JUDGED for each in exhibit["claims"])
    return f"{judged} of {len(exhibit['claims'])} claims"


def _lacking_seeds(exhibit: Mapping[str, Any]) -> str:
    judged = [
        each for each in exhibit["claims"] if each["verdict"] not in OPEN and each.get("seeds")
    ]
    planned = max((each.get("seeds_planned") or 0 for each in judged), default=0)
    if not planned:
        return ""
    fewest, most = (f(each["seeds"] for each in judged) for f in (min, max))
    known = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"{known} of {planned} seeds"


def pair(difference: Mapping[str, Any]) -> str:
    """The two sides of a difference.

    >>> pair({"larger": "SlimFL-1.0x", "smaller": "Vanilla FL-1.0x"})
    'SlimFL-1.0x − Vanilla FL-1.0x'
    """
    return f"{difference['larger']} − {difference['smaller']}"


def difference(one: Mapping[str, Any]) -> str:
    """A paired difference with its interval.

    >>> same = {"mean": -3.14, "unit": "points", "confidence": 0.95}
    >>> difference({**same, "low": -5.0, "high": -1.28, "seeds": 3})
    '-3.1 points (95% interval -5.0 to -1.3, 3 seeds)'
    >>> difference({**same, "low": None, "high": None, "seeds": 1})
    '-3.1 points (1 seed, no interval)'
    """
    text = _with_unit(_signed(one["mean"], one["unit"]), one["unit"])
    if one["low"] is None:
        return f"{text} (1 seed, no interval)"
    low, high = (_signed(one[side], one["unit"]) for side in ("low", "high"))
    return f"{text} ({one['confidence']:.0%} interval {low} to {high}, {one['seeds']} seeds)"


def _signed(value: float, unit: str) -> str:
    if unit in _ACCURACIES:
        return f"{round(value, 1) + 0.0:+.1f}"
    return f"{value:+.3g}"


def _digits(comparison: Mapping[str, Any]) -> int:
    """The paper's number of decimals, and more if the deviation needs them."""
    digits: int = comparison["digits"]
    value, deviation = comparison["ours"], comparison["ours_deviation"]
    if comparison["unit"] in _ACCURACIES:
        return max(1, digits)
    if deviation > 1e-9:
        return max(digits, min(3, 1 - math.floor(math.log10(deviation))))
    if digits == 0 and value != round(value):
        return max(0, min(3, 2 - math.floor(math.log10(abs(value)))))
    return digits


def _number(value: float, digits: int) -> str:
    # avoid -0.0
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text
