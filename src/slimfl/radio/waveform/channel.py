"""A channel of real symbols: what arrives is what a receiver decodes, bit for bit.

Gains are those that the formula would meet under the same seed. The noise of every attempt is drawn
per (seed, round, device). Further attempts are combined symbol by symbol before they are decoded:
with y_k = sqrt(g_k) x + n_k, the sum of sqrt(g_k) y_k has the gain g_1 + ... + g_n.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimfl.config import RadioSection
from slimfl.population import Population
from slimfl.radio.links import Floats, Links, Payload, Receptions, State
from slimfl.radio.outage import OutageChannel, alike
from slimfl.radio.selective import SelectiveChannel
from slimfl.radio.signals import Signal
from slimfl.radio.waveform.code import code_of
from slimfl.radio.waveform.layers import Group, groups_of
from slimfl.radio.waveform.modem import Modem
from slimfl.radio.waveform.reception import successive
from slimfl.radio.waveform.sionna_blocks import Symbols, require
from slimfl.radio.waveform.transmission import blocks_of, content_of, layers_of, superposed


@dataclass(frozen=True)
class WaveformChannel:
    """Symbols over the links of another channel."""

    formula: OutageChannel | SelectiveChannel
    """Where gains, airtime and energy come from."""
    modem: Modem
    needs_payload: bool = True

    def start(self, population: Population, seed: int) -> State:
        """What the gains remember."""
        return self.formula.start(population, seed)

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """Those that the formula would meet."""
        return self.formula.links(state, round, devices, seed)

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """Every device's messages, sent and decoded."""
        assert payloads is not None, "symbols carry what devices send"
        decoded, used = np.zeros(len(links), np.int64), np.ones(len(links), np.int64)
        arrived: list[Payload] = []
        for row, random in enumerate(links.random("waveform noise")):
            ratio = links.noise_to_power[row]
            attempts = [links.over_band(row) / ratio]
            if links.later_gains is not None:
                attempts += [np.atleast_1d(gain / ratio) for gain in links.later_gains[row]]
            content, used[row] = exchange(self.modem, signals[row], payloads[row], attempts, random)
            decoded[row] = len(content)
            arrived.append(content)
        costs = self.formula.costs(links, alike(signals), used)
        return Receptions(decoded, used, *costs, arrived)

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """None: there is no formula. What cannot be coded is refused before anybody trains."""
        for group, bits in _grouped(signal, signal.message_bits):
            for size, rate in zip(bits or (), group.rates, strict=bool(bits)):
                code_of(self.modem, int(size), rate)
        return None

    def noise_to_power(self, devices: Population) -> Floats:
        """c / P of every device."""
        return self.formula.noise_to_power(devices)


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
    groups = []
    for group, contents in _grouped(signal, payload):
        layers = layers_of(modem, group, [8 * len(each) for each in contents])
        blocks = [blocks_of(layer.code, each) for layer, each in zip(layers, contents, strict=True)]
        groups.append((group, layers, superposed(layers, blocks), contents))
    combined = [np.zeros_like(symbols) for _, _, symbols, _ in groups]
    gains = [np.zeros(len(symbols), np.float32) for _, _, symbols, _ in groups]
    best: Payload = []
    used = 0
    for snr in attempts:
        used += 1
        arrived: Payload = []
        for place, (group, layers, symbols, contents) in enumerate(groups):
            gain = np.resize(snr, len(symbols)).astype(np.float32)
            got = np.sqrt(gain) * symbols + _noise(len(symbols), random)
            combined[place] += np.sqrt(gain) * got
            gains[place] += gain
            if len(arrived) < sum(len(each[3]) for each in groups[:place]):
                continue  # an earlier group was not decoded whole
            scale = np.sqrt(np.maximum(gains[place], np.float32(1e-30)))
            signal_now = (combined[place] / scale).astype(np.complex64)
            found = successive(layers, signal_now, gains[place], 1.0, group.residual)
            arrived += [
                content_of(each, len(content))
                for each, content in zip(found, contents, strict=False)
            ]
        best = max(best, arrived, key=len)
        if len(best) == len(payload):
            break
    return best, used


def _grouped(signal: Signal, values: Sequence) -> list[tuple[Group, Sequence]]:  # type: ignore[type-arg]
    """Every group of messages with its part of some values, one per message."""
    found, begin = [], 0
    for group in groups_of(signal.coding):
        end = begin + len(group.rates)
        found.append((group, values[begin:end]))
        begin = end
    return found


def _noise(count: int, random: np.random.Generator) -> Symbols:
    """Complex noise of power 1."""
    drawn = random.standard_normal((count, 2), np.float32) * np.float32(0.5**0.5)
    return drawn.view(np.complex64)[:, 0]


def waveform_channel(
    section: RadioSection, formula: OutageChannel | SelectiveChannel
) -> WaveformChannel:
    """The channel of `radio.decoder = "waveform"`."""
    require()
    return WaveformChannel(formula, Modem.of(section))
