"""When two means are a tie: the only rule, for the closing table, the report and the studies.

A difference is a tie when it is no larger than the combined standard deviation of both means.
"""

import math

#: Relative slack, so that means that differ only by rounding are a tie.
ROUNDING = 1e-9


def combined_deviation(first: float, second: float) -> float:
    """The deviation of the difference of two independent numbers with these deviations."""
    return math.hypot(first, second)


def is_tie(first: float, second: float, first_deviation: float, second_deviation: float) -> bool:
    """True if two means cannot be told apart, given their deviations.

    >>> is_tie(0.50, 0.55, 0.03, 0.04), is_tie(0.50, 0.56, 0.03, 0.04)
    (True, False)
    """
    bar = combined_deviation(first_deviation, second_deviation)
    return abs(first - second) <= bar + ROUNDING * max(1.0, abs(second))
