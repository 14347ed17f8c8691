"""Numbers do not move by accident: tiny runs of every kind, to the last bit.

`python tests/golden/test_golden.py` writes golden.json anew. Do that only if a change is meant to
move numbers, and say in the commit which cases moved and why.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from slimfl import config
from slimfl.federation import Simulation
from slimfl.reproduction.cells import made_with

HERE = Path(__file__).parent
CASES: dict[str, Any] = tomllib.loads((HERE / "cases.toml").read_text())
COMMON = CASES.pop("common")
GOLDEN = HERE / "golden.json"


def tree_of(case: str) -> dict[str, Any]:
    """The keys of a case: those of `common`, and over them its own."""
    tree = {k: dict(v) if isinstance(v, dict) else v for k, v in COMMON.items()}
    for key, value in CASES[case].items():
        tree[key] = {**tree.get(key, {}), **value} if isinstance(value, dict) else value
    if isinstance(tree["training"].get("epochs"), int):
        del tree["training"]["steps"]
    return tree


def run(case: str) -> dict[str, Any]:
    """Every line of the metrics without wall times, and the digest of the final model."""
    simulation = Simulation(config.build(tree_of(case)))
    lines = []
    for _ in range(simulation.experiment.rounds):
        line = simulation.step().as_json()
        del line["seconds"]
        lines.append(line)
    model = hashlib.sha256(simulation.global_model.tobytes()).hexdigest()
    return {"lines": json.loads(json.dumps(lines)), "model": model}


def machine() -> dict[str, str]:
    """What the last bits depend on besides the code."""
    drawn = {"weights": made_with.drawn_weights(), "gains": made_with.drawn_gains()}
    return {"engine": made_with.engine(), **drawn, **made_with.versions()}


@pytest.fixture(scope="module")
def golden():
    stored = json.loads(GOLDEN.read_text())
    here = machine()
    differing = [key for key, value in stored["machine"].items() if here[key] != value]
    if differing:
        pytest.skip(f"golden.json was made with another {', '.join(differing)}")
    return stored["cases"]


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_before(case, golden):
    now = run(case)
    for before, line in zip(golden[case]["lines"], now["lines"], strict=True):
        moved = {
            k: (before.get(k), line.get(k))
            for k in {*before, *line}
            if before.get(k) != line.get(k)
        }
        assert not moved, f"round {line['round']}: {sorted(moved)}"
    assert now["model"] == golden[case]["model"]


if __name__ == "__main__":
    cases = {}
    for case in CASES:
        print(case)
        cases[case] = run(case)
    GOLDEN.write_text(json.dumps({"machine": machine(), "cases": cases}, indent=None) + "\n")
