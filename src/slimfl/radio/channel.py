"""The radio link between a device and the server: what arrives, and with which probability.

A channel generates links and receives signals over them. It may keep state from round to round
(correlated fading), knows each device's place and power, and reports what every upload cost.
"""

from collections.abc import Sequence
from typing import Protocol

from slimfl.population import Population
from slimfl.radio.links import Floats, Links, Payload, Receptions, State
from slimfl.radio.signals import Signal


class Channel(Protocol):
    """The uplink of all devices."""

    @property
    def needs_payload(self) -> bool:
        """Whether `receive` must be given the bytes that devices send."""

    def start(self, population: Population, seed: int) -> State:
        """What the channel remembers before the first round; an empty dictionary if nothing."""

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """The links of the devices that take part in a round, and the state after it.

        Called once in every round. Randomness is a function of (seed, purpose, round, device).
        """

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """What the server gets; where devices measure, `links.gains` is what they reported."""

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """[device, message]: the probability that a message and all before it are decoded.

        None where the channel has no closed form: then nothing is drawn as expected.
        """
