"""Signals: segments grouped into messages, messages superposed in one signal."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimfl.experiment import RadioSection
from slimfl.radio.best_split import best_split
from slimfl.radio.coding import Coding
from slimfl.radio.link import noise_to_power, section_probabilities
from slimfl.radio.objectives import Objective
from slimfl.radio.orthogonal import InTurnAtLowerPower, InTurnInShorterTime
from slimfl.radio.power import optimal_split, optimal_split_numeric
from slimfl.radio.superposition import Superposition

#: For each message, the (zero-based) segments that it carries.
Messages = tuple[tuple[int, ...], ...]

#: A share of the power below this is none.
NO_POWER = 1e-6


def segment_rates(
    section: RadioSection, segments: int, segment_bits: Sequence[float] = ()
) -> tuple[float, ...]:
    """u/W of every segment in bit/s/Hz.

    With `rates = "by-size"`, the given rate is the mean, and all segments take the same time.
    Segments whose sizes are not given count as equally large.
    """
    rate = section.spectral_efficiency
    if isinstance(rate, tuple):
        return rate
    if section.rates == "by-size" and segment_bits:
        return tuple(rate * segments * bits / sum(segment_bits) for bits in segment_bits)
    return (rate,) * segments


def power_split(
    section: RadioSection, rates: tuple[float, ...], bits: tuple[float, ...] = ()
) -> tuple[float, ...]:
    """The configured split, or the one that its name refers to."""
    superposed = section.multiplexing == "superposition"
    match section.split:
        case "per-device" | "learned":  # without a particular device
            return optimal_split(rates)
        case "optimal" if superposed and not section.residual_interference:
            return optimal_split(rates)
        case "optimal" | "optimal-numeric":
            return _numeric_split(section, rates, bits)
        case None if not superposed:
            return (1 / len(rates),) * len(rates)
        case None if section.residual_interference:
            return _numeric_split(section, rates, bits)
        case None:
            paper = len(rates) == 2 and rates[0] == rates[1]
            return (0.8, 0.2) if paper else optimal_split(rates)
        case split:
            return split


def _numeric_split(
    section: RadioSection, rates: tuple[float, ...], bits: tuple[float, ...]
) -> tuple[float, ...]:
    """The optimum for the section's own link, under its objective."""
    if _is_the_papers(section):
        return optimal_split_numeric(rates, noise_to_power(section))
    return best_split(
        lambda split: section_probabilities(section, coding(section, rates, split, bits), bits),
        rates,
        Objective.of(section, bits),
        residual=section.residual_interference,
        orthogonal=section.multiplexing != "superposition",
    )


def _is_the_papers(section: RadioSection) -> bool:
    """True if the exact optimum for Rayleigh fading applies."""
    return (
        (section.fading, section.decoder, section.multiplexing, section.split_objective)
        == ("rayleigh", "outage", "superposition", "bound")
        and section.path_loss in ("power-law", "free-space")
        and not section.shadowing_db
        and not section.residual_interference
        and section.max_attempts == 1
    )


def coding(
    section: RadioSection,
    rates: tuple[float, ...],
    split: tuple[float, ...],
    bits: tuple[float, ...] = (),
) -> Coding:
    """How messages of these rates share the upload."""
    match section.multiplexing:
        case "superposition":
            return Superposition(rates, split, section.residual_interference)
        case "orthogonal-energy":
            return InTurnAtLowerPower(rates, split)
        case "orthogonal-airtime":
            return InTurnInShorterTime(rates, split, bits)


@dataclass(frozen=True)
class Signal:
    """One device's upload in one round."""

    messages: Messages
    coding: Coding
    segment_bits: tuple[float, ...] = ()
    """The bits of every segment of the network."""

    def segments_decoded(self, messages_decoded: int) -> tuple[int, ...]:
        """The segments that arrive with the first messages."""
        return tuple(s for message in self.messages[:messages_decoded] for s in message)

    @property
    def message_bits(self) -> tuple[float, ...]:
        """The bits of every message; empty if the segments' bits are not known."""
        return message_bits(self.messages, self.segment_bits)

    def airtime_s(self, bandwidth_hz: float) -> float:
        """Duration of the signal: that of its longest message."""
        return self.coding.durations_s(self.message_bits, bandwidth_hz)[0]

    def full_power_s(self, bandwidth_hz: float) -> float:
        """The time in which full power would spend the signal's energy."""
        return self.coding.durations_s(self.message_bits, bandwidth_hz)[1]


def oddities(signals: Sequence[Signal]) -> list[str]:
    """What turns signals of several messages into something else than superposed segments.

    Only what holds for all signals is said: with a split per device, some may well send less.
    """
    several = [each for each in signals if len(each.messages) > 1]
    count = max((max(map(max, each.messages)) + 1 for each in several or signals), default=0)
    found = []
    for first, second in itertools.pairwise(range(count)):
        needed = [each.coding.thresholds(1.0)[first : second + 1] for each in several]
        if needed and all(len(t) == 2 and np.isclose(t[0], t[1], rtol=1e-6) for t in needed):
            in_turn = not all(isinstance(each.coding, Superposition) for each in several)
            found.append(
                f"segments {first + 1} and {second + 1} have the same threshold: this is one "
                f"message{' at a lower rate' if in_turn else ''}; give another radio.split"
            )
    for segment in range(count):
        powers = [each.coding.split[m] for each in several for m in _with(segment, each.messages)]
        if powers and max(powers) < NO_POWER:
            found.append(f"segment {segment + 1} gets no power; give another radio.split")
    return found


def _with(segment: int, messages: Messages) -> list[int]:
    """The messages that carry a segment."""
    return [number for number, message in enumerate(messages) if segment in message]


def message_bits(messages: Messages, segment_bits: Sequence[float]) -> tuple[float, ...]:
    """The bits in every message."""
    if not segment_bits:
        return ()
    return tuple(sum(segment_bits[s] for s in message) for message in messages)


def signal(
    section: RadioSection,
    messages: Messages,
    segments: int,
    segment_bits: tuple[float, ...] = (),
) -> Signal:
    """A signal of messages that carry the given segments, all in the time of one segment.

    A message of several segments takes the sum of their rates: Vanilla FL-1.0x sends at 2u. With as
    many messages as segments the configured split applies; a single message has all the power.
    """
    rates = segment_rates(section, segments, segment_bits)
    combined = tuple(sum(rates[s] for s in message) for message in messages)
    bits = message_bits(messages, segment_bits)
    if len(messages) == 1:
        split: tuple[float, ...] = (1.0,)
    elif len(messages) == segments:
        split = power_split(section, combined, bits)
    else:
        free = section.model_copy(update={"split": "optimal"})
        split = power_split(free, combined, bits)
    return Signal(messages, coding(section, combined, split, bits), segment_bits)
