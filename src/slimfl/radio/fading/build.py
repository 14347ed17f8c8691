"""From the `radio` section to a fading model and its process."""

from collections.abc import Callable

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio.fading.model import GaussianFading
from slimfl.radio.fading.nakagami import Nakagami
from slimfl.radio.fading.none import NoFading
from slimfl.radio.fading.process import (
    Autoregressive,
    FadingProcess,
    Jakes,
    doppler_correlation,
)
from slimfl.radio.fading.rayleigh import Rayleigh
from slimfl.radio.fading.rician import Rician
from slimfl.radio.units import from_db

#: Every value of `radio.fading`, and how to build its model from the section.
FADING: dict[str, Callable[[RadioSection], GaussianFading]] = {
    "rayleigh": lambda _: Rayleigh(),
    "none": lambda _: NoFading(),
    "rician": lambda section: Rician(from_db(section.rician_k_db)),
    "nakagami": lambda section: Nakagami(section.nakagami_m),
}


def build_fading(section: RadioSection) -> GaussianFading:
    """The distribution of the gain without shadowing."""
    if section.fading not in FADING:
        raise RequestError(
            f"radio.fading = {section.fading!r} has no single gain; use slimfl.radio.build_channel "
            "or outage_link"
        )
    return FADING[section.fading](section)


def build_process(section: RadioSection) -> FadingProcess | None:
    """The process of correlated fading; None if rounds are independent."""
    if section.fading_process == "independent":
        return None
    if section.fading_correlation is not None:
        return Autoregressive(section.fading_correlation)
    assert section.doppler_hz is not None
    if section.fading_process == "jakes":
        return Jakes(section.doppler_hz * section.round_s)
    return Autoregressive(doppler_correlation(section.doppler_hz, section.round_s))
