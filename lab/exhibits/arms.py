"""One setting of an exhibit with all its seeds, and what the claims of `claims.toml` say of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lab import paper
from lab.cell import Cell, cell
from lab.judge import Claim, by_reading, judged
from lab.question import Final, Runs, complete, final, fluctuations, shown
from lab.scale import Scale
from slimfl.results.records import RunRecord
from slimfl.results.statistics import paired

METHODS = ("slimfl", "vanilla-0.5x", "vanilla-1.0x")
#: (method, width) of every curve of the paper, in the order of table III.
CURVES = {
    ("slimfl", "0.5x"): "SlimFL-0.5x",
    ("slimfl", "1.0x"): "SlimFL-1.0x",
    ("vanilla-0.5x", "0.5x"): "Vanilla FL-0.5x",
    ("vanilla-1.0x", "1.0x"): "Vanilla FL-1.0x",
}
CHANNELS = ("good", "poor")
#: Number of rounds behind an accuracy at equal local steps.
EQUAL_ROUNDS = 5


@dataclass(frozen=True)
class Arm:
    """A setting: its runs differ in the seed."""

    alpha: float
    method: str = "slimfl"
    channel: str = "poor"
    devices: int | str = 10
    """A number, or `most` or `fewest` of figure 6."""
    seeds: str = "seeds"
    """The name of the number of seeds in the scale."""
    part: float = 1.0
    """The part of the rounds that is read."""
    equal_steps: bool = False
    """Read after as many local steps of a device as with the most devices at the end."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Further keys, with two underscores for the dot."""

    @classmethod
    def of(cls, **given: Any) -> Arm:
        """An arm from one flat table of keys."""
        own = {key: given.pop(key) for key in list(given) if key in cls.__dataclass_fields__}
        return cls(**own, changes=given)

    def cells(self, scale: Scale) -> list[Cell]:
        """One run per seed."""
        changes = dict(self.changes)
        if "training__batch_size" in changes and scale.steps is not None:
            # the same number of images in fewer steps, as in an epoch
            steps = scale.steps * 16 / changes["training__batch_size"]
            changes["training__steps"] = max(1, round(steps))
        return [
            cell(scale, self.method, alpha=self.alpha, channel=self.channel, seed=seed,
                 devices=self._devices(scale), **changes)
            for seed in range(getattr(scale, self.seeds))
        ]  # fmt: skip

    def final(self, scale: Scale, runs: Runs, width: str) -> Final | None:
        """The accuracy at the end of what is read."""
        cells = self.cells(scale)
        last = scale.last_rounds(self.alpha)
        if "rounds" in self.changes:
            last = round(self.changes["rounds"] * scale.last_share)
        part = self._part(scale)
        if part == 1.0 and not self.equal_steps:
            return final(runs, cells, width, last)
        last = EQUAL_ROUNDS if self.equal_steps else max(1, int(last * part))
        read = {one: _shortened(runs[one], part) for one in cells if one in runs}
        return final(read, cells, width, last)

    def read_until(self, scale: Scale) -> int:
        """The last round that is read."""
        return round(scale.rounds[self.alpha] * self._part(scale))

    def _part(self, scale: Scale) -> float:
        if self.equal_steps:
            return self._devices(scale) / scale.device_counts[-1]
        return self.part

    def _devices(self, scale: Scale) -> int:
        ends = {"fewest": scale.device_counts[0], "most": scale.device_counts[-1]}
        return ends[self.devices] if isinstance(self.devices, str) else self.devices


def _shortened(record: RunRecord, part: float) -> RunRecord:
    until = round(record.experiment.rounds * part)
    experiment = record.experiment.model_copy(update={"rounds": until})
    return replace(record, experiment=experiment, lines=record.lines[:until])


