import numpy as np

from slimfl.config import FederationSection
from slimfl.federation import converged_round, convergence

SECTION = FederationSection(
    convergence_window=5, convergence_accuracy=0.8, convergence_deviation=0.05
)


def naive(accuracies, section):
    for end in range(section.convergence_window, len(accuracies) + 1):
        window = np.array(accuracies[end - section.convergence_window : end])
        if (
            window.mean() > section.convergence_accuracy
            and window.std() < section.convergence_deviation
        ):
            return end
    return None


def test_equals_a_sliding_window():
    random = np.random.default_rng(0)
    found = set()
    for _ in range(200):
        rising = np.clip(np.linspace(0.3, 0.9, 40) + random.normal(0, 0.08, 40), 0, 1)
        expected = naive(rising, SECTION)
        found.add(expected)
        assert converged_round(enumerate(rising.tolist(), 1), SECTION) == expected
    assert None in found
    assert len(found) > 3


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
