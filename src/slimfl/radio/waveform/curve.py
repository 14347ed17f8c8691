"""How often a code block of one layer is decoded, over its signal to interference and noise.

Blocks of random bits are sent at some ratios around the one where half of them fail, with real QAM
symbols as interference and the layers before it cancelled. Between and beyond the points stands the
normal distribution function that fits the counts best (the finite-length scaling of LDPC codes,
Amraoui et al. 2009): success = Phi((SINR_dB - middle_db) / width_db).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.waveform.code import Code
from slimfl.radio.waveform.reception import each_block
from slimfl.radio.waveform.sionna_blocks import map_bits
from slimfl.radio.waveform.transmission import Layer
from slimfl.rng import generator

Floats = NDArray[np.float64]

#: Where the middle is searched, how finely, and with how many blocks.
LOWEST_DB, HIGHEST_DB, SEARCHED_DB, SEARCH_BLOCKS = -10.0, 40.0, 0.1, 24
#: Distances from the middle at which blocks are counted.
OFFSETS_DB = (-0.75, -0.5, -0.35, -0.2, -0.1, 0.0, 0.1, 0.2, 0.35, 0.5, 0.75)
#: Narrower than this is not told apart.
NARROWEST_DB = 0.02


@dataclass(frozen=True)
class Curve:
    """The success of one block."""

    middle_db: float
    """Half of the blocks are decoded at this ratio; infinite where none ever is."""
    width_db: float

    def success(self, sinr: Floats) -> Floats:
        """At signal over interference and noise."""
        from scipy.special import ndtr

        with np.errstate(divide="ignore"):
            decibel = 10 * np.log10(np.asarray(sinr, np.float64))
        return np.asarray(ndtr((decibel - self.middle_db) / self.width_db))


def measure(code: Code, interference: tuple[float, ...], blocks: int, seed: int = 0) -> Curve:
    """The curve of a layer of power 1 with layers of given powers as interference."""
    limit_db = -10 * np.log10(sum(interference)) if interference else np.inf
    layer = Layer(code, 0, 1.0, interference, code.symbols)
    low, high = LOWEST_DB, min(HIGHEST_DB, limit_db)
    step = 0
    while high - low > SEARCHED_DB:
        step += 1
        middle = (low + high) / 2
        passed = _passed(layer, middle, SEARCH_BLOCKS, seed, step)
        low, high = (low, middle) if 2 * passed >= SEARCH_BLOCKS else (middle, high)
    points = [high + offset for offset in OFFSETS_DB if high + offset <= limit_db]
    counts = [
        _passed(layer, point, blocks, seed, 1000 + number) for number, point in enumerate(points)
    ]
    return fitted(np.array(points), np.array(counts), blocks)


def fitted(points_db: Floats, passed: NDArray[Any], blocks: int) -> Curve:
    """The most likely curve behind counts of blocks."""
    from scipy.optimize import minimize
    from scipy.special import log_ndtr

    if not passed.any():
        return Curve(float("inf"), 1.0)

    def surprise(parameters: Floats) -> float:
        quantile = (points_db - parameters[0]) / (NARROWEST_DB + np.exp(parameters[1]))
        return float(-(passed * log_ndtr(quantile) + (blocks - passed) * log_ndtr(-quantile)).sum())

    middle = points_db[np.argmin(np.abs(passed - blocks / 2))]
    best = minimize(surprise, [middle, np.log(0.2)], method="Nelder-Mead")
    return Curve(float(best.x[0]), float(NARROWEST_DB + np.exp(best.x[1])))


def _passed(layer: Layer, sinr_db: float, blocks: int, seed: int, number: int) -> int:
    """Of some random blocks, those that pass their CRC."""
    random = generator(seed, "waveform curve", number)
    code, interference = layer.code, sum(layer.interference)
    many = Layer(
        Code(code.modem, blocks, code.payload_bits, code.symbols),
        layer.number,
        layer.power,
        layer.interference,
        blocks * code.symbols,
    )
    payload = random.integers(2, size=(blocks, code.payload_bits), dtype=np.uint8)
    noise = max(10 ** (-sinr_db / 10) - interference, 0.0)
    received = many.symbols(payload)
    for power in layer.interference:
        bits = random.integers(2, size=many.length * code.modem.bits_per_symbol, dtype=np.uint8)
        received += np.float32(power**0.5) * map_bits(code.modem.bits_per_symbol, bits)
    drawn = random.standard_normal((many.length, 2), np.float32).view(np.complex64)[:, 0]
    received += np.float32((noise / 2) ** 0.5) * drawn
    gains = np.ones(many.length, np.float32)
    _, passed = each_block(many, received, gains, noise)
    return int(passed.sum())
