"""Compare a reproduction with an earlier one."""

from __future__ import annotations

import math
from typing import Any


def differences(ours: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """The differences of a reproduction from an earlier one of the same scale, one line each.

    With the same engine and versions, every number and word must be the same. Otherwise rounding
    differs and with it every run, so a number may differ by twice the combined deviation.
    """
    exact = same_engine(ours, before)
    known = {exhibit["name"]: exhibit for exhibit in before["exhibits"]}
    found = []
    for exhibit in ours["exhibits"]:
        name = exhibit["name"]
        if name not in known:
            found.append(f"{name}: not there before")
        elif exact and exhibit != known[name]:
            found += _words(exhibit, known[name]) or [f"{name}: notes or claims differ"]
        elif not exact:
            found += _numbers(exhibit, known[name])
    return found


def same_engine(ours: dict[str, Any], before: dict[str, Any]) -> bool:
    """True if both come from the same arithmetic, so that they must be bit-identical."""
    return all(ours[key] == before[key] for key in ("scale", "engine", "versions"))


def _words(exhibit: dict[str, Any], before: dict[str, Any]) -> list[str]:
    rows = zip(exhibit["table"]["rows"], before["table"]["rows"], strict=False)
    return [
        f"{exhibit['name']}: {' | '.join(new)} (before: {' | '.join(old)})"
        for new, old in rows
        if new != old
    ]


def _numbers(exhibit: dict[str, Any], before: dict[str, Any]) -> list[str]:
    found = []
    for claim, old in zip(exhibit["claims"], before["claims"], strict=False):
        for one, other in zip(claim["comparisons"], old["comparisons"], strict=False):
            if one["ours"] is None or other["ours"] is None:
                continue
            blur = 2 * math.hypot(one["ours_deviation"], other["ours_deviation"])
            if abs(one["ours"] - other["ours"]) > max(blur, 1e-9 * abs(other["ours"])):
                found.append(
                    f"{exhibit['name']}: {claim['text']}, {one['quantity']}: {one['ours']:.4g} "
                    f"(before: {other['ours']:.4g} ± {other['ours_deviation']:.2g})"
                )
    return found
