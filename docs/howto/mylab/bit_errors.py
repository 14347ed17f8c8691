"""A channel that delivers everything but flips some bits of the payload."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.methods import State
from slimfl.radio import Links, Payload, Receptions, Signal, outage_channel


@dataclass(frozen=True)
class BitErrors:
    """Bits of the mantissa flip with a given probability; sign and exponent are protected."""

    radio: RadioSection
    flip_probability: float = 0.01
    needs_payload: bool = True

    def start(self, population: Population, seed: int) -> State:
        """Errors are new in every round."""
        return {}

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """The links of the paper; their gains have no effect here."""
        return outage_channel(self.radio).links(state, round, devices, seed)

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """Every message is decoded, and some of its bits are wrong."""
        assert payloads is not None
        clean = outage_channel(self.radio).receive(links, signals, None)
        everything = np.array([len(sent.messages) for sent in signals])
        damaged = [
            [self._flip(content, random) for content in payload]
            for payload, random in zip(payloads, links.random("bit errors"), strict=True)
        ]
        return replace(clean, decoded=everything, payloads=damaged)

    def probabilities(self, devices: Population, signal: Signal) -> np.ndarray:
        """Everything arrives, with or without errors."""
        return np.ones((len(devices), len(signal.messages)))

    def _flip(self, content: np.ndarray, random: np.random.Generator) -> np.ndarray:
        words = content.view(np.uint32).copy()
        for bit in range(22):
            words ^= (random.random(len(words)) < self.flip_probability).astype(np.uint32) << bit
        return words.view(np.uint8)
