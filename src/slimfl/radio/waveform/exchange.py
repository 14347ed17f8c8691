"""One device's signal on the air: sent, heard once or several times, decoded.

Further attempts are combined symbol by symbol before they are decoded: with
y_k = sqrt(g_k) x + n_k, the sum of sqrt(g_k) y_k has the gain g_1 + ... + g_n.
"""

from collections.abc import Sequence

import numpy as np

from slimfl.radio.links import Floats, Payload
from slimfl.radio.signals import Signal
from slimfl.radio.waveform.layers import Group, groups_of
from slimfl.radio.waveform.modem import Modem
from slimfl.radio.waveform.reception import successive
from slimfl.radio.waveform.sionna_blocks import Symbols
from slimfl.radio.waveform.transmission import blocks_of, content_of, layers_of, superposed


def exchange(
    modem: Modem,
    signal: Signal,
    payload: Payload,
    attempts: Sequence[Floats],
    random: np.random.Generator,
) -> tuple[Payload, int]:
    """The messages that arrive of one signal, and the attempts that it took.

    An attempt has the signal-to-noise ratio of every subcarrier; symbols take them in turn.
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

    def __init__(self, modem: Modem, group: Group, contents: Payload) -> None:
        self.contents, self.residual = contents, group.residual
        self.layers = layers_of(modem, group, [8 * len(each) for each in contents])
        pairs = zip(self.layers, contents, strict=True)
        self.sent = superposed(self.layers, [blocks_of(layer.code, each) for layer, each in pairs])
        self.heard = np.zeros_like(self.sent)
        self.gains = np.zeros(len(self.sent), np.float32)

    def hear(self, snr: Floats, random: np.random.Generator) -> None:
        """One attempt, added to those before."""
        gain = np.resize(snr, len(self.sent)).astype(np.float32)
        received = np.sqrt(gain) * self.sent + _noise(len(self.sent), random)
        self.heard += np.sqrt(gain) * received
        self.gains += gain

    def decoded(self) -> Payload:
        """The messages that the receiver makes of it."""
        scale = np.sqrt(np.maximum(self.gains, np.float32(1e-30)))
        received = (self.heard / scale).astype(np.complex64)
        found = successive(self.layers, received, self.gains, 1.0, self.residual)
        pairs = zip(found, self.contents, strict=False)
        return [content_of(blocks, len(content)) for blocks, content in pairs]


def _noise(count: int, random: np.random.Generator) -> Symbols:
    """Complex noise of power 1."""
    drawn = random.standard_normal((count, 2), np.float32) * np.float32(0.5**0.5)
    return drawn.view(np.complex64)[:, 0]
