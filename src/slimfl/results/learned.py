"""Whether a network has learned: is it significantly better than guessing?

With C classes and n test samples, guessing is right in a share 1/C of them, with a standard error
of sqrt((1/C)(1 - 1/C)/n). A network has learned when its accuracy exceeds 1/C by more than three of
these errors. Before that, any lead is luck and nothing is judged.
"""

from math import sqrt

from slimfl.results.records import RunRecord

#: Standard errors above guessing.
ERRORS = 3.0
#: Test samples of the datasets known by name.
TEST_SAMPLES = {"fashion-mnist": 10_000, "mnist": 10_000, "synthetic": 500}
#: Assumed size of an unknown test set.
UNKNOWN_SAMPLES = 1_000


def learned_above(classes: int, test_samples: int) -> float:
    """The accuracy, as a fraction of 1, that a network exceeds once it has learned.

    >>> f"{learned_above(10, 10_000):.3f}"
    '0.109'
    """
    chance = 1 / classes
    return min(1.0, chance + ERRORS * sqrt(chance * (1 - chance) / test_samples))


def run_learned_above(record: RunRecord) -> float:
    """`learned_above` for a run's data; 0 if it has not begun or has a single class."""
    classes = len(record.class_counts[0]) if record.class_counts else 0
    if classes < 2:
        return 0.0
    data = record.experiment.data
    known = TEST_SAMPLES.get(record.dataset_name, UNKNOWN_SAMPLES)
    return learned_above(classes, min(known, data.test_samples or known))