def over_common_seeds(finals: dict[Any, Final | None], keys: Collection[Any]) -> None:
    """Show what is compared over the seeds that all have: others would hide the difference."""
    known = [one for key in keys if (one := finals[key])]
    common = set.intersection(*(set(one.by_seed) for one in known)) if known else set()
    planned = max((one.seeds_planned or len(one.by_seed) for one in known), default=0)
    for key in keys:
        one = finals[key]
        if one and common and common != set(one.by_seed):
            fewer = {seed: one.by_seed[seed] for seed in sorted(common)}
            more = planned if planned > len(common) else None
            finals[key] = replace(one, by_seed=fewer, seeds_planned=more)


def claims(exhibit: str, scale: Scale, runs: Runs) -> list[Claim]:
    """The claims about an exhibit, judged; readings of one claim become one."""
    told = paper.claims(exhibit)
    found = judged([_claim(each, scale, runs) for each in told])
    merged: dict[str, dict[str, Claim]] = {}
    for each, claim in zip(told, found, strict=True):
        merged.setdefault(each["name"], {})[each.get("reading", "")] = claim
    return [
        by_reading(name, one[next(iter(one))].text, one[next(iter(one))].source, one)
        if len(one) > 1
        else next(iter(one.values()))
        for name, one in merged.items()
    ]


def _claim(told: Mapping[str, Any], scale: Scale, runs: Runs) -> Claim:
    """A contrast of two arms, or of more with the signs given in `minus_also` and `plus_also`."""
    ratio = told.get("measure") == "fluctuation"
    plus, minus = (
        [told["of"], *told.get("plus_also", ())],
        [told["over"], *told.get("minus_also", ())],
    )
    groups = told.get("alphas", [None])
    first: dict[int, float] = {}
    second: dict[int, float] = {}
    noise, seeds = 0.0, set[int]()
    for number, alpha in enumerate(groups):
        sides = []
        for side in (plus, minus):
            measured = [_measured(told, each, alpha, scale, runs) for each in side]
            common = set.intersection(*(set(each) for each in measured))
            sides.append({seed: sum(each[seed] for each in measured) for seed in common})
            if not ratio:
                noise = math.hypot(noise, *(Final(m).deviation for m in measured if len(m) > 1))
        common = sides[0].keys() & sides[1].keys()
        seeds |= common
        first |= {1000 * number + seed: sides[0][seed] for seed in sorted(common)}
        second |= {1000 * number + seed: sides[1][seed] for seed in sorted(common)}
    contrast = paired(first, second, ratio=ratio)
    reason = "" if contrast else "No seed is finished."
    if scale.quick_look and contrast:
        reason = "A quick look, in which nothing has converged."
    return Claim(
        told["name"],
        told["text"],
        told["source"],
        told.get("paper", ""),
        contrast=contrast,
        reason=reason,
        effect=told.get("effect"),
        sign=told.get("sign", 1),
        effect_deviation=noise,
        family=f"{told.get('measure', 'accuracy')} {told['of'].get('alpha', told.get('alphas'))} "
        f"{told['of'].get('width')}",
        unit="times" if ratio else "points",
        seeds=len(seeds) if contrast else 0,
    )


def _measured(
    told: Mapping[str, Any], keys: Mapping[str, Any], alpha: float | None, scale: Scale, runs: Runs
) -> dict[int, float]:
    """By seed, over finished runs that are better than guessing."""
    own = {key: value for key, value in keys.items() if key != "width"}
    own |= {} if alpha is None else {"alpha": alpha}
    arm = Arm.of(**{"seeds": told.get("seeds", "seeds"), **own})
    if told.get("measure") == "fluctuation":
        return fluctuations(complete(runs, arm.cells(scale)), keys["width"])
    found = arm.final(scale, runs, keys["width"])
    if found is None or not found.is_finished or found.mean <= found.learned_above:
        return {}
    return dict(found.by_seed)


def records(scale: Scale, runs: Runs, arm: Arm, seeds: Collection[int]) -> list[RunRecord]:
    """The runs behind a final accuracy, for its curve."""
    return [each for each in shown(runs, arm.cells(scale)) if each.experiment.seed in seeds]
