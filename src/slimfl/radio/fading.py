"""How the power gain of a link varies: small-scale fading, shadowing, and their memory.

Gains are a function of (seed, round, device), so two methods with the same seed, and a resumed run,
see the same channel. A model is a class with `gains` and `survival`; those with `from_scattering`
and `sum_survival` too (`GaussianFading`) can be correlated from round to round, shadowed and
combined over several attempts. Profiles over a band are in `selective`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.rng import generator
from slimfl.units import from_db

Floats = NDArray[np.float64]
Gains = Floats
State = dict[str, NDArray[Any]]

SPEED_OF_LIGHT_M_S = 299_792_458.0


class Fading(Protocol):
    """The distribution of the power gain g, with mean 1."""

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """The gains of devices 0 to `devices` - 1 in a round.

        Args:
            seed: The experiment's.
            round: Number of the round.
            devices: How many; device k's gain must not depend on it.
        """

    def survival(self, threshold: Floats) -> Floats:
        """Pr(g >= threshold)."""


@runtime_checkable
class GaussianFading(Fading, Protocol):
    """A fading model derived from complex Gaussian scattering, as all built-in ones are."""

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """From new scattering in every round."""
        return self.from_scattering(scattering(seed, round, devices))

    def survival(self, threshold: Floats) -> Floats:
        """That of one gain."""
        return self.sum_survival(threshold, 1)

    def from_scattering(self, scattering: Floats) -> Gains:
        """Gains from [device, 2]: real and imaginary parts of CN(0, 1) numbers."""

    def sum_survival(self, threshold: Floats, copies: int) -> Floats:
        """Pr(g_1 + ... + g_copies >= threshold) for independent gains: chase combining."""


def scattering(seed: int, round: int, devices: int, purpose: str = "fading") -> Floats:
    """[device, 2]: CN(0, 1) numbers; row k does not depend on the number of devices."""
    drawn = generator(seed, purpose, round).standard_normal((devices, 2))
    drawn *= np.sqrt(0.5)
    return drawn


def _in_range(name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter outside its range, or NaN."""
    if not low <= value <= high:
        raise RequestError(f"{name} must be from {low:g} to {high:g}, not {value:g}")


@dataclass(frozen=True)
class NoFading(GaussianFading):
    """g = 1 in every round: additive white Gaussian noise alone."""

    def from_scattering(self, scattering: Floats) -> Gains:
        """Ones."""
        return np.ones(len(scattering))

    def sum_survival(self, threshold: Floats, copies: int) -> Floats:
        """1 up to the number of copies."""
        return (np.asarray(threshold) <= copies).astype(np.float64)


@dataclass(frozen=True)
class Rayleigh(GaussianFading):
    """No line of sight, many scatterers (the paper's): g ~ Exp(1), new in every round."""

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """Inverse-transform draws, so that device k's gain does not depend on the others."""
        uniform = generator(seed, "fading", round).random(devices)
        np.log1p(np.negative(uniform, out=uniform), out=uniform)
        return np.negative(uniform, out=uniform)

    def survival(self, threshold: Floats) -> Floats:
        """exp(-threshold)."""
        return np.exp(-np.asarray(threshold, dtype=np.float64))

    def from_scattering(self, scattering: Floats) -> Gains:
        """The power of the scattered waves."""
        return np.asarray(np.einsum("ij,ij->i", scattering, scattering))

    def sum_survival(self, threshold: Floats, copies: int) -> Floats:
        """A sum of exponentials has Erlang's distribution: Q(copies, threshold)."""
        return np.asarray(scipy.special.gammaincc(copies, np.asarray(threshold, dtype=np.float64)))


@dataclass(frozen=True)
class Rician(GaussianFading):
    """A line of sight beside the scatterers: K times their power; K = 0 is Rayleigh.

    The gain g is the squared magnitude of sqrt(K / (K + 1)) + sqrt(1 / (K + 1)) s with
    s ~ CN(0, 1), so 2 (K + 1) g is non-central chi-square with 2 degrees of freedom and
    non-centrality 2 K, and its survival is Marcum's

        Pr(g >= t) = Q_1(sqrt(2 K), sqrt(2 (K + 1) t))

    (Simon and Alouini, Digital Communication over Fading Channels, 2nd ed., section 2.2.1.2).
    """

    k: float

    def __post_init__(self) -> None:
        _in_range("the K factor", self.k, 0, 1e4)

    def from_scattering(self, scattering: Floats) -> Gains:
        """The phase of the line of sight does not matter, as that of the scattering is uniform."""
        weak = 1 / np.sqrt(self.k + 1)
        real = weak * scattering[:, 0]
        real += np.sqrt(self.k) * weak
        real *= real
        imaginary = weak * scattering[:, 1]
        imaginary *= imaginary
        real += imaginary
        return np.asarray(real)

    def sum_survival(self, threshold: Floats, copies: int) -> Floats:
        """Marcum's Q of order `copies`: degrees of freedom and non-centralities add up."""
        scaled = 2 * (self.k + 1) * np.asarray(threshold, dtype=np.float64)
        return np.asarray(scipy.stats.ncx2.sf(scaled, 2 * copies, 2 * copies * self.k))


