"""Two devices that send at the same time, `radio.users_per_slot = 2`: power-domain NOMA.

In every round the devices that take part are paired at random. Both send at the same time over the
whole bandwidth, and the receiver decodes both jointly. A pair shares one slot, so each device
counts for half of the round's airtime, but it is on the air for all of its signal and spends its
full energy. A device without a partner sends alone.

Partners may send differently: devices of unequal width, or with splits of their own. Links that do
not know the partner's signal (`PairedLinks.sent`) take it to be coded like the device's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.radio.channel import Indices, Links, Payload, Receptions, Signal, State
from slimfl.radio.coding import Floats, Superposition, sinr_target
from slimfl.radio.outage import OutageChannel, alike
from slimfl.rng import generator

#: Number of draws for a simulated probability.
DRAWS = 200_000


@dataclass(frozen=True, eq=False, kw_only=True)
class PairedLinks(Links):
    """Links that know who sends at the same time."""

    partner_snr: Floats
    """g P/c of that device; 0 where none does."""
    partner_row: Indices | None
    """Which of these links that device's is; -1 where there is none."""
    partner_signal: NDArray[np.object_] | None = None
    """What that device puts on the air, once it is known; None in its place where none sends."""

    def sent(self, signals: Sequence[Signal]) -> Links:
        """With the partners' signals."""
        assert self.partner_row is not None
        partners = np.empty(len(self), np.object_)
        for row, partner in enumerate(self.partner_row.tolist()):
            partners[row] = None if partner < 0 else signals[partner]
        # rows of a part of these links would mean others
        return replace(self, partner_row=None, partner_signal=partners)


@dataclass(frozen=True)
class PairedChannel(OutageChannel):
    """Devices that send in pairs over links of their own."""

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """Links that include the strength of the partner."""
        links, state = super().links(state, round, devices, seed)
        partner = partners(len(links), seed, round)
        snr = links.gains / links.noise_to_power
        heard = np.where(partner >= 0, snr[partner], 0.0)
        return PairedLinks(**vars(links), partner_snr=heard, partner_row=partner), state

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """Successive decoding of both devices of a pair."""
        assert isinstance(links, PairedLinks)
        single = super().receive(links, signals, payloads)
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
        """By simulation, for identical devices.

        None if devices differ, or if their number is odd, as one then sends alone.
        """
        ratio = np.unique(self.noise_to_power(devices))
        cases = self.path_loss.cases(devices.distance_m)
        if len(ratio) != 1 or len(cases) > 1 or len(devices) % 2:
            return None
        coding = _superposed(signal)
        drawn = [self.memoryless_links(devices, DRAWS, seed, 0).gains for seed in (0, 1)]
        counts, _ = decode_pairs(coding, coding, drawn[0] / ratio[0], drawn[1] / ratio[0])
        found = (counts[:, None] > np.arange(len(coding.split))).mean(axis=0)
        return np.broadcast_to(found, (len(devices), len(found)))


def partners(count: int, seed: int, round: int) -> Indices:
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


def decode_pairs(
    first: Superposition, second: Superposition, snr_first: Floats, snr_second: Floats
) -> tuple[Indices, Indices]:
    """Number of decoded messages of both devices.

    The receiver decodes the stronger of the devices' next layers (messages), with everything not
    decoded yet as interference. A layer that fails blocks its device until the other one has made
    progress. Removing interference never hurts, so the order of the attempts does not matter unless
    cancellation is imperfect.

    Args:
        first: What the first device of every pair sends.
        second: What the other one sends.
        snr_first: [pair] g P/c of the first.
        snr_second: [pair] g P/c of the other.
    """
    codings, snr = (first, second), (np.asarray(snr_first), np.asarray(snr_second))
    shares = [_padded(coding.split) for coding in codings]
    targets = [_padded(sinr_target(coding.spectral_efficiencies), np.inf) for coding in codings]
    decoded = np.zeros((2, len(snr[0])), np.int64)
    blocked = np.zeros((2, len(snr[0])), bool)
    rows = np.arange(len(snr[0]))
    # enough steps: each decodes a layer or blocks a device, and a layer unblocks one device
    for _ in range(2 * (len(first.split) + len(second.split)) + 2):
        layer = [snr[k] * shares[k][decoded[k]] for k in (0, 1)]
        strength = np.where(blocked, -1.0, np.stack(layer))
        turn = (strength[1] > strength[0]).astype(np.int64)
        open_ = ~blocked[turn, rows]
        own = np.where(turn == 0, layer[0], layer[1])
        around = _interference(codings, shares, snr, decoded) - own
        target = np.where(turn == 0, targets[0][decoded[0]], targets[1][decoded[1]])
        with np.errstate(invalid="ignore"):
            success = open_ & (own >= target * (1 + around)) & np.isfinite(target)
        decoded[turn[success], rows[success]] += 1
        blocked[1 - turn[success], rows[success]] = False
        failed = open_ & ~success
        blocked[turn[failed], rows[failed]] = True
        if blocked.all():
            break
    return decoded[0], decoded[1]


def _padded(values: Sequence[float] | Floats, end: float = 0.0) -> Floats:
    """Append a layer without power that is never decoded."""
    return np.append(np.asarray(values, np.float64), end)


def _interference(
    codings: tuple[Superposition, Superposition],
    shares: list[Floats],
    snr: tuple[Floats, Floats],
    decoded: Indices,
) -> Floats:
    """Power that is not cancelled, relative to the noise."""
    total = np.zeros(len(snr[0]))
    for k, coding in enumerate(codings):
        before = np.concatenate([[0.0], shares[k].cumsum()])[decoded[k]]
        total += snr[k] * (1 - before + coding.residual * before)
    return total
