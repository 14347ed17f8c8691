"""The package against the plain implementation of algorithm 2: same seed, same numbers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import slimfl
from slimfl.data import synthetic
from tests import asking

PLAIN = Path(__file__).parents[2] / "examples/slimfl_plain.py"


@pytest.mark.parametrize("engine", ["torch", "native"])
def test_the_engine_computes_what_the_plain_loops_compute(engine):
    spec = importlib.util.spec_from_file_location("slimfl_plain", PLAIN)
    plain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain)
    dataset = synthetic(train=600, test=200, size=8)

    weights, history = plain.main(dataset, rounds=3, steps=7)
    run = asking.run(
        dataset=dataset, rounds=3, training__steps=7, seed=0, engine=engine, radio__rates="equal"
    )

    flat = np.concatenate([w.numpy().ravel() for w in weights])
    moved = flat - slimfl.round.Simulation(run.experiment, dataset=dataset).global_model
    # Adam divides by the gradient's size, so rounding of a tiny gradient moves a weight visibly
    assert np.linalg.norm(run.parameters - flat) < 2e-3 * np.linalg.norm(moved)
    assert np.abs(run.parameters - flat).max() < 0.01 * np.abs(moved).max()
    for line, (half, full) in zip(run.lines, history, strict=True):
        assert line["accuracy"] == pytest.approx({"0.5x": half, "1.0x": full}, abs=0.01)


def test_the_plain_reading_stays_short():
    assert len(PLAIN.read_text().splitlines()) < 150
