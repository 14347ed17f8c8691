"""A single link: a channel with one device, for calculations and theory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio.channel import Links, Signal
from slimfl.radio.coding import Coding, Floats
from slimfl.radio.fading import Fading, Gains, Shadowed
from slimfl.radio.outage import OutageChannel, needed
from slimfl.radio.path_loss import FixedLoss
from slimfl.radio.selective import channel_alone


@dataclass(frozen=True)
class OutageLink:
    """A channel with one device; draws are those of many devices like it."""

    channel: OutageChannel
    device: Population

    @classmethod
    def at(cls, noise_to_power: float, fading: Fading, **parts: Any) -> "OutageLink":
        """A link by itself.

        Args:
            noise_to_power: c / P = sigma^2 d^beta / P, with any implementation loss.
            fading: Of its gain.
            **parts: Others of an `OutageChannel`: `decoder`, `attempts`, `shadowing_db`.
        """
        if isinstance(fading, Shadowed):
            parts, fading = {"shadowing_db": fading.sigma_db, **parts}, fading.fading
        loss = FixedLoss(noise_to_power)
        channel = OutageChannel(0.0, loss, bandwidth_hz=1.0, fading=fading, **parts)
        return cls(channel, _devices(np.zeros(1), 1.0))

    @property
    def noise_to_power(self) -> float:
        """c / P."""
        return float(self.channel.noise_to_power(self.device)[0])

    def links(self, seed: int, round: int, devices: int) -> Links:
        """The links of many such devices, without memory.

        Args:
            seed: The experiment's.
            round: Number of the round.
            devices: How many.
        """
        return self.channel.memoryless_links(self.device, devices, seed, round)

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """Their gains, summed over the attempts; over the band where they differ."""
        return self.channel.summed(self.links(seed, round, devices))

    def decoded(
        self,
        coding: Coding,
        gains: Gains,
        uniform: Floats | None = None,
        bits: Sequence[float] = (),
    ) -> NDArray[np.uint8]:
        """[..., device]: the number of messages decoded at known gains.

        Args:
            coding: How the messages share the upload.
            gains: [..., device] summed over the attempts.
            uniform: [device] a uniform number each, for a decoder that is not certain.
            bits: Those of every message, for a decoder that needs them.
        """
        ratio = np.asarray(self.noise_to_power)
        return self.channel.decoded(coding, bits, gains, ratio, uniform).astype(np.uint8)

    def decoding_probabilities(self, coding: Coding, bits: Sequence[float] = ()) -> Floats:
        """[message]: equation (5), or its equivalent for other decoders and attempts."""
        [known] = needed(self.channel.probabilities(self.device, _signal(coding, bits)))
        return np.asarray(known)


def _devices(power_dbm: Floats, distance_m: float) -> Population:
    """At one place, with powers of their own."""
    alike = Population.alike(
        np.ones(len(power_dbm), np.int64), max_width=0, power_dbm=0.0, distance_m=distance_m
    )
    return replace(alike, power_dbm=power_dbm)


def _signal(coding: Coding, bits: Sequence[float]) -> Signal:
    """One segment per message."""
    return Signal(tuple((i,) for i in range(len(coding.split))), coding, tuple(bits))


def decoding_frequencies(
    link: OutageLink, coding: Coding, draws: int, seed: int = 0, bits: Sequence[float] = ()
) -> Floats:
    """Simulated counterpart of equation (5): how often each message was decoded.

    Args:
        link: Where it is sent.
        coding: How the messages share the upload.
        draws: Number of uploads.
        seed: Of the gains.
        bits: Those of every message, for a decoder that needs them.
    """
    at_least = np.zeros(len(coding.split) + 1)
    chunk = 1 << 16  # fits into the cache
    for number, start in enumerate(range(0, draws, chunk)):
        links = link.links(seed, number, min(chunk, draws - start))
        gains = link.channel.summed(links)
        decoded = link.decoded(coding, gains, links.decoding_draws, bits)
        at_least += np.bincount(decoded, minlength=len(at_least))
    return np.asarray(at_least[::-1].cumsum()[::-1][1:] / draws)


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
    channel = channel_alone(section)
    device = _devices(np.array([section.power_dbm]), section.distance_m)
    found = []
    for case in channel.path_loss.cases(device.distance_m):
        fixed = FixedLoss(float(case.loss[0]), case.shadowing_db)
        link = OutageLink(replace(channel, path_loss=fixed), device)
        found.append((float(case.probability.reshape(-1)[0]), link))
    return found


def section_probabilities(
    section: RadioSection, coding: Coding, bits: Sequence[float] = ()
) -> Floats:
    """[message]: decoding probabilities at `distance_m`, averaged over possible obstacles.

    Args:
        section: The radio.
        coding: How the messages share the upload.
        bits: Those of every message, for a decoder that needs them.
    """
    return np.asarray(probabilities_over_noise(section, coding, np.array([section.noise]), bits)[0])


def probabilities_over_noise(
    section: RadioSection, coding: Coding, noises_dbm: Floats, bits: Sequence[float] = ()
) -> Floats:
    """[noise, message]: the same at other noise powers, as of devices with more or less power.

    Args:
        section: The radio.
        coding: How the messages share the upload.
        noises_dbm: [noise].
        bits: Those of every message, for a decoder that needs them.
    """
    louder_db = np.asarray(noises_dbm) - section.noise
    devices = _devices(section.power_dbm - louder_db, section.distance_m)
    channel: OutageChannel = channel_alone(section)
    return needed(channel.probabilities(devices, _signal(coding, bits)))
