"""The interface of codings: how messages share one upload."""

from collections.abc import Sequence
from typing import Protocol

from slimfl.radio.superposition import Floats


class Coding(Protocol):
    """Superposed messages, or messages one after the other."""

    @property
    def spectral_efficiencies(self) -> tuple[float, ...]:
        """u/W of every message in bit/s/Hz."""

    @property
    def split(self) -> tuple[float, ...]:
        """The share of the power, or of the time, of every message."""

    @property
    def rates(self) -> Floats:
        """The rate of each message while it is on the air, in bit/s/Hz."""

    def thresholds(self, noise_to_power: float | Floats) -> Floats:
        """[..., message]: the gain that each message and all before it need."""

    def sinr(self, snr: Floats) -> Floats:
        """[..., message]: signal over interference and noise, at the signal-to-noise ratio g P/c
        of the whole signal, once those before it are decoded.
        """

    def durations_s(self, bits: Sequence[float], bandwidth_hz: float) -> tuple[float, float]:
        """Duration of the signal, and the time in which full power would spend its energy."""
