"""Two devices that send at the same time: power-domain NOMA in the uplink.

The receiver gets the layers (messages) of both devices, each at its own received power, and decodes
one layer after the other: the stronger of the devices' next layers, with everything not decoded yet
as interference. A layer that fails blocks its device until the other one has made progress.
Removing interference never hurts, so the order of the attempts does not matter unless cancellation
is imperfect.

For one message each under Rayleigh fading there is a closed form, `two_device_probabilities`: with
x and y the received signal-to-noise ratios, of means a and b, device 1 is decoded where

    x >= u_1 (1 + y)    or    y >= u_2 (1 + x) and x >= u_1,

two wedges in the plane whose overlap is a wedge as well. All other cases are simulated.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.fading import Fading
from slimfl.radio.superposition import Floats, Superposition, sinr_target
from slimfl.rng import generator

Counts = NDArray[np.int64]


def decode_pairs(
    first: Superposition, second: Superposition, snr_first: Floats, snr_second: Floats
) -> tuple[Counts, Counts]:
    """Number of decoded messages of both devices, for arrays of g P/c."""
    codings, snr = (first, second), (np.asarray(snr_first), np.asarray(snr_second))
    shares = [_padded(coding.split) for coding in codings]
    targets = [_padded(sinr_target(coding.spectral_efficiencies), np.inf) for coding in codings]
    decoded = np.zeros((2, len(snr[0])), np.int64)
    blocked = np.zeros((2, len(snr[0])), bool)
    rows = np.arange(len(snr[0]))
    # enough steps: each decodes a layer or blocks a device, and a layer unblocks one device
    for _ in range(2 * (len(first.split) + len(second.split)) + 2):
        layer = [snr[k] * shares[k][decoded[k]] for k in (0, 1)]
        strength = np.where(blocked, -1.0, np.stack(layer))
        turn = (strength[1] > strength[0]).astype(np.int64)
        open_ = ~blocked[turn, rows]
        own = np.where(turn == 0, layer[0], layer[1])
        around = _interference(codings, shares, snr, decoded) - own
        target = np.where(turn == 0, targets[0][decoded[0]], targets[1][decoded[1]])
        with np.errstate(invalid="ignore"):
            success = open_ & (own >= target * (1 + around)) & np.isfinite(target)
        decoded[turn[success], rows[success]] += 1
        blocked[1 - turn[success], rows[success]] = False
        failed = open_ & ~success
        blocked[turn[failed], rows[failed]] = True
        if blocked.all():
            break
    return decoded[0], decoded[1]


def _padded(values: Sequence[float] | Floats, end: float = 0.0) -> Floats:
    """Append a layer without power that is never decoded."""
    return np.append(np.asarray(values, np.float64), end)


def _interference(
    codings: tuple[Superposition, Superposition],
    shares: list[Floats],
    snr: tuple[Floats, Floats],
    decoded: Counts,
) -> Floats:
    """Power that is not cancelled, relative to the noise."""
    total = np.zeros(len(snr[0]))
    for k, coding in enumerate(codings):
        before = np.concatenate([[0.0], shares[k].cumsum()])[decoded[k]]
        total += snr[k] * (1 - before + coding.residual * before)
    return total


def two_device_probabilities(
    rates: tuple[float, float], noise_to_power: tuple[float, float]
) -> tuple[float, float, float]:
    """Pr(device 1 decoded), Pr(device 2 decoded), Pr(both), for one message each under Rayleigh.

    `noise_to_power` is c/P of either device; the mean signal-to-noise ratio is its inverse.
    """
    u, v = sinr_target(rates).tolist()
    a, b = (1 / ratio for ratio in noise_to_power)

    def wedge(low_x: float, slope_y: float, low_y: float, slope_x: float) -> float:
        """Pr(x >= low_x + slope_y y and y >= low_y + slope_x x) for exponential x and y."""
        if slope_x * slope_y >= 1:
            return 0.0
        x = (low_x + slope_y * low_y) / (1 - slope_x * slope_y)
        y = low_y + slope_x * x
        # exponentials have no memory: from the wedge's corner on, the plane looks as from the
        # origin
        inside = 1 / (1 + slope_y * b / a) + 1 / (1 + slope_x * a / b) - 1
        return float(np.exp(-x / a - y / b) * inside)

    first_alone = wedge(u, u, 0.0, 0.0)
    first_second = wedge(u, 0.0, v, v)
    second_alone = wedge(0.0, 0.0, v, v)
    second_second = wedge(u, u, v, 0.0)
    both_ways = wedge(u, u, v, v)
    one = first_alone + first_second - both_ways
    other = second_alone + second_second - both_ways
    both = second_second + first_second - both_ways
    return one, other, both


def pair_probabilities(
    codings: tuple[Superposition, Superposition],
    fadings: tuple[Fading, Fading],
    noise_to_power: tuple[float, float],
    draws: int = 100_000,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Simulated probability that message i and all before it are decoded, for both devices."""
    keys = generator(seed, "pair").integers(2**62, size=2).tolist()
    snr = [
        fading.gains(key, 0, draws) / ratio
        for fading, key, ratio in zip(fadings, keys, noise_to_power, strict=True)
    ]
    counts = decode_pairs(*codings, *snr)
    first, second = (
        (count[:, None] > np.arange(len(coding.split))).mean(axis=0)
        for count, coding in zip(counts, codings, strict=True)
    )
    return first, second
