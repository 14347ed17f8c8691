"""How the power gain of a link varies: small-scale fading, shadowing, and their memory.

One model per file. A model is a class with `gains` and `survival`; see `model.py`.
"""

from slimfl.radio.fading.build import FADING, build_fading, build_process
from slimfl.radio.fading.model import Fading, Gains, GaussianFading, scattering
from slimfl.radio.fading.nakagami import Nakagami
from slimfl.radio.fading.none import NoFading
from slimfl.radio.fading.process import (
    Autoregressive,
    FadingProcess,
    Jakes,
    doppler_correlation,
    doppler_hz,
    remembered,
)
from slimfl.radio.fading.rayleigh import Rayleigh
from slimfl.radio.fading.rician import Rician
from slimfl.radio.fading.shadowing import Shadowed, shadow, shadow_gain
from slimfl.radio.fading.tdl import PROFILES, TappedDelayLine, build_profile

__all__ = [
    "FADING",
    "PROFILES",
    "Autoregressive",
    "Fading",
    "FadingProcess",
    "Gains",
    "GaussianFading",
    "Jakes",
    "Nakagami",
    "NoFading",
    "Rayleigh",
    "Rician",
    "Shadowed",
    "TappedDelayLine",
    "build_fading",
    "build_process",
    "build_profile",
    "doppler_correlation",
    "doppler_hz",
    "remembered",
    "scattering",
    "shadow",
    "shadow_gain",
]
