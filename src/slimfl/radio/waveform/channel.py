"""A channel of real symbols: what arrives is what a receiver decodes, bit for bit.

Gains are those that the formula would meet under the same seed. Noise is drawn per (seed, round,
device).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio.channel import Links, Payload, Receptions, Signal, State
from slimfl.radio.coding import Floats
from slimfl.radio.outage import OutageChannel, alike
from slimfl.radio.waveform.code import Modem, code_of, groups_of
from slimfl.radio.waveform.sionna_blocks import require_sionna
from slimfl.radio.waveform.symbols import exchange


@dataclass(frozen=True)
class WaveformChannel:
    """Symbols over the links of another channel."""

    formula: OutageChannel
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
            attempts = [np.atleast_1d(links.over_band[row] / ratio)]
            if links.later_gains is not None:
                attempts += [np.atleast_1d(gain / ratio) for gain in links.later_gains[row]]
            content, used[row] = exchange(self.modem, signals[row], payloads[row], attempts, random)
            decoded[row] = len(content)
            arrived.append(content)
        costs = self.formula.costs(links, alike(signals), used)
        return Receptions(decoded, used, *costs, arrived)

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """None: there is no formula. What cannot be coded is refused before anybody trains."""
        rates = [rate for group in groups_of(signal.coding) for rate in group.rates]
        for size, rate in zip(signal.message_bits, rates, strict=False):  # none where not known
            code_of(self.modem, int(size), rate)
        return None

    def noise_to_power(self, devices: Population) -> Floats:
        """c / P of every device."""
        return self.formula.noise_to_power(devices)


def waveform_channel(section: RadioSection, formula: OutageChannel) -> WaveformChannel:
    """The channel of `radio.decoder = "waveform"`."""
    require_sionna()
    return WaveformChannel(formula, Modem.of(section))
