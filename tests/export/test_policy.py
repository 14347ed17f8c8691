"""The width policy: its guarantees and its answers."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slimfl
from slimfl.errors import RequestError
from slimfl.export.policy import WidthPolicy, probabilities_of

COSTS = {0.25: 1.0, 0.5: 2.5, 1.0: 7.0}
budgets = st.lists(st.floats(0, 20), min_size=1, max_size=40)


@given(budgets, st.floats(0, 1))
def test_a_budget_is_kept_unless_even_the_narrowest_width_exceeds_it(budgets, hysteresis):
    policy = WidthPolicy(COSTS, hysteresis=hysteresis)
    for budget in budgets:
        width = policy.within(budget)
        assert COSTS[width] <= budget or width == 0.25


@given(budgets)
def test_without_hysteresis_it_is_the_widest_that_fits(budgets):
    policy = WidthPolicy(COSTS, hysteresis=0)
    for budget in budgets:
        fitting = [width for width, cost in COSTS.items() if cost <= budget]
        assert policy.within(budget) == (max(fitting) if fitting else 0.25)


@given(st.lists(st.floats(0.96, 1.04), min_size=2, max_size=50))
def test_a_budget_that_wavers_by_less_than_the_hysteresis_switches_once_at_most(wavering):
    policy = WidthPolicy(COSTS, hysteresis=0.1)
    widths = [policy.within(7.0 * factor) for factor in wavering]
    assert sum(a != b for a, b in itertools.pairwise(widths)) <= 1


def test_a_cascade_asks_the_full_width_about_unsure_images_alone():
    policy = WidthPolicy({0.5: 1.0, 1.0: 3.0}, confidence=0.7)
    images = np.arange(4)
    narrow = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
    asked = []

    def full(some):
        asked.extend(some.tolist())
        return np.tile([0.0, 1.0], (len(some), 1))

    answers = policy.cascade(images, {0.5: lambda some: narrow[some], 1.0: full})
    assert asked == [1, 3]
    assert answers.widths.tolist() == [0.5, 1.0, 0.5, 1.0]
    assert answers.probabilities.argmax(1).tolist() == [0, 1, 1, 1]
    assert answers.cost == 1.0 + 2 / 4 * 3.0
    assert narrow[1].tolist() == [0.6, 0.4]  # what it was given is left alone


@pytest.mark.parametrize(("confidence", "asked"), [(0.0, 0), (1.0, 3)])
def test_the_ends_of_the_confidence(confidence, asked):
    policy = WidthPolicy(COSTS, confidence=confidence)
    rows = np.array([[0.5, 0.5], [0.99, 0.01], [0.2, 0.8]])
    answers = policy.cascade(np.arange(3), {0.25: lambda i: rows[i], 1.0: lambda i: rows[i]})
    assert (answers.widths == 1.0).sum() == asked


def test_nobody_is_sure_of_what_is_not_a_number():
    assert WidthPolicy(COSTS, confidence=0.1).unsure([[np.nan, 0.5], [0.5, 0.5]]).tolist() == [
        True, False,
    ]  # fmt: skip


def test_a_single_width_answers_by_itself():
    answers = WidthPolicy({1.0: 2.0}).cascade(np.arange(2), {1.0: lambda i: [[0.5, 0.5]] * len(i)})
    assert answers.cost == 2.0


def test_softmax_agrees_with_the_formula():
    logits = np.array([[1.0, 2.0, -1.0]])
    expected = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(probabilities_of(logits), expected)


def test_it_is_read_from_a_manifest(tmp_path):
    models = [
        {"width": w, "precision": p, "joules_per_image": j, "latency_ms": None}
        for w, p, j in ((0.5, "float32", 2.0), (1.0, "float32", 5.0), (1.0, "int8", 1.0))
    ]
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"models": models}))
    assert WidthPolicy.from_manifest(path).costs == {0.5: 2.0, 1.0: 5.0}
    assert WidthPolicy.from_manifest({"models": models}, precision="int8").costs == {1.0: 1.0}
    with pytest.raises(RequestError, match="--measure"):
        WidthPolicy.from_manifest(path, cost="latency_ms")
    with pytest.raises(RequestError, match="float16"):
        WidthPolicy.from_manifest(path, precision="float16")
    path.write_text("[" * 100_000)
    with pytest.raises(RequestError, match="not the manifest"):
        WidthPolicy.from_manifest(path)
    with pytest.raises(RequestError, match="cannot be read"):
        WidthPolicy.from_manifest(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("costs", "options"),
    [
        ({}, {}),
        ({1.5: 1.0}, {}),
        ({0.5: 2.0, 1.0: 1.0}, {}),
        ({0.5: float("nan"), 1.0: 1.0}, {}),
        (COSTS, {"hysteresis": float("nan")}),
        (COSTS, {"confidence": 80}),
    ],
)
def test_what_makes_no_sense_is_refused(costs, options):
    with pytest.raises(RequestError):
        WidthPolicy(costs, **options)


def test_it_needs_no_torch():
    use = "from slimfl.export.policy import WidthPolicy; WidthPolicy({1.0: 1.0})"
    code = f"import sys; {use}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert slimfl.export.policy.WidthPolicy is WidthPolicy
