"""From the `radio` section to signals: segments grouped into messages, at their rates and shares.

Devices that send the same signal share one `Signal` object, so that a channel can receive them
together. For splits per device, c / P is rounded to steps of `STEP_DB`, so a million devices have
only a few hundred signals.
"""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio.channel import Indices, Messages, Signal, message_bits
from slimfl.radio.coding import (
    Coding,
    Floats,
    InTurnAtLowerPower,
    InTurnInShorterTime,
    Superposition,
)
from slimfl.radio.link import noise_to_power, section_probabilities
from slimfl.radio.splits import (
    STEP_DB,
    Crowd,
    Split,
    best_split,
    bound_weights,
    first_outage_split,
    objective_of,
    optimal_split,
    optimal_split_numeric,
    weighted_split,
)
from slimfl.units import from_db

#: A share of the power below this is none.
NO_POWER = 1e-6


def segment_rates(
    section: RadioSection, segments: int, segment_bits: Sequence[float] = ()
) -> tuple[float, ...]:
    """u/W of every segment in bit/s/Hz.

    With `rates = "by-size"`, the given rate is the mean, and all segments take the same time.
    Segments whose sizes are not given count as equally large.

    Args:
        section: The radio.
        segments: How many there are.
        segment_bits: Their bits, where they are known.
    """
    rate = section.spectral_efficiency
    if isinstance(rate, tuple):
        return rate
    if section.rates == "by-size" and segment_bits:
        return tuple(rate * segments * bits / sum(segment_bits) for bits in segment_bits)
    return (rate,) * segments


