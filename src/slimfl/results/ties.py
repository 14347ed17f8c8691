"""When two means are called a tie: the one rule of the closing table, the report and the studies.

A difference is a tie when it is no larger than the combined standard deviation of both means.
"""

import math

#: Relative slack, so that means that differ by rounding alone are a tie.
ROUNDING = 1e-9


def combined_deviation(first: float, second: float) -> float:
    """Of the difference of two independent numbers with these deviations."""
    return math.hypot(first, second)


def is_tie(first: float, second: float, first_deviation: float, second_deviation: float) -> bool:
    """Whether two means, each with its deviation, cannot be told apart.

    >>> is_tie(0.50, 0.55, 0.03, 0.04), is_tie(0.50, 0.56, 0.03, 0.04)
    (True, False)
    """
    bar = combined_deviation(first_deviation, second_deviation)
    return abs(first - second) <= bar + ROUNDING * max(1.0, abs(second))
