"""The noise power at a receiver that hears a thermal density in a bandwidth."""

from slimfl.radio.units import to_db


def noise_power_dbm(
    density_dbm_hz: float, bandwidth_hz: float, noise_figure_db: float = 0.0
) -> float:
    """N_0 + 10 log10(W) + F.

    >>> round(noise_power_dbm(-174, 20e6, 9), 1)
    -92.0
    """
    return density_dbm_hz + to_db(bandwidth_hz) + noise_figure_db
