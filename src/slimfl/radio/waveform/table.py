"""Decoding probabilities at a known gain, made once from real symbols: `radio.decoder = "table"`.

Given the gain, code blocks fail independently. Message i and all before it are decoded with the
probability of all their blocks,

    prod_{j <= i} success_j(SINR_j)^blocks_j,

where each layer's success per block is a measured curve. For a curve, blocks of random bits are
sent at some ratios around the one where half of them fail, with real QAM symbols as interference
and the layers before it cancelled. Between and beyond the points stands the normal distribution
function that fits the counts best (the finite-length scaling of LDPC codes, Amraoui et al. 2009):
success = Phi((SINR_dB - middle_db) / width_db).

Curves are kept in the user's cache, under the hash of what they were measured with.
"""

import hashlib
import json
import logging
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from slimfl.files import read_json, write_atomically
from slimfl.radio.coding import Coding, Floats
from slimfl.radio.waveform.code import Code, Modem, code_of, groups_of
from slimfl.radio.waveform.sionna_blocks import map_bits
from slimfl.radio.waveform.symbols import Layer, decoded_blocks
from slimfl.rng import generator
from slimfl.units import from_db, to_db

log = logging.getLogger(__name__)

#: Where the middle is searched, how finely, and with how many blocks.
LOWEST_DB, HIGHEST_DB, SEARCHED_DB, SEARCH_BLOCKS = -10.0, 40.0, 0.1, 24
#: Distances from the middle at which blocks are counted.
OFFSETS_DB = (-0.75, -0.5, -0.35, -0.2, -0.1, 0.0, 0.1, 0.2, 0.35, 0.5, 0.75)
#: Narrower than this is not told apart.
NARROWEST_DB = 0.02
#: Blocks that are sent per point of a curve.
BLOCKS = 64
#: A file of a curve is no longer.
MOST_BYTES = 1 << 16


@dataclass(frozen=True)
class BlockCurve:
    """The success of one block."""

    middle_db: float
    """Half of the blocks are decoded at this ratio; infinite where none ever is."""
    width_db: float

    def success(self, sinr: Floats) -> Floats:
        """At signal over interference and noise."""
        with np.errstate(divide="ignore"):
            decibel = to_db(np.asarray(sinr, np.float64))
        return np.asarray(scipy.special.ndtr((decibel - self.middle_db) / self.width_db))


def measure(code: Code, interference: tuple[float, ...], blocks: int, seed: int = 0) -> BlockCurve:
    """The curve of a layer of power 1.

    Args:
        code: Of its blocks.
        interference: The powers of the layers that are not cancelled.
        blocks: How many are sent per point of the curve.
        seed: Of bits and noise.
    """
    limit_db = -to_db(sum(interference)) if interference else np.inf
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


def fitted(points_db: Floats, passed: NDArray[Any], blocks: int) -> BlockCurve:
    """The most likely curve behind counts of blocks.

    Args:
        points_db: [point] signal over interference and noise.
        passed: [point] how many blocks were decoded there,
        blocks: of how many.
    """
    if not passed.any():
        return BlockCurve(float("inf"), 1.0)

    def surprise(parameters: Floats) -> float:
        quantile = (points_db - parameters[0]) / (NARROWEST_DB + np.exp(parameters[1]))
        return float(
            -(
                passed * scipy.special.log_ndtr(quantile)
                + (blocks - passed) * scipy.special.log_ndtr(-quantile)
            ).sum()
        )

    middle = points_db[np.argmin(np.abs(passed - blocks / 2))]
    best = scipy.optimize.minimize(surprise, [middle, np.log(0.2)], method="Nelder-Mead")
    return BlockCurve(float(best.x[0]), float(NARROWEST_DB + np.exp(best.x[1])))


