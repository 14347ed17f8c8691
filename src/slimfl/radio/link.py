"""A single radio link: fading, thresholds, and the decoding probabilities of equation (5).

For calculations and theory, where all devices have the same link. In a federation, a `Channel`
generates the links of every round and receives over them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio.attempts import Attempts
from slimfl.radio.coding import Coding
from slimfl.radio.decoders import Decoder, Outage, averaged, build_decoder, drawn
from slimfl.radio.fading import (
    Fading,
    Gains,
    NoFading,
    Shadowed,
    build_fading,
    build_profile,
)
from slimfl.radio.path_loss import build_path_loss
from slimfl.radio.superposition import Floats
from slimfl.radio.units import from_db
from slimfl.rng import generator


@dataclass(frozen=True)
class OutageLink:
    """Block fading with Shannon thresholds: decoding succeeds if and only if the gain suffices.

    Other decoders and further attempts change this.
    """

    noise_to_power: float
    """c / P = sigma^2 d^beta / P, including any implementation loss."""
    fading: Fading
    decoder: Decoder = field(default_factory=Outage)
    attempts: Attempts = field(default_factory=Attempts)

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """The fading gains of all devices in a round, summed over the attempts."""
        first = self.fading.gains(seed, round, devices)
        return self.attempts.summed(self.fading, first, seed, round)

    def decoded(
        self,
        signal: Coding,
        gains: Gains,
        uniform: Floats | None = None,
        bits: Sequence[float] = (),
    ) -> NDArray[np.uint8]:
        """Number of decoded messages: the thresholds are nested, so it is the number reached.

        A decoder that is not certain needs a uniform number per gain.
        """
        if not self.decoder.certain and uniform is not None:
            known = self.decoder.probabilities(signal, bits, gains / self.noise_to_power)
            if known is not None:
                return drawn(known, uniform).astype(np.uint8)
        thresholds = signal.thresholds(self.noise_to_power)
        count = np.zeros(gains.shape, np.uint8)
        for threshold in thresholds:
            count += gains >= threshold
        return count

    def decoding_probabilities(self, signal: Coding, bits: Sequence[float] = ()) -> Floats:
        """Equation (5), or its equivalent for other decoders and attempts."""
        return self._at(np.asarray(self.noise_to_power), signal, bits)

    def over_noise(self, signal: Coding, louder_db: Floats, bits: Sequence[float] = ()) -> Floats:
        """[noise, message]: the same where the noise is louder than here by some decibels."""
        return self._at(self.noise_to_power * 10 ** (np.asarray(louder_db) / 10), signal, bits)

    def _at(self, ratio: Floats, signal: Coding, bits: Sequence[float]) -> Floats:
        reaches = self.attempts.reaches(self.fading)
        found = averaged(self.decoder, signal, bits, reaches, ratio)
        if found is None:
            raise RequestError(
                "the decoding probabilities depend on the length of the messages, which is known "
                'in a run only; give radio.codeword_symbols with radio.decoder = "normal", or '
                "choose another decoder"
            )
        return found


def decoding_frequencies(
    link: OutageLink, signal: Coding, draws: int, seed: int = 0, bits: Sequence[float] = ()
) -> NDArray[np.float64]:
    """Simulated counterpart of equation (5): how often message i was decoded."""
    at_least = np.zeros(len(signal.split) + 1)
    chunk = 1 << 16  # fits into the cache
    for number, start in enumerate(range(0, draws, chunk)):
        count = min(chunk, draws - start)
        gains = link.gains(seed, number, count)
        uniform = None
        if not link.decoder.certain:
            uniform = generator(seed, "decoding", number).random(count)
        decoded = link.decoded(signal, gains, uniform, bits)
        at_least += np.bincount(decoded, minlength=len(at_least))
    return at_least[::-1].cumsum()[::-1][1:] / draws


def noise_to_power(section: RadioSection) -> float:
    """c / P: noise power times path loss over transmit power."""
    return outage_link(section).noise_to_power


def outage_link(section: RadioSection) -> OutageLink:
    """The link that the `radio` section describes, the same for all devices."""
    links = possible_links(section)
    if len(links) > 1:
        raise RequestError(
            "a single link either has a line of sight or has none; set radio.line_of_sight to "
            "always or never"
        )
    return links[0][1]


def possible_links(section: RadioSection) -> list[tuple[float, OutageLink]]:
    """The links that a device at `distance_m` can have, each with its probability."""
    margin_db = section.noise + section.implementation_loss_db - section.power_dbm
    profile = build_profile(section)
    plain = NoFading() if profile else build_fading(section)
    decoder, attempts = build_decoder(section), Attempts.of(section)
    found = []
    for case in build_path_loss(section).cases(np.array([section.distance_m])):
        sigma_db = case.shadowing_db if section.shadowing_db is None else section.shadowing_db
        fading = Shadowed(plain, sigma_db) if sigma_db else plain
        link = OutageLink(from_db(margin_db) * float(case.loss[0]), fading, decoder, attempts)
        if profile:
            from slimfl.radio.selective import SelectiveLink

            link = SelectiveLink(link.noise_to_power, fading, decoder, attempts, profile)
        found.append((float(case.probability.reshape(-1)[0]), link))
    return found


def section_probabilities(
    section: RadioSection, signal: Coding, bits: Sequence[float] = ()
) -> Floats:
    """The decoding probabilities of a device at `distance_m`, averaged over possible obstacles."""
    links = possible_links(section)
    parts = [weight * link.decoding_probabilities(signal, bits) for weight, link in links]
    return np.asarray(sum(parts[1:], parts[0]))


def probabilities_over_noise(
    section: RadioSection, signal: Coding, noises_dbm: Floats, bits: Sequence[float] = ()
) -> Floats:
    """[noise, message]: the decoding probabilities of one signal at other noise powers."""
    louder_db = np.asarray(noises_dbm) - section.noise
    links = possible_links(section)
    parts = [weight * link.over_noise(signal, louder_db, bits) for weight, link in links]
    return np.asarray(sum(parts[1:], parts[0]))
