"""A plan: what is asked, which runs answer it, and how they will be judged.

A plan is a TOML file in `lab/plans`, committed before its first run. It names the arms, the fresh
seeds, the outcome, the test and the stop rule, so that none of them can follow from the results.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from lab import archive as archives
from lab.cell import PAPERS_LINK, Cell
from slimfl import experiment as config
from slimfl.errors import RequestError

PLANS = Path(__file__).parent / "plans"
#: Seeds below this one were used before plans were kept.
FIRST_FRESH_SEED = 100


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Measure(_Part):
    """A number read from one run, at one width."""

    width: str
    """As in the metrics: `0.5x`."""
    score: Literal["late tests", "mean of the last models", "fluctuation", "worst late test"]
    """`late tests`: the mean accuracy of the tests from `late_from` on, in percent. `mean of the
    last models`: the accuracy of that mean after the last round, in percent. `fluctuation`: the
    root of half the mean squared difference of successive tests from `late_from` on, in points.
    `worst late test`: the smallest accuracy from `late_from` on, in percent."""


class Contrast(_Part):
    """One arm against another, paired by seed."""

    name: str
    of: str
    over: str
    measure: Measure
    over_width: str | None = None
    """The other arm's width, where it is not the same."""
    scale: Literal["difference", "ratio"] = "difference"
    role: Literal["primary", "secondary", "exploratory"] = "secondary"
    """The p values of secondary contrasts are adjusted by Holm's method."""
    predicted: str = ""
    """What was expected before the runs, and from what."""


class Plan(_Part):
    """The file, checked."""

    title: str
    question: str
    prediction: str
    """What theory or earlier runs say."""
    seeds: Annotated[list[int], Field(min_length=1)]
    late_from: int
    """First round of the late tests."""
    test: str
    """How the primary outcome is judged."""
    stop: str
    """When the runs end, whatever they show."""
    common: dict[str, Any]
    """Keys of every run, as in an experiment file."""
    arms: dict[str, dict[str, Any]]
    """Further keys by the name of the arm."""
    settings: dict[str, dict[str, Any]] = {"": {}}
    """Further keys by the name of the setting; every arm runs in each."""
    primary_setting: str | None = None
    """The setting in which the primary contrasts are primary; elsewhere they are secondary. All
    settings when absent."""
    equal: dict[str, list[str]] = {}
    """By quantity (`airtime`, `transmit energy`, `computing`), the arms that must agree in it."""
    contrasts: list[Contrast]

    @pydantic.model_validator(mode="after")
    def _names_exist(self) -> Plan:
        used = [name for c in self.contrasts for name in (c.of, c.over)]
        used += [name for arms in self.equal.values() for name in arms]
        unknown = sorted({*used} - {*self.arms})
        if unknown:
            raise ValueError(f"there is no arm {unknown[0]!r}")
        if self.primary_setting is not None and self.primary_setting not in self.settings:
            raise ValueError(f"there is no setting {self.primary_setting!r}")
        if min(self.seeds) < FIRST_FRESH_SEED:
            raise ValueError(f"seeds below {FIRST_FRESH_SEED} are not fresh")
        return self


@dataclass(frozen=True)
class PlannedRun:
    """One run of a plan."""

    setting: str
    arm: str
    seed: int
    cell: Cell

    def is_finished(self, cache: Path) -> bool:
        """Whether all rounds are there, with the model or from the archive."""
        record = self.cell.record(cache)
        return record is not None and len(record.lines) >= self.cell.rounds


@dataclass(frozen=True)
class NamedPlan:
    """A plan and the file that it comes from."""

    path: Path
    plan: Plan

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @cached_property
    def runs(self) -> list[PlannedRun]:
        """All runs, seed by seed, so that an interruption leaves complete seeds."""
        return list(self._runs())

    def _runs(self) -> Iterator[PlannedRun]:
        plan = self.plan
        for seed in plan.seeds:
            for setting, keys in plan.settings.items():
                for arm, own in plan.arms.items():
                    link = {"radio": PAPERS_LINK}  # an arm of several messages names another
                    tree = merged(link, plan.common, keys, own, {"seed": seed})
                    yield PlannedRun(setting, arm, seed, Cell(config.build(tree)))

    @property
    def archive(self) -> Path:
        """The file with its finished runs."""
        return archives.PLANS / f"{self.name}.tar.xz"

    def finished(self, cache: Path) -> list[Cell]:
        """The runs that have all their rounds."""
        return [run.cell for run in self.runs if run.is_finished(cache)]

    @property
    def digest(self) -> str:
        """What identifies the plan's contents, whatever its comments and layout."""
        text = json.dumps(self.plan.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def committed(self) -> str:
        """The commit that last changed the plan; refused if the file differs from it."""
        changed = _git("status", "--porcelain", "--", str(self.path))
        if changed:
            raise RequestError(f"commit {self.path} first: a plan is made before its runs")
        return _git("log", "-1", "--format=%H", "--", str(self.path))


def load(name: str) -> NamedPlan:
    """A plan by its name."""
    path = PLANS / f"{name}.toml"
    if not path.is_file():
        raise RequestError(f"there is no plan {name!r}; choose one of {', '.join(names())}")
    try:
        return NamedPlan(path, Plan.model_validate(tomllib.loads(path.read_text())))
    except (tomllib.TOMLDecodeError, pydantic.ValidationError) as error:
        raise RequestError(f"{path} is no plan: {error}") from None


def names() -> list[str]:
    """The plans that there are."""
    return sorted(path.stem for path in PLANS.glob("*.toml"))


def stamp(planned: NamedPlan, commit: str, cell: Cell, cache: Path) -> None:
    """Record beside a run, before it begins, which plan asked for it."""
    path = archives.stamp_of(cell, cache)
    if not path.exists() and not cell.folder(cache).exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        words = {"plan": planned.name, "sha256": planned.digest, "commit": commit}
        path.write_text(json.dumps(words) + "\n")


def merged(*trees: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dictionaries put over each other; later ones win.

    >>> merged({"radio": {"noise_dbm": -40}}, {"radio": {"rates": "by-size"}})
    {'radio': {'noise_dbm': -40, 'rates': 'by-size'}}
    """
    whole: dict[str, Any] = {}
    for tree in trees:
        for key, value in tree.items():
            both = isinstance(value, Mapping) and isinstance(whole.get(key), Mapping)
            whole[key] = merged(whole[key], value) if both else value
    return whole


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(PLANS), *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RequestError(f"git {' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout.strip()