def _passed(layer: Layer, sinr_db: float, blocks: int, seed: int, number: int) -> int:
    """Of some random blocks, those that pass their CRC."""
    random = generator(seed, "waveform curve", number)
    code, interference = layer.code, sum(layer.interference)
    many = replace(layer, code=replace(code, blocks=blocks), length=blocks * code.symbols)
    payload = random.integers(2, size=(blocks, code.payload_bits), dtype=np.uint8)
    noise = max(from_db(-sinr_db) - interference, 0.0)
    received = many.symbols(payload)
    for power in layer.interference:
        bits = random.integers(2, size=many.length * code.modem.bits_per_symbol, dtype=np.uint8)
        received += np.float32(power**0.5) * map_bits(code.modem.bits_per_symbol, bits)
    drawn = random.standard_normal((many.length, 2), np.float32).view(np.complex64)[:, 0]
    received += np.float32((noise / 2) ** 0.5) * drawn
    gains = np.ones(many.length, np.float32)
    _, passed = decoded_blocks(many, received, gains, noise, each_block=True)
    return int(passed.sum())


@lru_cache(maxsize=256)
def curve_of(code: Code, interference: tuple[float, ...]) -> BlockCurve:
    """The curve of a layer: as it was measured before, or measured now."""
    made_with = settings(code, interference)
    name = hashlib.sha256(json.dumps(made_with, sort_keys=True).encode()).hexdigest()[:32]
    path = folder() / f"{name}.json"
    known = _read(path, made_with)
    if known is not None:
        return known
    log.info(
        "measuring a code block of %d bits at rate %.3f: once, up to some minutes",
        code.information_bits,
        code.rate,
    )
    curve = measure(code, interference, BLOCKS)
    document = {"settings": made_with, "middle_db": curve.middle_db, "width_db": curve.width_db}
    if math.isinf(curve.middle_db):
        document["middle_db"] = None
    with suppress(OSError):  # a cache that cannot be written is no reason to stop
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(document, indent=1, sort_keys=True).encode() + b"\n")
    return curve


def settings(code: Code, interference: tuple[float, ...]) -> dict[str, object]:
    """All that a curve depends on; the number of blocks in a message is not part of it."""
    return {
        "bits_per_symbol": code.modem.bits_per_symbol,
        "iterations": code.modem.iterations,
        "payload_bits": code.payload_bits,
        "symbols": code.symbols,
        "interference": [round(power, 9) for power in interference],
        "blocks": [BLOCKS, SEARCH_BLOCKS, *OFFSETS_DB],
        "sionna": _sionna_version(),
    }


def folder() -> Path:
    """Where curves are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slimfl" / "waveform"


def _read(path: Path, made_with: dict[str, object]) -> BlockCurve | None:
    """None where there is no file, or one that does not say what it should."""
    try:
        document = read_json(path, MOST_BYTES)
        if document["settings"] != made_with:
            return None
        middle, width = document["middle_db"], float(document["width_db"])
        curve = BlockCurve(math.inf if middle is None else float(middle), width)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return curve if width > 0 and math.isfinite(width) and not math.isnan(curve.middle_db) else None


def _sionna_version() -> str:
    try:
        return version("sionna-no-rt")
    except PackageNotFoundError:
        return "another"


@dataclass(frozen=True)
class WaveformTable:
    """What real symbols did, without sending any."""

    modem: Modem

    def probabilities(self, coding: Coding, bits: Sequence[float], snr: Floats) -> Floats | None:
        """None where the bits of the messages are not known: all of their blocks must succeed."""
        if not bits:
            return None
        snr = np.asarray(snr, np.float64)
        found, number = [], 0
        for group in groups_of(coding):
            for message, (rate, power) in enumerate(zip(group.rates, group.powers, strict=True)):
                code = code_of(self.modem, int(bits[number]), rate)
                around = group.interference(message)
                curve = curve_of(_one_block(code), tuple(each / power for each in around))
                sinr = snr * power / (1 + snr * sum(around))
                found.append(curve.success(sinr) ** code.blocks)
                number += 1
        return np.asarray(np.cumprod(np.stack(found, axis=-1), axis=-1))


def _one_block(code: Code) -> Code:
    """The same for messages of any length."""
    return replace(code, blocks=1)
