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

import numpy as np
import pytest
import torch

from lab import made_with
from slimfl import experiment as config
from slimfl.round import Simulation

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
    products = {"torch products": torch_products(), "numpy products": numpy_products()}
    versions = {k: v for k, v in made_with.versions().items() if k != "slimfl"}
    return {"engine": made_with.engine(), **drawn, **products, **versions}


def torch_products() -> str:
    """A digest of products and convolutions: libraries choose their order by the processor."""
    torch.set_num_threads(1)  # as in all tests; the order of sums depends on it
    torch.manual_seed(0)
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3), torch.nn.Flatten(), torch.nn.Linear(576, 10)
    )
    for images in (torch.randn(4, 3, 8, 8), torch.randn(64, 3, 8, 8)):
        layers(images).square().sum().backward()
    return digest(*(p.grad.numpy() for p in layers.parameters() if p.grad is not None))


def numpy_products() -> str:
    """The same of complex and real products in NumPy."""
    random = np.random.default_rng(0)
    real = random.standard_normal((2, 40, 30))
    mixed = (real[0] + 1j * real[1]) @ (real[0] - 1j * real[1]).T
    return digest(real[0] @ real[1].T, mixed.view(np.float64))


def digest(*arrays: Any) -> str:
    return hashlib.sha256(b"".join(each.tobytes() for each in arrays)).hexdigest()[:12]


@pytest.fixture(scope="module")
def golden():
    stored = json.loads(GOLDEN.read_text())
    here = machine()
    return stored["cases"], [key for key, value in stored["machine"].items() if here[key] != value]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_before(case, golden):
    cases, differing = golden
    before, now = cases[case], run(case)
    moved = [
        f"round {line['round']}: {key}"
        for earlier, line in zip(before["lines"], now["lines"], strict=True)
        for key in sorted({*earlier, *line})
        if earlier.get(key) != line.get(key)
    ]
    moved += ["model"] * (now["model"] != before["model"])
    if moved and differing:
        pytest.skip(f"golden.json was made with another {', '.join(differing)}")
    assert not moved


if __name__ == "__main__":
    cases = {}
    for case in CASES:
        print(case)
        cases[case] = run(case)
    GOLDEN.write_text(json.dumps({"machine": machine(), "cases": cases}, indent=None) + "\n")