@dataclass(frozen=True)
class Nakagami(GaussianFading):
    """The envelope has Nakagami's distribution: g ~ Gamma(m, 1/m), with variance 1 / m.

    m = 1 is Rayleigh, m = 1/2 the one-sided Gaussian, and m to infinity is no fading (Nakagami
    1960; Simon and Alouini, section 2.2.1.4). There is no m below 1/2.
    """

    m: float

    def __post_init__(self) -> None:
        _in_range("Nakagami's m", self.m, 0.5, 1e4)

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """Sequential gamma draws, so that device k's does not depend on the number of devices."""
        drawn = generator(seed, "fading", round).standard_gamma(self.m, devices)
        drawn /= self.m
        return drawn

    def from_scattering(self, scattering: Floats) -> Gains:
        """Maps the exponential power of s to the gamma quantile of the same probability."""
        power = np.einsum("ij,ij->i", scattering, scattering)
        return np.asarray(scipy.special.gammainccinv(self.m, np.exp(-power)) / self.m)

    def sum_survival(self, threshold: Floats, copies: int) -> Floats:
        """Shapes add up."""
        scaled = self.m * np.asarray(threshold, dtype=np.float64)
        return np.asarray(scipy.special.gammaincc(copies * self.m, scaled))


#: Step and range of the integral over a shadow, in standard deviations.
STEP, REACH = 0.01, 8.0
#: Up to this many thresholds are integrated one by one; more are interpolated on a grid.
ONE_BY_ONE = 64
NATURAL_PER_DB = np.log(10) / 10


def shadow(seed: int, round: int, devices: int) -> Floats:
    """Standard normal numbers; the k-th does not depend on the number of devices."""
    return generator(seed, "shadowing", round).standard_normal(devices)


def shadow_gain(normal: Floats, sigma_db: float | Floats) -> Floats:
    """X for standard normal numbers."""
    logs = normal * (NATURAL_PER_DB * np.asarray(sigma_db))
    return np.asarray(np.exp(logs, out=logs))


@dataclass(frozen=True)
class Shadowed(GaussianFading):
    """A fading model times log-normal shadowing X = 10^(N(0, sigma_db) / 10), new in every round.

    The median of X is 1, as in TR 38.901, so its mean is above 1. The survival is an integral over
    one normal variable,

        Pr(g X >= t) = E[ Pr(g >= t / X) ],

    for which the trapezoidal rule has a negligible error. Without fading, it is the normal
    distribution itself.
    """

    fading: GaussianFading
    sigma_db: float

    def __post_init__(self) -> None:
        _in_range("the shadowing deviation in dB", self.sigma_db, 0, 50)

    def gains(self, seed: int, round: int, devices: int) -> Gains:
        """The product."""
        gains = self.fading.gains(seed, round, devices)
        return gains * shadow_gain(shadow(seed, round, devices), self.sigma_db)

    def from_scattering(self, scattering: Floats) -> Gains:
        """The gains without shadowing."""
        return self.fading.from_scattering(scattering)

    def sum_survival(self, threshold: Floats, copies: int) -> Floats:
        """All attempts in a round have the same shadowing."""
        threshold = np.asarray(threshold, dtype=np.float64)
        if self.sigma_db == 0:
            return self.fading.sum_survival(threshold, copies)
        spread = NATURAL_PER_DB * self.sigma_db
        found = np.where(threshold > 0, 0.0, 1.0)
        inside = (threshold > 0) & np.isfinite(threshold)
        logs = np.log(threshold[inside])
        if isinstance(self.fading, NoFading):
            found[inside] = scipy.special.ndtr((np.log(copies) - logs) / spread)
        elif logs.size:
            values, where = np.unique(logs, return_inverse=True)
            found[inside] = self._integrated(values, spread, copies)[where]
        return found

    def _integrated(self, logs: Floats, spread: float, copies: int) -> Floats:
        """The integral at ascending logarithms of the threshold."""
        nodes = np.arange(-REACH, REACH + STEP / 2, STEP)
        weights = np.exp(-(nodes**2) / 2)
        weights /= weights.sum()
        if len(logs) <= ONE_BY_ONE:
            around = np.exp(logs[:, None] - spread * nodes)
            return np.asarray(self.fading.sum_survival(around, copies) @ weights)
        # with thresholds spaced like the nodes, the integral is a convolution
        step = spread * STEP
        grid = np.arange(logs[0] - step, logs[-1] + 2 * step, step)
        reach = len(nodes) // 2
        wide = grid[0] + step * np.arange(-reach, len(grid) + reach)
        survival = self.fading.sum_survival(np.exp(wide), copies)
        between = scipy.interpolate.CubicSpline(grid, np.convolve(survival, weights, "valid"))
        return np.asarray(np.clip(between(logs), 0.0, 1.0))


