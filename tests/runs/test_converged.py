"""The convergence test: windows, thresholds and several widths."""

from statistics import fmean, pstdev

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.experiment import FederationSection, build
from slimfl.round import RoundRecord, converged_round
from slimfl.round import convergence as convergence_of

SECTION = FederationSection(
    convergence_window=5, convergence_accuracy=0.8, convergence_deviation=0.05
)


def convergence(lines, section):
    """From rounds and accuracies alone."""
    return convergence_of([RoundRecord.model_construct(**line) for line in lines], section)


def test_a_high_mean_that_still_swings_has_not_converged():
    assert converged_round(enumerate([0.7, 1.0] * 20, 1), SECTION) is None


def test_the_window_counts_rounds_also_when_only_some_are_evaluated():
    sparse = [(r, 0.9) for r in range(2, 21, 2)]
    assert converged_round(sparse, SECTION) == 6


def test_every_width_must_have_converged():
    lines = [
        {"round": r, "accuracy": {"0.5x": 0.9 if r > 10 else 0.1, "1.0x": 0.95}}
        for r in range(1, 30)
    ]
    assert convergence(lines, SECTION) == 15
    assert convergence(lines[:12], SECTION) is None
    assert convergence([], SECTION) is None


def test_every_width_passes_in_the_same_window():
    """One width was good early and is lost by the time that the other is good."""
    lines = [
        {"round": r, "accuracy": {"0.5x": 0.9 if r <= 10 else 0.1, "1.0x": 0.95 if r > 10 else 0.1}}
        for r in range(1, 30)
    ]
    assert convergence(lines, SECTION) is None
    back = [{"round": r, "accuracy": {"0.5x": 0.9, "1.0x": 0.95}} for r in range(30, 40)]
    assert convergence(lines + back, SECTION) == 34


def naive_of_all(lines, section):
    """The first round whose window passes at every width, looked up round by round."""
    for last in lines:
        inside = [
            line["accuracy"]
            for line in lines
            if last["round"] - section.convergence_window < line["round"] <= last["round"]
            and line["accuracy"]
        ]
        if last["round"] < section.convergence_window or len(inside) < 2 or not last["accuracy"]:
            continue
        curves = [[accuracy[width] for accuracy in inside] for width in inside[0]]
        if all(fmean(c) > section.convergence_accuracy for c in curves) and all(
            pstdev(c) < section.convergence_deviation for c in curves
        ):
            return last["round"]
    return None


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("widths", [1, 2, 3])
def test_equals_a_search_for_the_first_window_that_all_pass(every, widths):
    random = np.random.default_rng(widths)
    found = []
    for _ in range(60):
        rising = np.linspace(0.3, 0.95, 60)[:, None] + random.normal(0, 0.06, (60, widths))
        lines = [
            {
                "round": r,
                "accuracy": {f"{i}x": rising[r - 1, i] for i in range(widths)}
                if r % every == 0
                else {},
            }
            for r in range(1, 61)
        ]
        found.append(naive_of_all(lines, SECTION))
        assert convergence(lines, SECTION) == found[-1]
    assert len({*found}) > 3


def could_stop(rounds, every, window):
    """Whether a perfect run passes the test in some round."""
    section = FederationSection(convergence_window=window)
    evaluated = [r for r in range(1, rounds + 1) if r % every == 0 or r == rounds]
    return converged_round(((r, 1.0) for r in evaluated), section) is not None


def stopping(rounds, every, window, **more):
    keys = {"evaluate_every": every, "convergence_window": window, **more}
    return {"rounds": rounds, "federation": {"stop_on_convergence": True, **keys}}


def test_a_window_that_can_never_fill_is_refused():
    refused = 0
    for rounds in range(1, 14):
        for every in range(1, 8):
            for window in range(1, 16):
                tree = stopping(rounds, every, window)
                if could_stop(rounds, every, window):
                    build(tree)
                else:
                    refused += 1
                    with pytest.raises(RequestError, match="can never stop"):
                        build(tree)
    assert refused > 100


def test_a_run_that_does_not_stop_may_have_any_window():
    tree = stopping(30, 50, 100)
    tree["federation"]["stop_on_convergence"] = False
    build(tree)
    build({})
