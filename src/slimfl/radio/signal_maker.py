"""The signal of every device: one split for all, or one per mean gain.

Devices that send the same signal share one `Signal` object, so that a channel can receive them
together. For splits per device, c / P is rounded to steps of `STEP_DB`, so a million devices have
only a few hundred signals.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio.signals import Messages, Signal, oddities, segment_rates, signal
from slimfl.radio.split_per_device import (
    STEP_DB,
    Crowd,
    bound_weights,
    first_outage_split,
    weighted_split,
)
from slimfl.radio.superposition import Floats, Superposition


class SignalMaker:
    """Builds signals and caches them."""

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
        """Compute the weights for splits per device, from all devices or from segment sizes."""
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
            made = self._with_own_split(made, 10 ** (step * STEP_DB / 10))
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


def _steps(noise_to_power: Floats) -> NDArray[np.int64]:
    return np.rint(10 / STEP_DB * np.log10(noise_to_power)).astype(np.int64)


def _crowds(population: Population, noise_to_power: Floats) -> list[Crowd]:
    """The devices grouped by what they can send and by their gain."""
    steps, capable = _steps(noise_to_power), np.asarray(population.max_width)
    low = int(steps.min(initial=0))
    keys = (steps - low) * (int(capable.max(initial=0)) + 1) + capable
    _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    reached = np.bincount(where, weights=population.availability)
    return [
        Crowd(10 ** (step * STEP_DB / 10), widest + 1, weight)
        for step, widest, weight in zip(
            steps[first].tolist(), capable[first].tolist(), reached.tolist(), strict=True
        )
        if weight > 0
    ]
