"""The symbols of messages on the air: bits, code blocks, scrambling, QAM, superposition.

Parameters are no random bits, so coded bits are scrambled with a fixed sequence, as in TS 38.211:
all constellation points are then equally likely. A message that ends before the longest one is
followed by symbols that mean nothing and that the receiver knows: the signal keeps its power.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.waveform import sionna_blocks
from slimfl.radio.waveform.code import Code, code_of
from slimfl.radio.waveform.layers import Group
from slimfl.radio.waveform.modem import Modem
from slimfl.radio.waveform.sionna_blocks import Bits, Symbols
from slimfl.rng import generator

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Layer:
    """A message among those that are superposed."""

    code: Code
    number: int
    """Its place, which chooses its scrambling."""
    power: float
    interference: tuple[float, ...]
    """The powers of what is not cancelled."""
    length: int
    """Symbols of the whole signal."""

    def symbols(self, blocks: Bits) -> Symbols:
        """[symbol] of [block, payload bit], with what follows the message."""
        coded = sionna_blocks.encode(self.code, blocks) ^ self.scrambling
        sent = sionna_blocks.map_bits(self.code.modem.bits_per_symbol, coded).reshape(-1)
        return np.concatenate([sent, self.after])

    @property
    def scrambling(self) -> Bits:
        """[block, coded bit]."""
        return _scrambling(self.number, self.code.blocks, self.code.coded_bits)

    @property
    def after(self) -> Symbols:
        """Symbols behind the message."""
        return _filler(
            self.code.modem.bits_per_symbol,
            self.number,
            self.length - self.code.blocks * self.code.symbols,
        )


def layers_of(modem: Modem, group: Group, bits: Sequence[int]) -> list[Layer]:
    """The layers of messages of some bits."""
    codes = [code_of(modem, size, rate) for size, rate in zip(bits, group.rates, strict=True)]
    length = max(code.blocks * code.symbols for code in codes)
    return [
        Layer(code, number, group.powers[number], group.interference(number), length)
        for number, code in enumerate(codes)
    ]


def blocks_of(code: Code, content: Bytes) -> Bits:
    """[block, payload bit] of the bytes of a message."""
    bits = np.zeros(code.blocks * code.payload_bits, np.uint8)
    bits[: 8 * len(content)] = np.unpackbits(content)
    return bits.reshape(code.blocks, code.payload_bits)


def content_of(blocks: Bits, size: int) -> Bytes:
    """The bytes in [block, payload bit]; `size` of them."""
    return np.packbits(blocks.reshape(-1)[: 8 * size])


def superposed(layers: Sequence[Layer], blocks: Sequence[Bits]) -> Symbols:
    """The signal of all layers, of mean power 1 where their powers sum to 1."""
    signal = np.zeros(layers[0].length, np.complex64)
    for layer, each in zip(layers, blocks, strict=True):
        signal += np.float32(np.sqrt(layer.power)) * layer.symbols(each)
    return signal


@lru_cache(maxsize=16)
def _scrambling(number: int, blocks: int, length: int) -> Bits:
    drawn = generator(number, "scrambling").bytes(-(-blocks * length // 8))
    bits = np.unpackbits(np.frombuffer(drawn, np.uint8))[: blocks * length]
    return bits.reshape(blocks, length)


@lru_cache(maxsize=16)
def _filler(bits_per_symbol: int, number: int, count: int) -> Symbols:
    if not count:
        return np.zeros(0, np.complex64)
    bits = generator(number, "filler").integers(2, size=count * bits_per_symbol, dtype=np.uint8)
    return sionna_blocks.map_bits(bits_per_symbol, bits)
