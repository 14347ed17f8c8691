"""Symbols on the air: what is sent, what is received, and how it is decoded.

**Sending.** Parameters are no random bits, so coded bits are scrambled with a fixed sequence, as in
TS 38.211: all constellation points are then equally likely. A message that ends before the longest
one is followed by symbols that mean nothing and that the receiver knows: the signal keeps its
power.

**Receiving.** The receiver knows the gain of every symbol and takes the layers that it has not
cancelled for Gaussian noise of their power. A message is decoded when all of its blocks pass their
CRC; it is then encoded and mapped again and taken off the signal. The first that fails ends it.
Further attempts are combined symbol by symbol before they are decoded: with
y_k = sqrt(g_k) x + n_k, the sum of sqrt(g_k) y_k has the gain g_1 + ... + g_n.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.channel import Payload, Signal
from slimfl.radio.coding import Floats
from slimfl.radio.waveform import sionna_blocks
from slimfl.radio.waveform.code import Code, MessageGroup, Modem, code_of, groups_of
from slimfl.radio.waveform.sionna_blocks import Bits, Symbols
from slimfl.rng import generator

Bytes = NDArray[np.uint8]
Gains = NDArray[np.float32]

#: Blocks decoded at once: few at first, because one failed block ends the message.
FIRST_BLOCKS, MORE_BLOCKS = 4, 48


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


def layers_of(modem: Modem, group: MessageGroup, bits: Sequence[int]) -> list[Layer]:
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


def successive(
    layers: Sequence[Layer], received: Symbols, gains: Gains, residual: float = 0.0
) -> list[Bits]:
    """The blocks of every message that is decoded in succession.

    Args:
        layers: What was sent.
        received: [symbol] sqrt(g) x + n, with noise of power 1.
        gains: [symbol] g.
        residual: Share of a cancelled message's power that stays.
    """
    found = []
    for layer, blocks, passed in decoded_layers(layers, received, gains, residual):
        if not passed.all() or len(blocks) < layer.code.blocks:
            break
        found.append(blocks)
    return found


def decoded_layers(
    layers: Sequence[Layer],
    received: Symbols,
    gains: Gains,
    residual: float = 0.0,
    *,
    each_block: bool = False,
) -> Iterator[tuple[Layer, Bits, NDArray[np.bool_]]]:
    """Every layer, its blocks, and which of these pass their CRC; those before it are cancelled.

    Args:
        layers: What was sent.
        received: [symbol] sqrt(g) x + n, with noise of power 1.
        gains: [symbol] g.
        residual: Share of a cancelled message's power that stays.
        each_block: Whether blocks are worth something without the others of their message.
    """
    amplitudes, left = np.sqrt(gains), received.copy()
    for layer in layers:
        blocks, passed = decoded_blocks(layer, left, gains, 1.0, each_block=each_block)
        yield layer, blocks, passed
        cancelled = (1 - residual**0.5) * layer.power**0.5
        left -= np.float32(cancelled) * amplitudes * layer.symbols(blocks)


def decoded_blocks(
    layer: Layer, received: Symbols, gains: Gains, noise: float, *, each_block: bool = False
) -> tuple[Bits, NDArray[np.bool_]]:
    """[block, payload bit] of a message, and which blocks pass their CRC.

    Args:
        layer: The message.
        received: [symbol].
        gains: [symbol].
        noise: Its power.
        each_block: Whether to go on after a block that fails.
    """
    bits, passed, begin = [], [], 0
    while begin < layer.code.blocks:
        end = min(begin + (FIRST_BLOCKS if not begin else MORE_BLOCKS), layer.code.blocks)
        some, good = _decode(layer, received, gains, noise, begin, end)
        bits.append(some)
        passed.append(good)
        if not each_block and not good.all():
            break
        begin = end
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


def exchange(
    modem: Modem,
    signal: Signal,
    payload: Payload,
    attempts: Sequence[Floats],
    random: np.random.Generator,
) -> tuple[Payload, int]:
    """The messages that arrive of one signal, and the attempts that it took.

    Args:
        modem: The symbols.
        signal: Its messages, rates and powers.
        payload: The bytes of every message.
        attempts: [attempt][subcarrier] signal-to-noise ratios; symbols take them in turn.
        random: Draws the noise.
    """
    if not any(len(each) for each in payload):
        return list(payload), 1  # an update that made no sense: it is refused on arrival
    bursts, begin = [], 0
    for group in groups_of(signal.coding):
        end = begin + len(group.rates)
        bursts.append(Burst(modem, group, payload[begin:end]))
        begin = end
    best: Payload = []
    used = 0
    for snr in attempts:
        used += 1
        arrived: Payload = []
        for burst in bursts:
            burst.hear(snr, random)
        for burst in bursts:
            found = burst.decoded()
            arrived += found
            if len(found) < len(burst.contents):
                break
        best = max(best, arrived, key=len)
        if len(best) == len(payload):
            break
    return best, used


class Burst:
    """Messages that are on the air together, and what the receiver has heard of them so far."""

    def __init__(self, modem: Modem, group: MessageGroup, contents: Payload) -> None:
        self.contents, self.residual = contents, group.residual
        self.layers = layers_of(modem, group, [8 * len(each) for each in contents])
        pairs = zip(self.layers, contents, strict=True)
        self.sent = superposed(self.layers, [blocks_of(layer.code, each) for layer, each in pairs])
        self.heard = np.zeros_like(self.sent)
        self.gains = np.zeros(len(self.sent), np.float32)

    def hear(self, snr: Floats, random: np.random.Generator) -> None:
        """One attempt, added to those before."""
        gain = np.resize(snr, len(self.sent)).astype(np.float32)
        received = np.sqrt(gain) * self.sent + unit_noise(len(self.sent), random)
        self.heard += np.sqrt(gain) * received
        self.gains += gain

    def decoded(self) -> Payload:
        """The messages that the receiver makes of it."""
        scale = np.sqrt(np.maximum(self.gains, np.float32(1e-30)))
        received = (self.heard / scale).astype(np.complex64)
        found = successive(self.layers, received, self.gains, self.residual)
        pairs = zip(found, self.contents, strict=False)
        return [content_of(blocks, len(content)) for blocks, content in pairs]


def unit_noise(count: int, random: np.random.Generator) -> Symbols:
    """Complex noise of power 1."""
    drawn = random.standard_normal((count, 2), np.float32) * np.float32(0.5**0.5)
    return drawn.view(np.complex64)[:, 0]
