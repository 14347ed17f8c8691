"""What the paper prints and claims, from `paper.toml` and `claims.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def read(name: str) -> dict[str, Any]:
    """A data file beside this one."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


def printed(exhibit: str) -> dict[str, Any]:
    """Title, statement and numbers of a table or figure."""
    found: dict[str, Any] = read("paper")[exhibit]
    return found


def claims(exhibit: str) -> list[dict[str, Any]]:
    """The claims about a table or figure."""
    return [each for each in read("claims")["claim"] if each["exhibit"] == exhibit]


def table3(channel: str, alpha: float) -> dict[str, tuple[float, float]]:
    """A column of table III: percent and the deviation after the ± sign, by method and width."""
    found: dict[str, tuple[float, float]] = printed("table3")[channel][f"{alpha:g}"]
    return found
