"""The fourteen claims of the paper, C1 to C14, in one table that is computed from the exhibits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from lab import paper
from lab.judge import Claim, Verdict, counted, judged
from lab.question import Answer
from slimfl.results.statistics import paired

RESULTS = Path(__file__).parents[1] / "docs" / "results"
GOOD_DBM, POOR_DBM, WORSE_DBM = -51.0, -40.0, -33.0
#: By claim of C13: noise, width, who is said to be ahead, and of whom.
ADVICE = (
    ("good channel", GOOD_DBM, "1.0x", "vanilla-1.0x", "slimfl"),
    ("extremely poor", WORSE_DBM, "0.5x", "vanilla-0.5x", "slimfl"),
    ("between, 1.0x", POOR_DBM, "1.0x", "slimfl", "vanilla-1.0x"),
    ("between, 0.5x", POOR_DBM, "0.5x", "slimfl", "vanilla-0.5x"),
)


def headlines(answers: Mapping[str, Answer]) -> list[dict[str, Any]]:
    """A row per claim: the paper's number, ours with its interval, the verdict, and the evidence.

    Args:
        answers: Every exhibit by its name.
    """
    told = answers["budget"].data.get("headline", {}) if "budget" in answers else {}
    rows = []
    for each in paper.read("claims")["headline"]:
        found = list(_rests_on(each, answers))
        rows.append(
            {
                "name": each["name"],
                "claim": each["text"],
                "paper": each["paper"],
                "ours": told.get(each["name"]) or _ours(found),
                "verdict": each.get("verdict") or _verdict(found),
                "preliminary": any(claim.is_preliminary for claim in found),
                "evidence": each["evidence"],
            }
        )
    return rows


def story(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The ten sentences on the fourteen claims, with the verdicts as they are."""
    words = {row["name"]: verdict_words(row) for row in rows}
    path = RESULTS / "plans" / "superposition.json"
    [primary] = [
        row for row in json.loads(path.read_text("utf-8"))["contrasts"] if row["role"] == "primary"
    ]
    lead = "{mean:+.1f} [{low:+.1f}, {high:+.1f}] points ({seeds} seeds)".format_map(primary)
    return [each.format(superposition=lead, **words) for each in paper.read("claims")["story"]]


def verdict_words(claim: Mapping[str, Any]) -> str:
    """A verdict, and that it is preliminary."""
    return f"{claim['verdict']}{' (preliminary)' if claim['preliminary'] else ''}"


def _rests_on(told: Mapping[str, Any], answers: Mapping[str, Answer]) -> Iterator[Claim]:
    if told.get("study") == "regimes":
        yield from advice(RESULTS / "studies" / "regimes" / "results.json")
    if told.get("study") == "convex":
        yield from theorem(RESULTS / "convex.json")
    for place in told.get("rests_on", ()):
        exhibit, _, begin = place.partition(":")
        if exhibit in answers:
            yield from (c for c in answers[exhibit].claims if c.name.startswith(begin))


def _ours(claims: Sequence[Claim]) -> str:
    """Every number that is there, with its claim's name where there are several."""
    known = [claim for claim in claims if claim.said]
    if not known:
        return "not run"
    if len(known) > 6:
        apart = sum(c.adjusted_p is not None and c.adjusted_p < 0.05 for c in known)
        return f"{len(known)} contrasts, {apart} told apart after Holm's correction"
    if len(known) == 1:
        return known[0].said
    names = [claim.name.split() for claim in known]
    shared = sum(
        1 for _ in takewhile(lambda words: len(set(words)) == 1, zip(*names, strict=False))
    )
    told = zip(names, known, strict=True)
    return "; ".join(f"{' '.join(words[shared:])}: {claim.said}" for words, claim in told)


def _verdict(claims: Sequence[Claim]) -> str:
    """One word where all agree, counts otherwise."""
    verdicts = [str(each.verdict) for each in claims] or [str(Verdict.NONE)]
    return verdicts[0] if len(set(verdicts)) == 1 else counted(verdicts)


def advice(path: Path) -> list[Claim]:
    """What theory says of the channel, against the archived runs of the study of regimes.

    Settings in which SlimFL never sent segment 2 test nothing about it and are left out.
    """
    if not path.is_file():
        return []
    (question,) = json.loads(path.read_text(encoding="utf-8"))["questions"]
    claims = []
    for words, noise, width, first, second in ADVICE:
        for setting in question["data"]["settings"]:
            asked = setting["noise_dbm"] == noise and setting["spectral_efficiency"] == 1.5
            if asked and setting["segment_2_was_sent"]:
                ours = setting["accuracy"][width]
                contrast = paired(_by_seed(ours[first]), _by_seed(ours[second]))
                alpha = setting["alpha"]
                claims.append(
                    Claim(
                        f"{words}, {setting['place']}, alpha = {alpha:g}", words, "section V",
                        contrast=contrast, family=f"{alpha:g} {width}",
                        seeds=contrast.seeds if contrast else 0,
                    )
                )  # fmt: skip
    return judged(claims)


def theorem(path: Path) -> list[Claim]:
    """The largest measured shares of the paper's bound."""
    if not path.is_file():
        return []
    document = json.loads(path.read_text(encoding="utf-8"))
    largest = max(row["share_of_paper"] for row in document["bounds"])
    broken = max(row["last_share_of_paper"] for row in document["at_optimum"])
    said = (
        f"on the convex problem with sampling noise at most {largest:.0%} of the bound; non-IID "
        f"data with little noise, which its assumptions leave out, up to {broken:,.0f} times it"
    )
    verdict = Verdict.READING if broken > 1 >= largest else Verdict.REPRODUCED
    return [Claim("theorem 1", "Theorem 1", "section V", "a bound", said, verdict)]


def _by_seed(values: Mapping[str, float]) -> dict[int, float]:
    return {int(seed): value for seed, value in values.items()}