#: Number of waves per device in Jakes' model.
WAVES = 64
#: Number of devices that are computed at once; bounds the memory.
CHUNK = 1 << 12


def remembered(before: Floats, innovation: Floats, memory: float) -> Floats:
    """memory * before + sqrt(1 - memory^2) * innovation, computed in place of the innovation."""
    new = np.sqrt(1 - memory**2)
    for begin in range(0, len(before), CHUNK):
        rows = slice(begin, begin + CHUNK)
        innovation[rows] *= new
        innovation[rows] += memory * before[rows]
    return innovation


class FadingProcess(Protocol):
    """Complex scattering s with E|s|^2 = 1 that is correlated from round to round."""

    def start(self, seed: int, devices: int) -> State:
        """The state before the first round."""

    def step(self, state: State, seed: int, round: int, devices: int) -> tuple[Floats, State]:
        """The scattering [device, 2] of a round, and the next state.

        Args:
            state: What `start` or the round before returned.
            seed: The experiment's.
            round: Number of the round, from 1.
            devices: How many; device k's scattering must not depend on it.
        """


@dataclass(frozen=True)
class Autoregressive:
    """AR(1), or Gauss-Markov: s' = a s + sqrt(1 - a^2) w with a = `correlation`.

    With a Doppler frequency f_d and rounds that begin T apart, a = J_0(2 pi f_d T): neighbouring
    rounds are correlated as in Clarke's model.
    """

    correlation: float

    def __post_init__(self) -> None:
        _in_range("the correlation", self.correlation, -1, 1)

    def start(self, seed: int, devices: int) -> State:
        """Drawn from the stationary distribution."""
        return {"scattering": scattering(seed, 0, devices)}

    def step(self, state: State, seed: int, round: int, devices: int) -> tuple[Floats, State]:
        """Advance all devices, whoever takes part."""
        before = state["scattering"]
        after = remembered(before, scattering(seed, round, len(before)), self.correlation)
        return after, {"scattering": after}


@dataclass(frozen=True)
class Jakes:
    """N equally strong waves from fixed directions (Clarke 1968, Jakes 1974), without memory.

        s = N^(-1/2) sum_n exp(i (2 pi f_d T cos(alpha_n) round + phi_n))

    with uniform arrival angles alpha_n and phases phi_n for every device. Rounds n apart are
    correlated by J_0(2 pi f_d T n), and their powers by its square. No device is persistently
    better than another. s is Gaussian in the limit of many waves: its power has variance 1 - 1/N.
    """

    cycles_per_round: float
    """f_d T."""

    def __post_init__(self) -> None:
        _in_range("Doppler frequency times round duration", self.cycles_per_round, 0, 1e9)

    def start(self, seed: int, devices: int) -> State:
        """No state."""
        return {}

    def step(self, state: State, seed: int, round: int, devices: int) -> tuple[Floats, State]:
        """Draw the waves again from their key, for some devices at a time."""
        found = np.empty((devices, 2))
        random = generator(seed, "waves")
        for begin in range(0, devices, CHUNK):
            rows = slice(begin, min(begin + CHUNK, devices))
            # one row per device, so that device k's numbers do not depend on how many there are
            drawn = random.random((rows.stop - begin, 2 * WAVES))
            drawn *= 2 * np.pi
            angle, phase = np.split(drawn, 2, axis=1)
            phase += np.cos(angle) * (2 * np.pi * self.cycles_per_round * round)
            found[rows, 0] = np.cos(phase).sum(axis=1)
            found[rows, 1] = np.sin(phase).sum(axis=1)
        found /= np.sqrt(WAVES)
        return found, state


def doppler_correlation(doppler_hz: float, round_s: float) -> float:
    """J_0(2 pi f_d T): the correlation of scattering in rounds that begin T apart.

    >>> round(doppler_correlation(0.1, 1.0), 4)
    0.9037
    """
    return float(scipy.special.j0(2 * np.pi * doppler_hz * round_s))


def doppler_hz(speed_m_s: float, carrier_hz: float) -> float:
    """The largest Doppler shift v f_c / c.

    >>> round(doppler_hz(30 / 3.6, 2e9), 1)
    55.6
    """
    return speed_m_s * carrier_hz / SPEED_OF_LIGHT_M_S


#: Every value of `radio.fading` with a single gain, and how to build its model from the section.
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
