"""What is put on the air: segments grouped into messages, messages superposed in one signal."""

from dataclasses import dataclass

from slimfl.config import RadioSection
from slimfl.radio.link import noise_to_power
from slimfl.radio.power import optimal_split, optimal_split_numeric
from slimfl.radio.superposition import Superposition

#: For each message, the (zero-based) segments that it carries.
Messages = tuple[tuple[int, ...], ...]


def segment_rates(section: RadioSection, segments: int) -> tuple[float, ...]:
    """u/W of every segment in bit/s/Hz."""
    rate = section.spectral_efficiency
    return rate if isinstance(rate, tuple) else (rate,) * segments


def power_split(section: RadioSection, rates: tuple[float, ...]) -> tuple[float, ...]:
    """The configured split, or the one that its name stands for."""
    match section.split:
        case "optimal" | "per-device":  # of no device in particular
            return optimal_split(rates)
        case "optimal-numeric":
            return optimal_split_numeric(rates, noise_to_power(section))
        case None:
            paper = len(rates) == 2 and rates[0] == rates[1]
            return (0.8, 0.2) if paper else optimal_split(rates)
        case split:
            return split


@dataclass(frozen=True)
class Signal:
    """One device's upload in one round."""

    messages: Messages
    coding: Superposition
    segment_bits: tuple[float, ...] = ()
    """The bits of every segment of the network."""

    def segments_decoded(self, messages_decoded: int) -> tuple[int, ...]:
        """The segments that arrive with the first messages."""
        return tuple(s for message in self.messages[:messages_decoded] for s in message)

    @property
    def message_bits(self) -> tuple[float, ...]:
        """The bits in every message."""
        return tuple(sum(self.segment_bits[s] for s in message) for message in self.messages)

    def airtime_s(self, bandwidth_hz: float) -> float:
        """How long the signal lasts: until its longest message is through."""
        rates = self.coding.spectral_efficiencies
        return max(
            bits / (rate * bandwidth_hz)
            for bits, rate in zip(self.message_bits, rates, strict=True)
        )


def signal(
    section: RadioSection,
    messages: Messages,
    segments: int,
    segment_bits: tuple[float, ...] = (),
) -> Signal:
    """Messages that each carry the given segments, all in the time of one segment.

    A message of several segments takes the sum of their rates: Vanilla FL-1.0x sends at 2u. With
    as many messages as segments the configured split applies, a single message has all the power.
    """
    rates = segment_rates(section, segments)
    combined = tuple(sum(rates[s] for s in message) for message in messages)
    if len(messages) == 1:
        split: tuple[float, ...] = (1.0,)
    elif len(messages) == segments:
        split = power_split(section, combined)
    else:
        split = optimal_split(combined)
    return Signal(messages, Superposition(combined, split), segment_bits)
