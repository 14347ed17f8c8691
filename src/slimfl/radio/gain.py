"""What superposition can gain over one message of the same airtime and energy.

The fading is Rayleigh. `rates` are bit/s/Hz of the segments *over the whole airtime*; their running
sums C_i are the rates of one message with segments 1..i. `snr` is the mean ratio P / c of received
power to noise, linear. A model that holds segments 1..i is worth `worth[i]`, and the full model 1.
docs/theory.md derives the formulas.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.radio.coding import Superposition, sinr_target
from slimfl.radio.fading import Rayleigh
from slimfl.radio.splits import best_split, delivered
from slimfl.units import to_db

Floats = NDArray[np.float64]


def snr_of_thresholds(rates: Sequence[float], thresholds: Sequence[float]) -> float:
    """The least mean SNR at which segment i is decoded from the gain t_i on (the power identity).

    It is the sum over i of (2^C_i - 2^C_(i-1)) / t_i. The thresholds must not decrease.

    >>> round(snr_of_thresholds((1, 2), (1.0, 1.0)), 9)  # one message of 3 bit/s/Hz: 2^3 - 1
    7.0
    """
    needed = np.asarray(thresholds, dtype=np.float64)
    if len(needed) != len(rates) or (needed <= 0).any() or (np.diff(needed) < 0).any():
        raise RequestError("give one positive threshold per segment, none below the one before it")
    return float((_steps(rates) / needed).sum())


def price_of_a_safer_base_db(rates: Sequence[float], factor: float) -> float:
    """Power in dB that buys a base with its threshold divided by `factor`, the others as before.

    >>> round(price_of_a_safer_base_db((1, 2), 2), 2)
    0.58
    """
    steps = _steps(rates)
    return to_db(float(1 + steps[0] / steps.sum() * (factor - 1)))


def break_even(rates: Sequence[float]) -> Floats:
    """[i]: the worth of the model with segments 1..i above which superposition beats one message.

    Around equal thresholds, and with any fading, it does if and only if the worth of some narrower
    model is above its share of the power that one message needs, (2^C_i - 1) / (2^C_S - 1). For two
    segments with values a_1 and a_2 that is a_1 / a_2 > u'_1 / (u'_2 (1 + u'_1)).

    >>> break_even((1, 2)).round(3)
    array([0.143])
    """
    needed = sinr_target(np.cumsum(rates))
    return np.asarray(needed[:-1] / needed[-1])


def ceiling(worth: Sequence[float]) -> float:
    """The factor that no split, rate or fading exceeds over the best single message.

    With w_i the increase of worth by segment i, it is the sum of w_i / worth_i: 2 - omega for two
    segments with a base worth omega.

    >>> round(ceiling((0.9, 1.0)), 3)
    1.1
    """
    values = _checked(worth)
    return float((np.diff(values, prepend=0.0) / values).sum())


def most_favourable_snr(rates: Sequence[float], worth_of_base: float) -> float:
    """The mean SNR at which the base alone and the full model in one message are worth the same.

    Near it superposition gains most: (2^C_2 - 2^C_1) / ln(1 / omega), for two segments.
    """
    if not 0 < worth_of_base < 1:
        raise RequestError("the worth of the base must lie between 0 and 1")
    return float(_steps(rates)[1] / np.log(1 / worth_of_base))


@dataclass(frozen=True)
class Gain:
    """The best split beside the best single message, as the worth expected at the server."""

    superposed: float
    single: float
    split: tuple[float, ...]

    @property
    def share(self) -> float:
        """How much more superposition delivers, as a share; never below zero but for rounding."""
        return self.superposed / self.single - 1


def best_gain(snr: float, rates: Sequence[float], worth: Sequence[float]) -> Gain:
    """The largest expected worth of what arrives, with a free split, and with one message.

    Args:
        snr: Mean ratio P / c, linear.
        rates: [segment] bit/s/Hz over the whole airtime.
        worth: [segment] of the model with segments 1..i; 1 for the full model.

    >>> round(best_gain(most_favourable_snr((1, 2), 0.8), (1, 2), (0.8, 1.0)).share, 3)
    0.13
    """
    values = _checked(worth)
    added = np.diff(values, prepend=0.0)
    sums = sinr_target(np.cumsum(rates))
    single = float((values * np.exp(-sums / snr)).max())

    def arrives(split: tuple[float, ...]) -> Floats:
        return Rayleigh().survival(Superposition(tuple(rates), split).thresholds(1 / snr))

    split = best_split(arrives, rates, delivered(added.tolist()))
    return Gain(float(added @ arrives(split)), single, split)


def largest_gain(snr: float, rates: Sequence[float]) -> tuple[float, float]:
    """The largest share that two segments gain at this SNR, and the base's worth that allows it.

    It is largest where the base alone is worth as much as the full model in one message, that is
    where omega is the ratio of their probabilities to arrive.
    """
    base, full = np.exp(-sinr_target(np.cumsum(rates)) / snr)
    worth_of_base = float(full / base)
    return best_gain(snr, rates, (worth_of_base, 1.0)).share, worth_of_base


def _steps(rates: Sequence[float]) -> Floats:
    """2^C_i - 2^C_(i-1)."""
    return np.diff(sinr_target(np.cumsum(rates)), prepend=0.0)


def _checked(worth: Sequence[float]) -> Floats:
    values = np.asarray(worth, dtype=np.float64)
    if values[0] <= 0 or (np.diff(values) < 0).any() or values[-1] != 1:
        raise RequestError(
            "the worth of the models must be positive, not decrease, and end with 1, the full model"
        )
    return values
