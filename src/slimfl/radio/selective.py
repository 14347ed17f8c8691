"""Frequency-selective links: TDL profiles, decoded at an effective SINR.

A gain per subcarrier stands in the place of the one gain of a flat link. Decoders that are made for
one gain (formulas, tables) are asked at the flat ratio that has the message's effective SINR; real
symbols meet the subcarriers themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.radio.coding import Coding
from slimfl.radio.decoders import Decoder, drawn
from slimfl.radio.effective import at_effective_sinr, effective_sinr
from slimfl.radio.fading.model import Gains
from slimfl.radio.fading.tdl import TappedDelayLine
from slimfl.radio.link import OutageLink
from slimfl.radio.links import Floats, Links, Payload, Receptions, State
from slimfl.radio.outage import OutageChannel, alike
from slimfl.radio.selective_over_noise import Shadow, simulated_gains, simulated_links
from slimfl.radio.signals import Signal

#: Links at once: their subcarriers stay in memory together.
CHUNK = 4096
#: Links behind a simulated probability.
DRAWS = 20_000


def selective_probabilities(
    decoder: Decoder, coding: Coding, bits: Sequence[float], snr: Floats
) -> Floats | None:
    """[device, message]: a message and all before it, at ratios [device, subcarrier]."""
    return at_effective_sinr(decoder, coding, bits, effective_sinr(coding, snr))


@dataclass(frozen=True)
class SelectiveChannel:
    """A profile over the links of a channel without fading."""

    slow: OutageChannel
    """Path loss, shadowing, the decoder, and what a signal costs."""
    profile: TappedDelayLine
    needs_payload: bool = False

    def start(self, population: Population, seed: int) -> State:
        """What the shadow remembers."""
        return self.slow.start(population, seed)

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """A gain per subcarrier; `gains` has their mean."""
        links, state = self.slow.links(state, round, devices, seed)
        count = int(links.ids.max(initial=-1)) + 1
        over_band = self.profile.over_band(seed, round, count)[links.ids] * links.gains[:, None]
        return replace(links, gains=over_band.mean(axis=1), subcarrier_gains=over_band), state

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """At the effective SINR of every message."""
        assert links.subcarrier_gains is not None
        decoded, kinds = np.zeros(len(links), np.int64), alike(signals)
        draws = links.decoding_draws
        uniform = np.full(len(links), 0.5) if draws is None else draws  # certain: 0 or 1
        for sent, where in kinds:
            for begin in range(0, len(where), CHUNK):
                rows = where[begin : begin + CHUNK]
                snr = links.subcarrier_gains[rows] / links.noise_to_power[rows, None]
                known = selective_probabilities(
                    self.slow.decoder, sent.coding, sent.message_bits, snr
                )
                if known is None:
                    raise RequestError(
                        "the length of the messages is not known; give radio.codeword_symbols"
                    )
                decoded[rows] = drawn(known, uniform[rows])
        used = np.ones_like(decoded)
        return Receptions(decoded, used, *self.costs(links, kinds, used))

    def costs(
        self,
        links: Links,
        kinds: Sequence[tuple[Signal, NDArray[np.int64]]],
        used: NDArray[np.int64],
    ) -> tuple[Floats, Floats]:
        """Airtime and transmit energy, as on a flat link."""
        return self.slow.costs(links, kinds, used)

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """By simulation, for equal devices; None where devices differ."""
        ratio = np.unique(self.noise_to_power(devices))
        if len(ratio) != 1 or len(self.slow.path_loss.cases(devices.distance_m)) > 1:
            return None
        many = Population.alike(
            np.ones(DRAWS, np.int64),
            max_width=0,
            power_dbm=float(devices.power_dbm[0]),
            distance_m=float(devices.distance_m[0]),
        )
        shadow = replace(self.slow, shadowing_correlation=0.0).links({}, 0, many, 0)[0].gains
        found = _mean(
            self.profile, self.slow.decoder, signal.coding, signal.message_bits, shadow / ratio[0]
        )
        return None if found is None else np.broadcast_to(found, (len(devices), len(found)))

    def noise_to_power(self, devices: Population) -> Floats:
        """c / P of every device."""
        return self.slow.noise_to_power(devices)


@dataclass(frozen=True)
class SelectiveLink(OutageLink):
    """One link by itself; `fading` is the shadow, all of the band."""

    profile: TappedDelayLine | None = None

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """[device, subcarrier]."""
        assert self.profile is not None
        slow = self.fading.gains(seed, round, devices)
        return slow[:, None] * self.profile.over_band(seed, round, devices)

    def decoded(
        self,
        signal: Coding,
        gains: Gains,
        uniform: Floats | None = None,
        bits: Sequence[float] = (),
    ) -> NDArray[np.uint8]:
        """By the effective SINR of every message."""
        found = np.zeros(len(gains), np.uint8)
        for begin in range(0, len(gains), CHUNK):
            rows = slice(begin, begin + CHUNK)
            known = selective_probabilities(
                self.decoder, signal, bits, gains[rows] / self.noise_to_power
            )
            assert known is not None
            draws = np.full(len(known), 0.5) if uniform is None else uniform[rows]
            found[rows] = drawn(known, draws)
        return found

    def decoding_probabilities(self, signal: Coding, bits: Sequence[float] = ()) -> Floats:
        """By simulation: there is no closed form."""
        assert self.profile is not None
        shadow = self.fading.gains(0, 0, DRAWS)
        return _known(_mean(self.profile, self.decoder, signal, bits, shadow / self.noise_to_power))

    def over_noise(self, signal: Coding, louder_db: Floats, bits: Sequence[float] = ()) -> Floats:
        """[noise, message]: the same links where the noise is louder by some decibels."""
        assert self.profile is not None
        assert isinstance(self.fading, Shadow)
        links = simulated_links(self.profile, self.fading, DRAWS)
        ratios = self.noise_to_power * 10 ** (np.asarray(louder_db) / 10)
        return _known(links.probabilities(self.decoder, signal, bits, ratios))


def _known(found: Floats | None) -> Floats:
    if found is None:
        raise RequestError(
            "the decoding probabilities depend on the length of the messages; give "
            "radio.codeword_symbols"
        )
    return found


def _mean(
    profile: TappedDelayLine, decoder: Decoder, coding: Coding, bits: Sequence[float], snr: Floats
) -> Floats | None:
    """[message]: over simulated links of the given mean ratios."""
    total = np.zeros(len(coding.split))
    for begin in range(0, len(snr), CHUNK):
        rows = slice(begin, begin + CHUNK)
        ratios = snr[rows, None] * simulated_gains(profile, len(snr))[rows]
        known = selective_probabilities(decoder, coding, bits, ratios)
        if known is None:
            return None
        total += known.sum(axis=0)
    return total / len(snr)
