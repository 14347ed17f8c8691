"""Retransmissions with chase combining: the receiver adds up all attempts.

Every attempt repeats the whole signal. Maximum-ratio combining adds the signal-to-noise ratios, so
after n attempts the gain is g_1 + ... + g_n (Chase 1985). Attempts continue until everything is
decoded or the limit is reached; each costs the airtime and the energy of the signal again.

The gain of a further attempt is new (`independent`: time has passed or another frequency is used)
or that of the first (`same`). The shadowing is the same for all attempts.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio.decoders import Reaches
from slimfl.radio.fading import Fading, Gains, GaussianFading, Shadowed, shadow, shadow_gain
from slimfl.radio.superposition import Floats
from slimfl.rng import generator


@dataclass(frozen=True)
class Attempts:
    """How often a signal may be sent, and how its gains are related."""

    most: int = 1
    gain: Literal["independent", "same"] = "independent"

    @classmethod
    def of(cls, section: RadioSection) -> "Attempts":
        """From the `radio` section."""
        return cls(section.max_attempts, section.retransmission_gain)

    def reaches(self, fading: Fading) -> Reaches:
        """Pr(summed gain of all attempts >= threshold)."""
        if self.most == 1:
            return fading.survival
        if self.gain == "same":
            return lambda threshold: fading.survival(threshold / self.most)
        if not isinstance(fading, GaussianFading):
            raise RequestError(
                f"{type(fading).__name__} cannot be combined over independent attempts: it has "
                "no sum_survival"
            )
        return lambda threshold: fading.sum_survival(threshold, self.most)

    def later_gains(self, fading: Fading, first: Gains, seed: int, round: int) -> Floats:
        """[attempt after the first, device]: the gains of devices 0, 1, ... without shadowing."""
        if self.gain == "same":
            return np.broadcast_to(first, (self.most - 1, len(first)))
        keys = generator(seed, "attempts", round).integers(2**62, size=self.most - 1).tolist()
        return np.stack([fading.gains(key, round, len(first)) for key in keys])

    def summed(self, fading: Fading, first: Gains, seed: int, round: int) -> Gains:
        """The summed gain of all attempts."""
        if self.most == 1:
            return first
        if not isinstance(fading, Shadowed) or self.gain == "same":
            return np.asarray(first + self.later_gains(fading, first, seed, round).sum(axis=0))
        factor = shadow_gain(shadow(seed, round, len(first)), fading.sigma_db)
        later = self.later_gains(fading.fading, first, seed, round).sum(axis=0)
        return np.asarray(first + factor * later)
