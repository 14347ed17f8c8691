"""Decoding on frequency-selective links at many noise powers, for curves and maps.

To simulate every noise power anew would take minutes. In every coding SINR(x) = x a / (1 + x b), so
the mean capacity of a message over the band is

    mean_f ln(1 + SINR(x g(f))) = F(x (a + b)) - F(x b),    F(y) = mean_f ln(1 + y g(f)),

and F depends on the link alone. It is computed at steps of `STEP_DB`; cubic interpolation between
them errs by less than 1e-6.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from slimfl.radio.coding import Coding
from slimfl.radio.decoders import Decoder
from slimfl.radio.effective import at_effective_sinr, sinr_slopes
from slimfl.radio.fading.none import NoFading
from slimfl.radio.fading.shadowing import Shadowed
from slimfl.radio.fading.tdl import TappedDelayLine
from slimfl.radio.superposition import Floats

#: What lies on the whole band.
Shadow = NoFading | Shadowed

STEP_DB = 0.5
#: Ratios beyond these limits decode everything or nothing, and would overflow.
LEAST_SNR, MOST_SNR = 1e-25, 1e25
#: Links at once: their subcarriers fit into the cache.
CHUNK = 1024
#: Number of factors whose product still fits into a floating-point number.
FACTORS = 4


class SimulatedLinks:
    """The links behind simulated probabilities: a profile, and a shadow on the whole band."""

    def __init__(self, profile: TappedDelayLine, shadow: Shadow, count: int) -> None:
        self.count = count
        self._shadow, self._over_band = shadow.gains(0, 0, count), simulated_gains(profile, count)
        self._columns: dict[int, Floats] = {}

    def probabilities(
        self, decoder: Decoder, coding: Coding, bits: Sequence[float], noise_to_power: Floats
    ) -> Floats | None:
        """[noise, message]: the share of links that decode a message and all before it."""
        found = []
        slopes = sinr_slopes(coding)
        for snr in np.clip(1 / noise_to_power, LEAST_SNR, MOST_SNR).tolist():
            capacity = [self._capacity(snr * (a + b)) - self._capacity(snr * b) for a, b in slopes]
            sinr = np.expm1(np.stack(capacity, axis=-1))
            known = at_effective_sinr(decoder, coding, bits, sinr)
            if known is None:
                return None
            found.append(known.mean(axis=0))
        return np.stack(found)

    def _capacity(self, snr: float) -> Floats:
        """[link]: F, interpolated."""
        if snr <= 0:
            return np.zeros(self.count)
        place = 10 * np.log10(snr) / STEP_DB
        below = int(np.floor(place))
        t = place - below
        weights = (
            -t * (t - 1) * (t - 2) / 6,
            (t + 1) * (t - 1) * (t - 2) / 2,
            -(t + 1) * t * (t - 2) / 2,
            (t + 1) * t * (t - 1) / 6,
        )
        parts = (w * self._column(below + k) for k, w in zip((-1, 0, 1, 2), weights, strict=True))
        return np.asarray(sum(parts))

    def _column(self, step: int) -> Floats:
        """[link]: F at a step."""
        if step not in self._columns:
            snr, found = 10 ** (step * STEP_DB / 10), np.zeros(self.count)
            for begin in range(0, self.count, CHUNK):
                rows = slice(begin, begin + CHUNK)
                terms = 1 + (snr * self._shadow[rows]) * self._over_band[rows].T
                for first in range(0, len(terms), FACTORS):  # one logarithm for some factors
                    found[rows] += np.log(terms[first : first + FACTORS].prod(axis=0))
            self._columns[step] = found / self._over_band.shape[1]
        return self._columns[step]


@lru_cache(maxsize=2)
def simulated_links(profile: TappedDelayLine, shadow: Shadow, count: int) -> SimulatedLinks:
    """The same links again, with what is known of them."""
    return SimulatedLinks(profile, shadow, count)


@lru_cache(maxsize=2)
def simulated_gains(profile: TappedDelayLine, count: int) -> Floats:
    """[link, subcarrier]: without a shadow."""
    return profile.over_band(0, 0, count)
