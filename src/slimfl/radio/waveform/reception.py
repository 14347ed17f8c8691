"""Successive decoding of received symbols, layer by layer.

The receiver knows the gain of every symbol and takes the layers that it has not cancelled for
Gaussian noise of their power. A message is decoded when all of its blocks pass their CRC; it is
then encoded and mapped again and taken off the signal. The first that fails ends it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.waveform import sionna_blocks
from slimfl.radio.waveform.sionna_blocks import Bits, Symbols
from slimfl.radio.waveform.transmission import Layer

Gains = NDArray[np.float32]

#: Blocks decoded at once: few at first, because one failed block ends the message.
FIRST_BLOCKS, MORE_BLOCKS = 4, 48


def successive(
    layers: Sequence[Layer], received: Symbols, gains: Gains, noise: float, residual: float = 0.0
) -> list[Bits]:
    """The blocks of every message that is decoded in succession.

    `received` is sqrt(g) x + n for every symbol, with noise of the given power.
    """
    amplitudes, left, found = np.sqrt(gains), received.copy(), []
    for layer in layers:
        blocks = decoded_blocks(layer, left, gains, noise)
        if blocks is None:
            break
        found.append(blocks)
        cancelled = (1 - residual**0.5) * layer.power**0.5
        left -= np.float32(cancelled) * amplitudes * layer.symbols(blocks)
    return found


def decoded_blocks(layer: Layer, received: Symbols, gains: Gains, noise: float) -> Bits | None:
    """[block, payload bit] of a message, or None as soon as a block fails."""
    code = layer.code
    found, begin = [], 0
    while begin < code.blocks:
        end = min(begin + (FIRST_BLOCKS if not begin else MORE_BLOCKS), code.blocks)
        bits, passed = _decode(layer, received, gains, noise, begin, end)
        if not passed.all():
            return None
        found.append(bits)
        begin = end
    return np.concatenate(found)


def each_block(
    layer: Layer, received: Symbols, gains: Gains, noise: float
) -> tuple[Bits, NDArray[np.bool_]]:
    """[block, payload bit], and which blocks pass their CRC, each by itself."""
    parts = [
        _decode(layer, received, gains, noise, begin, min(begin + MORE_BLOCKS, layer.code.blocks))
        for begin in range(0, layer.code.blocks, MORE_BLOCKS)
    ]
    bits, passed = zip(*parts, strict=True)
    return np.concatenate(bits), np.concatenate(passed)


def _decode(
    layer: Layer, received: Symbols, gains: Gains, noise: float, begin: int, end: int
) -> tuple[Bits, NDArray[np.bool_]]:
    code = layer.code
    symbols = slice(begin * code.symbols, end * code.symbols)
    shape = (end - begin, code.symbols)
    gain = np.broadcast_to(gains, received.shape)[symbols].reshape(shape)
    # a symbol without any gain says nothing: its noise is large, not infinite
    power = np.maximum(gain * np.float32(layer.power), np.float32(1e-12))
    disturbed = (gain * np.float32(sum(layer.interference)) + np.float32(noise)) / power
    equalised = received[symbols].reshape(shape) / np.sqrt(power)
    soft = sionna_blocks.demap(
        code.modem.bits_per_symbol,
        np.ascontiguousarray(equalised, np.complex64),
        np.ascontiguousarray(np.clip(disturbed, 1e-6, 1e12), np.float32),
    )
    flipped = 1 - 2 * layer.scrambling[begin:end].astype(np.float32)
    return sionna_blocks.decode(code, soft * flipped)
