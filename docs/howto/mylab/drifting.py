"""A channel whose fading drifts from round to round, over devices at different distances."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.methods import State
from slimfl.radio import Links, Payload, Receptions, Signal, outage_channel
from slimfl.rng import generator


@dataclass(frozen=True)
class DriftingFading:
    """Rayleigh fading as an AR(1) process: h' = a h + sqrt(1 - a^2) w with complex normal w.

    Checkpoints hold no complex numbers, so the rows of `fading` are real and imaginary part.
    """

    radio: RadioSection
    correlation: float = 0.9
    nearest_m: float = 50.0
    farthest_m: float = 150.0
    needs_payload: bool = False

    def start(self, population: Population, seed: int) -> State:
        """The fading and the distance of every device."""
        count = len(population)
        distance_m = generator(seed, "places").uniform(self.nearest_m, self.farthest_m, count)
        return {"fading": self._draw(seed, 0, count), "distance_m": distance_m}

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """The fading of all devices changes, no matter which of them take part."""
        a, before = self.correlation, state["fading"]
        fading = a * before + np.sqrt(1 - a**2) * self._draw(seed, round, before.shape[1])
        placed = replace(devices, distance_m=state["distance_m"][devices.ids])
        links, _ = outage_channel(self.radio).links({}, round, placed, seed)
        gains = (fading**2).sum(axis=0)[devices.ids]
        return replace(links, gains=gains), {**state, "fading": fading}

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """Decode as in the paper."""
        return outage_channel(self.radio).receive(links, signals, payloads)

    def probabilities(self, devices: Population, signal: Signal) -> None:
        """Distances are drawn when the run starts, so there is no formula before that."""

    def _draw(self, seed: int, round: int, count: int) -> np.ndarray:
        return generator(seed, "drift", round).normal(scale=np.sqrt(0.5), size=(2, count))
