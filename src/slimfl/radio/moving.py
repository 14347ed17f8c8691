"""Devices that move: the random-waypoint model (Johnson and Maltz 1996), in the channel's state.

A device starts at its distance from the server, in a random direction. It walks at constant speed
towards a point drawn uniformly in a disc around the server, then towards the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.radio.channel import Channel, Links, Payload, Receptions, Signal, State
from slimfl.radio.coding import Floats
from slimfl.radio.downlink import DOWNLINK
from slimfl.rng import generator

#: Minimum distance to the antenna.
NEAREST_M = 1.0


@dataclass(frozen=True)
class MovingChannel:
    """Wraps a channel for devices that move between rounds."""

    still: Channel
    step_m: float
    """Distance that a device walks per round."""
    radius_m: float | None = None
    """Radius of the disc; the largest initial distance by default."""

    @property
    def needs_payload(self) -> bool:
        """As the wrapped channel."""
        return self.still.needs_payload

    def start(self, population: Population, seed: int) -> State:
        """Positions and targets of all devices."""
        count = int(population.ids.max(initial=-1)) + 1
        distance = np.zeros(count)
        distance[population.ids] = population.distance_m
        radius = float(distance.max(initial=0.0)) if self.radius_m is None else self.radius_m
        angle = 2 * np.pi * generator(seed, "places").random(count)
        place = distance[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        return {
            **self.still.start(population, seed),
            "place_m": place,
            "target_m": _in_disc(seed, 0, count, radius),
            "radius_m": np.array([radius]),
        }

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """All devices walk before every round but the first, and hear where they send from."""
        place, target = state["place_m"], state["target_m"]
        if round % DOWNLINK > 1:
            place, target = self._walk(place, target, float(state["radius_m"][0]), seed, round)
        distance = np.maximum(np.hypot(*place[devices.ids].T), NEAREST_M)
        inner = {name: value for name, value in state.items() if not name.endswith("_m")}
        links, after = self.still.links(inner, round, replace(devices, distance_m=distance), seed)
        kept = {"place_m": place, "target_m": target, "radius_m": state["radius_m"]}
        return links, {**after, **kept}

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """As the wrapped channel: links already include the distance."""
        return self.still.receive(links, signals, payloads)

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """None, as they change with every step."""
        return None

    def noise_to_power(self, devices: Population) -> Floats:
        """c / P of every device where it began; links know where it is."""
        known: Floats = self.still.noise_to_power(devices)  # type: ignore[attr-defined]
        return known

    def _walk(
        self, place: NDArray[Any], target: NDArray[Any], radius: float, seed: int, round: int
    ) -> tuple[Floats, Floats]:
        """One step per device; one that arrives waits for the next round with a new target."""
        way = target - place
        left = np.hypot(way[:, 0], way[:, 1])
        arrived = left <= self.step_m
        share = np.where(arrived, 1.0, self.step_m / np.maximum(left, self.step_m))
        following = _in_disc(seed, round, len(place), radius)
        return place + share[:, None] * way, np.where(arrived[:, None], following, target)


def _in_disc(seed: int, round: int, count: int, radius: float) -> Floats:
    """[device, 2]: uniform in a disc; row k does not depend on the number of devices."""
    drawn = generator(seed, "waypoints", round).random((count, 2))
    distance, angle = radius * np.sqrt(drawn[:, 0]), 2 * np.pi * drawn[:, 1]
    return np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])
