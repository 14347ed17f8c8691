"""Which messages are on the air together, at which powers: from a coding to superposed layers.

Powers are shares of the transmit power. Superposed messages are one group. Messages in turn are
groups of one, each with its own power.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from slimfl.errors import RequestError
from slimfl.radio.coding import Coding
from slimfl.radio.orthogonal import InTurnAtLowerPower, InTurnInShorterTime
from slimfl.radio.superposition import Superposition


@dataclass(frozen=True)
class Group:
    """Messages that are sent at the same time."""

    rates: tuple[float, ...]
    powers: tuple[float, ...]
    residual: float = 0.0
    """Share of a cancelled message's power that stays."""

    def interference(self, message: int) -> tuple[float, ...]:
        """The powers that message i is decoded against, besides noise."""
        left = (self.residual * power for power in self.powers[:message] if self.residual)
        return (*self.powers[message + 1 :], *left)


def groups_of(coding: Coding) -> Sequence[Group]:
    """The groups in the order in which they are decoded."""
    if isinstance(coding, Superposition):
        return [Group(coding.spectral_efficiencies, coding.split, coding.residual)]
    rates = coding.rates.tolist()
    if isinstance(coding, InTurnAtLowerPower):
        return [Group((rate,), (share,)) for rate, share in zip(rates, coding.split, strict=True)]
    if isinstance(coding, InTurnInShorterTime):
        return [Group((rate,), (1.0,)) for rate in rates]
    raise RequestError(
        f"{type(coding).__name__} has no waveform; use superposition or messages in turn"
    )
