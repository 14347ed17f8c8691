"""A channel on which devices send in pairs: `radio.users_per_slot = 2`.

In every round the devices that take part are paired at random. Both send at the same time over the
whole bandwidth, and the receiver decodes both jointly (`noma`). A pair shares one slot, so each
device counts for half of the round's airtime, but it is on the air for all of its signal and spends
its full energy. A device without a partner sends alone.

Partners may send differently: devices of unequal width, or with splits of their own. Links that do
not know the partner's signal (`Links.sent`) take it to be coded like the device's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.radio.links import Floats, Links, Payload, Receptions, State
from slimfl.radio.noma import decode_pairs, two_device_probabilities
from slimfl.radio.outage import OutageChannel, alike
from slimfl.radio.signals import Signal
from slimfl.radio.superposition import Superposition
from slimfl.rng import generator

#: Number of draws for a simulated probability.
DRAWS = 200_000


@dataclass(frozen=True)
class PairedChannel:
    """Pairs of devices over links of another channel."""

    alone: OutageChannel
    needs_payload: bool = False

    def start(self, population: Population, seed: int) -> State:
        """The state of the links' channel."""
        return self.alone.start(population, seed)

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """Links that include the strength of the partner."""
        links, state = self.alone.links(state, round, devices, seed)
        partner = partners(len(links), seed, round)
        snr = links.gains / links.noise_to_power
        heard = np.where(partner >= 0, snr[partner], 0.0)
        return replace(links, partner_snr=heard, partner_row=partner), state

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """Successive decoding of both devices of a pair."""
        assert links.partner_snr is not None
        single = self.alone.receive(links, signals, payloads)
        decoded, shared = single.decoded.copy(), links.partner_snr > 0
        snr = links.gains / links.noise_to_power
        for sent, where in alike(signals):
            rows = where[shared[where]]
            theirs = signals if links.partner_signal is None else links.partner_signal
            for partner, which in alike([theirs[row] for row in rows]):
                pairs = rows[which]
                decoded[pairs], _ = decode_pairs(
                    _superposed(sent), _superposed(partner), snr[pairs], links.partner_snr[pairs]
                )
        return replace(single, decoded=decoded, slot_share=np.where(shared, 0.5, 1.0))

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """For identical devices: closed form for one message under Rayleigh, else simulated.

        The closed form knows no shadowing and no residual interference.

        None if devices differ, or if their number is odd, as one then sends alone.
        """
        ratio = np.unique(self.alone.noise_to_power(devices))
        if len(ratio) != 1 or len(self.alone.path_loss.cases(devices.distance_m)) > 1:
            return None
        if len(devices) % 2:
            return None
        coding, c_over_p = _superposed(signal), float(ratio[0])
        if len(coding.split) == 1 and not coding.residual and self._papers_fading:
            rates = coding.spectral_efficiencies * 2
            found = np.array([two_device_probabilities((rates[0], rates[1]), (c_over_p,) * 2)[0]])
        else:
            first, second = (self._drawn_gains(devices, number) for number in (0, 1))
            counts, _ = decode_pairs(coding, coding, first / c_over_p, second / c_over_p)
            found = (counts[:, None] > np.arange(len(coding.split))).mean(axis=0)
        return np.broadcast_to(found, (len(devices), len(found)))

    def noise_to_power(self, devices: Population) -> Floats:
        """c / P of every device, as if it sent alone."""
        return self.alone.noise_to_power(devices)

    @property
    def _papers_fading(self) -> bool:
        from slimfl.radio.fading import Rayleigh

        return self.alone.fading == Rayleigh() and not self.alone.has_shadowing

    def _drawn_gains(self, devices: Population, number: int) -> Floats:
        """Gains of many links with the devices' distribution."""
        many = Population.alike(
            np.ones(DRAWS, np.int64),
            max_width=0,
            power_dbm=float(devices.power_dbm[0]),
            distance_m=float(devices.distance_m[0]),
        )
        memoryless = replace(self.alone, process=None, shadowing_correlation=0.0)
        links, _ = memoryless.links({}, 0, many, number)
        return links.gains


def partners(count: int, seed: int, round: int) -> NDArray[np.int64]:
    """Per row, the row of its partner; -1 for the device without one."""
    order = generator(seed, "pairs", round).permutation(count)
    found = np.full(count, -1, np.int64)
    first, second = order[0 : count - 1 : 2], order[1::2]
    found[first], found[second] = second, first
    return found


def _superposed(sent: Signal) -> Superposition:
    if not isinstance(sent.coding, Superposition):
        raise RequestError('radio.users_per_slot = 2 needs radio.multiplexing = "superposition"')
    return sent.coding