def power_split(
    section: RadioSection, rates: tuple[float, ...], bits: tuple[float, ...] = ()
) -> Split:
    """The configured split, or the one that its name refers to.

    Args:
        section: The radio.
        rates: u/W of every message in bit/s/Hz.
        bits: The bits of every message, where they are known.
    """
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
) -> Split:
    """The optimum for the section's own link, under its objective."""
    if _is_the_papers(section):
        return optimal_split_numeric(rates, noise_to_power(section))
    return best_split(
        lambda split: section_probabilities(
            section, build_coding(section, rates, split, bits), bits
        ),
        rates,
        objective_of(section, bits, len(rates)),
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


def build_coding(
    section: RadioSection,
    rates: tuple[float, ...],
    split: Split,
    bits: tuple[float, ...] = (),
) -> Coding:
    """How messages share the upload.

    Args:
        section: The radio.
        rates: u/W of every message in bit/s/Hz.
        split: Every message's share of the power, or of the time.
        bits: The bits of every message; proportional to the rates by default.
    """
    match section.multiplexing:
        case "superposition":
            return Superposition(rates, split, section.residual_interference)
        case "orthogonal-energy":
            return InTurnAtLowerPower(rates, split)
        case "orthogonal-airtime":
            return InTurnInShorterTime(rates, split, bits)


def signal(
    section: RadioSection,
    messages: Messages,
    segments: int,
    segment_bits: tuple[float, ...] = (),
) -> Signal:
    """A signal of messages that carry the given segments, all in the time of one segment.

    A message of several segments takes the sum of their rates: Vanilla FL-1.0x sends at 2u. With as
    many messages as segments the configured split applies; a single message has all the power.

    Args:
        section: The radio.
        messages: The segments of every message.
        segments: How many segments the network has.
        segment_bits: Their bits, where they are known.
    """
    rates = segment_rates(section, segments, segment_bits)
    combined = tuple(sum(rates[s] for s in message) for message in messages)
    bits = message_bits(messages, segment_bits)
    if len(messages) == 1:
        split: Split = (1.0,)
    elif len(messages) == segments:
        split = power_split(section, combined, bits)
    else:
        free = section.model_copy(update={"split": "optimal"})
        split = power_split(free, combined, bits)
    return Signal(messages, build_coding(section, combined, split, bits), segment_bits)


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
        powers = [
            share
            for each in several
            for share, message in zip(each.coding.split, each.messages, strict=True)
            if segment in message
        ]
        if powers and max(powers) < NO_POWER:
            found.append(f"segment {segment + 1} gets no power; give another radio.split")
    return found


class SignalMaker:
    """The signal of every device, made once: one split for all, or one per mean gain."""

    def __init__(
        self, section: RadioSection, segments: int, segment_bits: tuple[float, ...] = ()
    ) -> None:
        self.section, self.segments, self.segment_bits = section, segments, segment_bits
        self.per_device = section.split_for_each_device
        self.weights: tuple[float, ...] = section.split_weights or (1.0,) * segments
        """Weight of every segment in the sum of decoding probabilities that a split maximises."""
        self._made: dict[tuple[Messages, int], Signal] = {}

    def look_at(
        self, population: Population, noise_to_power: Floats, sizes: Sequence[float]
    ) -> None:
        """Compute the weights for splits per device, from all devices or from segment sizes.

        Args:
            population: All devices.
            noise_to_power: [device] c / P.
            sizes: [segment] parameters or bits.
        """
        if not self.per_device:
            return
        before = self.weights
        if self.section.split_objective == "delivered":
            self.weights = tuple(float(size) for size in sizes)
        if self.section.split_objective == "bound":
            rates = segment_rates(self.section, self.segments, self.segment_bits)
            self.weights = bound_weights(rates, _crowds(population, noise_to_power))
        if self.weights != before:
            self._made.clear()

    def signals(self, messages: Iterable[Messages], noise_to_power: Floats) -> list[Signal]:
        """The signal of every device, from its messages and its c / P."""
        if not self.per_device:
            return [self._made.get((each, 0)) or self._make(each, 0) for each in messages]
        pairs = zip(messages, _steps(noise_to_power).tolist(), strict=True)
        return [self._made.get(pair) or self._make(*pair) for pair in pairs]

    def oddities(self, messages: Messages, noise_to_power: Floats) -> list[str]:
        """What turns the signals of all devices into something else than superposed segments."""
        steps = np.unique(_steps(noise_to_power)).tolist() if self.per_device else [0]
        sent = [self._made.get((messages, step)) or self._make(messages, step) for step in steps]
        unsent = {s for m in messages for s in m} - {
            s for each in sent for m in each.messages for s in m
        }
        return [
            f"the split gives segment {segment + 1} no power on any device, so it is never sent; "
            "give another radio.split or radio.split_objective"
            for segment in sorted(unsent)
        ] + oddities(sent)

    def _make(self, messages: Messages, step: int) -> Signal:
        made = signal(self.section, messages, self.segments, self.segment_bits)
        if self.per_device and len(messages) > 1:
            made = self._with_own_split(made, from_db(step * STEP_DB))
        self._made[messages, step] = made
        return made

    def _with_own_split(self, whole: Signal, noise_to_power: float) -> Signal:
        rates = whole.coding.spectral_efficiencies
        if self.section.split_objective == "first-outage":
            shares = first_outage_split(rates, noise_to_power, self.section.first_outage)
        else:
            weights = [sum(self.weights[s] for s in message) for message in whole.messages]
            shares = weighted_split(rates, noise_to_power, weights)
        sent = len(shares)
        coding = Superposition(rates[:sent], shares)
        return Signal(whole.messages[:sent], coding, whole.segment_bits)


def _steps(noise_to_power: Floats) -> Indices:
    """c / P in steps of `STEP_DB`."""
    return np.rint(10 / STEP_DB * np.log10(noise_to_power)).astype(np.int64)


def _crowds(population: Population, noise_to_power: Floats) -> list[Crowd]:
    """The devices grouped by what they can send and by their gain."""
    steps, capable = _steps(noise_to_power), np.asarray(population.max_width)
    low = int(steps.min(initial=0))
    keys = (steps - low) * (int(capable.max(initial=0)) + 1) + capable
    _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    reached = np.bincount(where, weights=population.availability)
    return [
        (from_db(step * STEP_DB), widest + 1, weight)
        for step, widest, weight in zip(
            steps[first].tolist(), capable[first].tolist(), reached.tolist(), strict=True
        )
        if weight > 0
    ]
