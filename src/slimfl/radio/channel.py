"""The radio link between a device and the server: what arrives, and with which probability.

A channel generates links and receives signals over them. It may keep state from round to round
(correlated fading), knows each device's distance and power, and reports what every upload cost.
"""

from collections.abc import Sequence
from typing import Protocol

from slimfl.devices import Population
from slimfl.radio.links import Floats, Links, Payload, Receptions, State
from slimfl.radio.signals import Signal


class Channel(Protocol):
    """The uplink of all devices."""

    @property
    def needs_payload(self) -> bool:
        """True if `receive` needs the bytes that devices send."""

    def start(self, population: Population, seed: int) -> State:
        """The state before the first round; an empty dictionary if the channel has none."""

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """The links of the devices that take part in a round, and the state after it.

        Called once per round. Randomness is a function of (seed, purpose, round, device).
        """

    def receive(
        self, links: Links, signals: Sequence[Signal], payloads: Sequence[Payload] | None
    ) -> Receptions:
        """What the server receives; `links.gains` are reported values if devices measure them."""

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """[device, message]: the probability that a message and all before it are decoded.

        None if the channel has no closed form; reports then show no expected value.
        """
