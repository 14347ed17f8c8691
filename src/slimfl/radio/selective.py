"""Frequency-selective links: profiles of 3GPP TR 38.901, decoded at an effective SINR.

A profile is a tapped delay line. Every tap is CN(0, p_l) at its delay; profiles D and E begin with
a line of sight. Over the band::

    H(f) = sum_l h_l exp(-2 pi i f tau_l),    g(f) = |H(f)|^2 with mean 1,

so that taps far apart give gains that differ from subcarrier to subcarrier. Delays are in units of
the delay spread: with a spread of 0 the profiles are Rayleigh and (D, E) Rician fading.

A codeword over all subcarriers carries their mean mutual information, so it meets the flat link of
the same capacity,

    log2(1 + SINR_eff) = mean_f log2(1 + SINR(f)).

Decoders that are made for one gain (formulas, tables) are asked at the flat ratio that has the
message's effective SINR; real symbols meet the subcarriers themselves.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio.channel import Indices, Links, Signal, State
from slimfl.radio.coding import Coding, Floats, sinr_target
from slimfl.radio.decoders import Decoder, Outage, drawn
from slimfl.radio.fading import Fading
from slimfl.radio.outage import OutageChannel, needed, outage_channel, parts
from slimfl.radio.path_loss import Case
from slimfl.rng import generator
from slimfl.units import from_db, to_db

#: Links at once: their subcarriers stay in memory together.
CHUNK = 4096
#: Links behind a simulated probability.
DRAWS = 20_000


@dataclass(frozen=True)
class TappedDelayLine:
    """A profile, as a receiver with some subcarriers sees it."""

    delays_s: tuple[float, ...]
    powers: tuple[float, ...]
    """Of the taps; they sum to 1."""
    in_sight: bool
    """Whether the first tap has a constant magnitude."""
    bandwidth_hz: float
    subcarriers: int

    def over_band(self, seed: int, round: int, devices: int) -> Floats:
        """[device, subcarrier]: power gains; device k has the k-th row for any count.

        Up to rounding: libraries choose the order of a product's sums by its shape.
        """
        drawn = generator(seed, "taps", round).standard_normal((devices, len(self.powers), 2))
        taps = np.sqrt(0.5) * drawn.view(np.complex128)[:, :, 0]
        if self.in_sight:
            taps[:, 0] = 1.0  # its phase does not matter: those of the others are uniform
        response = taps @ self._waves
        return np.asarray(response.real**2 + response.imag**2)

    @property
    def _waves(self) -> NDArray[np.complex128]:
        """[tap, subcarrier]."""
        centres = (np.arange(self.subcarriers) + 0.5) / self.subcarriers - 0.5
        turns = np.multiply.outer(np.asarray(self.delays_s), centres * self.bandwidth_hz)
        return np.asarray(np.sqrt(self.powers)[:, None] * np.exp(-2j * np.pi * turns))


@lru_cache(maxsize=1)
def profiles() -> dict[str, dict[str, Any]]:
    """Delays and powers of TR 38.901 by the values of `radio.fading`."""
    tables: dict[str, Any] = json.loads(Path(__file__).with_name("tdl.json").read_text())
    return {name: table for name, table in tables.items() if name.startswith("tdl-")}


def build_profile(section: RadioSection) -> TappedDelayLine | None:
    """The profile that `radio.fading` names; None where the link is flat."""
    if not section.frequency_selective:
        return None
    table = profiles()[section.fading]
    powers = from_db(np.array(table["powers_db"]))
    return TappedDelayLine(
        tuple(delay * section.delay_spread_s for delay in table["delays"]),
        tuple((powers / powers.sum()).tolist()),
        table["in_sight"],
        section.bandwidth_hz,
        section.subcarriers,
    )


# --- effective SINR -------------------------------------------------------------------------------


def effective_sinr(coding: Coding, snr: Floats) -> Floats:
    """[..., message] of the signal-to-noise ratios [..., subcarrier] of the whole signal."""
    return np.asarray(np.expm1(np.log1p(coding.sinr(snr)).mean(axis=-2)))


def at_effective_sinr(
    decoder: Decoder, coding: Coding, bits: Sequence[float], sinr: Floats
) -> Floats | None:
    """[..., message]: the probability to decode a message and all before it.

    Args:
        decoder: Made for one gain.
        coding: How the messages share the upload.
        bits: Those of every message; empty if they are not known.
        sinr: [..., message] effective.
    """
    if isinstance(decoder, Outage):
        reached = sinr >= decoder.gap * sinr_target(coding.rates)
        return np.asarray(np.logical_and.accumulate(reached, axis=-1), np.float64)
    with np.errstate(divide="ignore"):  # the flat ratio x with SINR = x a / (1 + x b)
        flat = 1 / np.maximum(coding.powers / sinr - coding.interference, 1e-300)
    columns = []
    for message in range(flat.shape[-1]):
        known = decoder.probabilities(coding, bits, flat[..., message])
        if known is None:
            return None
        columns.append(known[..., message])
    return np.asarray(np.minimum.accumulate(np.stack(columns, axis=-1), axis=-1))


# --- the channel ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class SelectiveLinks(Links):
    """Links with a gain per subcarrier; `gains` has their mean."""

    subcarrier_gains: Floats
    """[device, subcarrier]."""

    @property
    def over_band(self) -> Floats:
        """[device, subcarrier]."""
        return self.subcarrier_gains


@dataclass(frozen=True, kw_only=True)
class SelectiveChannel(OutageChannel):
    """A profile over the links of a channel without fading."""

    profile: TappedDelayLine

    def links(
        self, state: State, round: int, devices: Population, seed: int
    ) -> tuple[Links, State]:
        """A gain per subcarrier."""
        links, state = super().links(state, round, devices, seed)
        count = int(links.ids.max(initial=-1)) + 1
        over_band = self.profile.over_band(seed, round, count)[links.ids] * links.gains[:, None]
        columns = {**vars(links), "gains": over_band.mean(axis=1)}
        return SelectiveLinks(**columns, subcarrier_gains=over_band), state

    def decoded(
        self,
        coding: Coding,
        bits: Sequence[float],
        gains: Floats,
        noise_to_power: Floats,
        uniform: Floats | None,
    ) -> Indices:
        """At the effective SINR of every message; gains are [device, subcarrier]."""
        found = np.zeros(len(gains), np.int64)
        ratios = np.broadcast_to(noise_to_power, len(gains))[:, None]
        draws = np.full(len(gains), 0.5) if uniform is None else uniform  # certain: 0 or 1
        for begin in range(0, len(gains), CHUNK):
            rows = slice(begin, begin + CHUNK)
            sinr = effective_sinr(coding, gains[rows] / ratios[rows])
            known = needed(at_effective_sinr(self.decoder, coding, bits, sinr))
            found[rows] = drawn(known, draws[rows])
        return found

    def probabilities(self, devices: Population, signal: Signal) -> Floats | None:
        """By simulation; None where devices are at different distances, which would take long."""
        if len(np.unique(devices.distance_m)) > 1:
            return None
        return super().probabilities(devices, signal)

    def _averaged(self, case: Case, signal: Signal, noise_to_power: Floats) -> Floats | None:
        """[c / P, message]: over simulated links, by interpolation."""
        links = SimulatedLinks.of(self.profile, self._shadowed(case))  # type: ignore[arg-type]
        ratios, where = np.unique(noise_to_power, return_inverse=True)
        found = links.probabilities(self.decoder, signal.coding, signal.message_bits, ratios)
        return None if found is None else found[where]


def channel_alone(section: RadioSection) -> OutageChannel:
    """The channel of the `radio` section for devices that send alone, flat or over a band."""
    profile = build_profile(section)
    if profile is None:
        return outage_channel(section)
    return SelectiveChannel(**parts(section), profile=profile)


# --- at many noise powers, for curves and maps ----------------------------------------------------

#: Step of the interpolation.
STEP_DB = 0.5
#: Ratios beyond these limits decode everything or nothing, and would overflow.
LEAST_SNR, MOST_SNR = 1e-25, 1e25
#: Links at once: their subcarriers fit into the cache.
CACHED = 1024
#: Number of factors whose product still fits into a floating-point number.
FACTORS = 4


class SimulatedLinks:
    """The links behind simulated probabilities: a profile, and a shadow on the whole band.

    To simulate every noise power anew would take minutes. In every coding SINR(x) = x a / (1 + x
    b), so the mean capacity of a message over the band is

        mean_f ln(1 + SINR(x g(f))) = F(x (a + b)) - F(x b),    F(y) = mean_f ln(1 + y g(f)),

    and F depends on the link alone. It is computed at steps of `STEP_DB`; cubic interpolation
    between them errs by less than 1e-6.
    """

    def __init__(self, profile: TappedDelayLine, shadow: Fading, count: int = DRAWS) -> None:
        self.count = count
        self._shadow, self._over_band = shadow.gains(0, 0, count), profile.over_band(0, 0, count)
        self._columns: dict[int, Floats] = {}

    @classmethod
    @lru_cache(maxsize=2)
    def of(cls, profile: TappedDelayLine, shadow: Fading) -> "SimulatedLinks":
        """The same links again, with what is known of them."""
        return cls(profile, shadow)

    def probabilities(
        self, decoder: Decoder, coding: Coding, bits: Sequence[float], noise_to_power: Floats
    ) -> Floats | None:
        """[noise, message]: the share of links that decode a message and all before it.

        Args:
            decoder: Made for one gain.
            coding: How the messages share the upload.
            bits: Those of every message; empty if they are not known.
            noise_to_power: [noise] c / P.
        """
        found = []
        slopes = list(zip(coding.powers.tolist(), coding.interference.tolist(), strict=True))
        for snr in np.clip(1 / noise_to_power, LEAST_SNR, MOST_SNR).tolist():
            capacity = [self._capacity(snr * (a + b)) - self._capacity(snr * b) for a, b in slopes]
            sinr = np.expm1(np.stack(capacity, axis=-1))
            known = at_effective_sinr(decoder, coding, bits, sinr)
            if known is None:
                return None
            found.append(known.mean(axis=0))
        return np.stack(found)

    def _capacity(self, snr: float) -> Floats:
        """[link]: F, interpolated."""
        if snr <= 0:
            return np.zeros(self.count)
        place = to_db(snr) / STEP_DB
        below = int(np.floor(place))
        t = place - below
        weights = (
            -t * (t - 1) * (t - 2) / 6,
            (t + 1) * (t - 1) * (t - 2) / 2,
            -(t + 1) * t * (t - 2) / 2,
            (t + 1) * t * (t - 1) / 6,
        )
        columns = (self._column(below + k) for k in (-1, 0, 1, 2))
        return np.asarray(sum(w * column for column, w in zip(columns, weights, strict=True)))

    def _column(self, step: int) -> Floats:
        """[link]: F at a step."""
        if step not in self._columns:
            snr, found = from_db(step * STEP_DB), np.zeros(self.count)
            for begin in range(0, self.count, CACHED):
                rows = slice(begin, begin + CACHED)
                terms = 1 + (snr * self._shadow[rows]) * self._over_band[rows].T
                for first in range(0, len(terms), FACTORS):  # one logarithm for some factors
                    found[rows] += np.log(terms[first : first + FACTORS].prod(axis=0))
            self._columns[step] = found / self._over_band.shape[1]
        return self._columns[step]
