"""Which method is preferable over noise and rate: the rule of `advise` on a grid.

In every cell SlimFL has the best of some splits: segment 1 takes a share of the power, and the
others divide the rest in the ratio of the closed-form optimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio.bound import condition, times_the_airtime, widest_that_arrives
from slimfl.radio.coding import Floats, single
from slimfl.radio.link import probabilities_over_noise
from slimfl.radio.signals import build_coding
from slimfl.radio.splits import inverse_probability_sum, optimal_split
from slimfl.units import to_db

#: Shares of segment 1 that are tried for each rate; fewer where every probability takes long.
SHARES, FEW_SHARES = 40, 12
#: Stands in the map where nothing arrives.
NO_METHOD = -1


@dataclass(frozen=True)
class PreferenceMap:
    """[rate, noise]: the preferable method as an index, and whether it is a tie.

    The index is `NO_METHOD` where nothing arrives; in a tie, it is the method with the smaller D.
    """

    noises_dbm: Floats
    rates: Floats
    """Of one segment in bit/s/Hz."""
    methods: tuple[str, ...]
    """SlimFL first, then every Vanilla FL width."""
    preferred: NDArray[np.int64]
    tie: NDArray[np.bool_]


def splits_along(rates: Sequence[float], shares: Floats) -> list[tuple[float, ...]]:
    """A split for every share of segment 1; the others divide the rest as in the closed form."""
    closed = np.array(optimal_split(rates))
    after = closed[1:] / closed[1:].sum()
    return [(first, *((1 - first) * after).tolist()) for first in shares.tolist()]


def preference_map(
    section: RadioSection,
    widths: Sequence[float],
    devices: int,
    noises_dbm: Floats,
    rates: Floats,
) -> PreferenceMap:
    """The preferable method at each noise and each rate, all segments at the same rate.

    Args:
        section: The radio, whose noise and rate vary.
        widths: Those of the network, ascending.
        devices: How many take part in a round.
        noises_dbm: [noise].
        rates: [rate] of one segment in bit/s/Hz.
    """
    count = len(widths)
    longer = times_the_airtime(section, count)
    lower_power = np.asarray(noises_dbm) + to_db(longer)
    preferred = np.empty((len(rates), len(noises_dbm)), np.int64)
    tie = np.zeros(preferred.shape, np.bool_)
    for row, rate in enumerate(rates.tolist()):
        ones = [single(rate * (i + 1) / longer) for i in range(count)]
        whole = np.hstack([probabilities_over_noise(section, one, lower_power) for one in ones])
        slim, slim_d = _best(section, (rate,) * count, noises_dbm)
        for column, some in enumerate(whole.tolist()):
            case = condition(slim[column], some, devices)
            if case == "nothing":
                preferred[row, column] = NO_METHOD
                continue
            best = widest_that_arrives(some, devices) if case == "poor" else count - 1
            tie[row, column] = case == "tie"
            first = slim_d[column] <= inverse_probability_sum([some[-1]] * count)
            slim_is_best = case == "segments" or (case == "tie" and first)
            preferred[row, column] = 0 if slim_is_best else best + 1
    names = ("slimfl", *(f"vanilla-{round(width, 3)}x" for width in widths))
    return PreferenceMap(noises_dbm, rates, names, preferred, tie)


def _best(
    section: RadioSection, rates: tuple[float, ...], noises_dbm: Floats
) -> tuple[Floats, Floats]:
    """[noise, segment] and [noise]: the smallest D that a split reaches, and its probabilities."""
    noises = len(noises_dbm)
    best, best_d = np.zeros((noises, len(rates))), np.full(noises, np.inf)
    target = 2 ** rates[0] - 1
    superposed = section.multiplexing == "superposition"
    edge = target / (1 + target) if superposed else 0.0
    quick = section.decoder == "outage" and not section.frequency_selective
    tried = SHARES if quick else FEW_SHARES
    shares = edge + (1 - edge) * np.linspace(0, 1, tried + 2)[1:-1]
    # a good split by itself is among them, so that a coarse grid does not decide a tie
    candidates = [optimal_split(rates) if superposed else (1 / len(rates),) * len(rates)]
    if len(rates) > 1:
        candidates += splits_along(rates, shares)
    for split in candidates:
        try:
            found = probabilities_over_noise(
                section, build_coding(section, rates, split), noises_dbm
            )
        except RequestError:
            continue  # residual interference drowns a segment
        with np.errstate(divide="ignore", over="ignore"):
            terms = (1 / found).sum(axis=1)
        better = terms < best_d
        best[better], best_d[better] = found[better], terms[better]
    return best, best_d
