"""Whether a message is decoded at a given signal-to-noise ratio g P/c of the whole signal.

* `Outage`, the paper's: exactly when the gain suffices for Shannon's formula, or for more signal
  over interference and noise than it asks for.
* `NormalApproximation`: codewords of n symbols at rate R fail with probability
  Q((n (C - R) + log2(n) / 2) / sqrt(n V)), C = log2(1 + SINR), V = (1 - (1 + SINR)^-2) log2(e)^2
  (Polyanskiy, Poor and Verdu 2010, for the complex AWGN channel; interference counts as noise).
* `Table`: as measured.

For what is not certain, the receiver compares one uniform number per device and round with the
probabilities. Later messages have smaller ones, so that decoding stays successive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio.coding import Coding, Floats
from slimfl.radio.waveform.code import Modem
from slimfl.radio.waveform.sionna_blocks import require_sionna
from slimfl.radio.waveform.table import WaveformTable
from slimfl.units import from_db, to_db

#: The signal-to-noise ratios over which probabilities are integrated.
LOWEST_DB, HIGHEST_DB, STEP_DB, COARSE_DB = -60.0, 120.0, 0.01, 0.5


class Decoder(Protocol):
    """Decoding at a known gain."""

    def probabilities(self, coding: Coding, bits: Sequence[float], snr: Floats) -> Floats | None:
        """[..., message]: the probability that a message and all before it are decoded.

        None where the bits are needed and not known.

        Args:
            coding: How the messages share the upload.
            bits: Those of every message; empty if they are not known.
            snr: [...] g P/c, in which the probabilities do not fall.
        """


@dataclass(frozen=True)
class Outage:
    """Decoded when the gain suffices: SINR_i >= gap (2^(u_i/W) - 1) for a message and all before.

    Unlike a loss on the noise (`implementation_loss_db`), a gap counts against interference too.
    """

    gap_db: float = 0.0
    """None in the paper."""

    @property
    def gap(self) -> float:
        """As a factor."""
        return from_db(self.gap_db)

    def probabilities(self, coding: Coding, bits: Sequence[float], snr: Floats) -> Floats:
        """A step at every threshold."""
        reached = np.asarray(snr)[..., None] >= coding.thresholds(1.0, self.gap)
        return reached.astype(np.float64)


@dataclass(frozen=True)
class NormalApproximation:
    """Codewords of finite length."""

    codeword_symbols: int | None = None
    """Symbols of one codeword; without it, every message is a single codeword."""

    def probabilities(self, coding: Coding, bits: Sequence[float], snr: Floats) -> Floats | None:
        """Of all codewords of the messages so far."""
        if not bits and self.codeword_symbols is None:
            return None
        rates = coding.rates
        total = np.asarray(bits) / rates if bits else np.full(len(rates), self.codeword_symbols)
        length = total if self.codeword_symbols is None else np.float64(self.codeword_symbols)
        codewords = np.ceil(total / length)
        sinr = coding.sinr(snr)
        capacity = np.log1p(sinr) / np.log(2)
        dispersion = (1 - (1 + sinr) ** -2) / np.log(2) ** 2
        with np.errstate(divide="ignore"):
            quantile = (length * (capacity - rates) + np.log2(length) / 2) / np.sqrt(
                length * dispersion
            )
        succeeded = codewords * scipy.special.log_ndtr(quantile)
        return np.asarray(np.exp(np.cumsum(succeeded, axis=-1)))


@dataclass(frozen=True, eq=False)
class Table:
    """Measured probabilities, linear between the points in dB and constant beyond them."""

    snr_db: Floats
    """Ascending g P/c in dB."""
    decoded: Floats
    """[point, message]: how often a message and all before it were decoded."""

    def __post_init__(self) -> None:
        points, decoded = np.asarray(self.snr_db), np.asarray(self.decoded)
        if decoded.ndim != 2 or points.shape != decoded.shape[:1] or not decoded.size:
            wrong = "needs rows of one signal-to-noise ratio in dB and one probability per message"
        elif not np.isfinite(points).all() or not (np.diff(points) > 0).all():
            wrong = "has signal-to-noise ratios that are not ascending numbers"
        elif not ((decoded >= 0) & (decoded <= 1)).all():
            wrong = "has probabilities that are not from 0 to 1"
        elif not (np.diff(decoded, axis=1) <= 0).all():
            wrong = (
                "has a message that is decoded more often than the one before it; a message counts "
                "only together with all before it"
            )
        else:
            return
        raise RequestError(f"the decoder table {wrong}")

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[float]]) -> "Table":
        """Rows of g P/c in dB and the probabilities."""
        if len({len(row) for row in rows}) != 1:
            raise RequestError("all rows of the decoder table need the same number of values")
        array = np.asarray(rows, np.float64)
        return cls(array[:, 0], array[:, 1:])

    def probabilities(self, coding: Coding, bits: Sequence[float], snr: Floats) -> Floats:
        """Read off the table; noise in the measurement does not make a higher gain worse."""
        messages = len(coding.split)
        if messages != self.decoded.shape[1]:
            raise RequestError(
                f"the decoder table has {self.decoded.shape[1]} messages and the signal has "
                f"{messages}; give a table measured with {messages}"
            )
        with np.errstate(divide="ignore"):
            decibel = np.maximum(to_db(np.asarray(snr, np.float64)), -1e9)
        rising = np.maximum.accumulate(self.decoded, axis=0)
        columns = [np.interp(decibel, self.snr_db, column) for column in rising.T]
        return np.stack(columns, axis=-1)


def build_decoder(section: RadioSection) -> Decoder:
    """The decoder that `radio.decoder` names."""
    match section.decoder:
        case "outage":
            return Outage()
        case "normal":
            return NormalApproximation(section.codeword_symbols)
        case "table" if section.decoder_table is not None:
            return Table.from_rows(section.decoder_table)
        case "table" | "waveform":
            require_sionna()
            return WaveformTable(Modem.of(section))
        case "gap":
            return Outage(section.sinr_gap_db)


def averaged(
    decoder: Decoder,
    coding: Coding,
    bits: Sequence[float],
    reaches: "Reaches",
    noise_to_power: Floats,
) -> Floats | None:
    """[..., message]: the decoding probabilities over the distribution of the gain.

    With certain decoding, the probability to reach a threshold. Otherwise E[f(g)] is the integral
    of Pr(g >= x) df(x), a sum over the points between which f rises.

    Args:
        decoder: At a known gain.
        coding: How the messages share the upload.
        bits: Those of every message; empty if they are not known.
        reaches: The distribution of the gain.
        noise_to_power: [...] c / P.
    """
    if isinstance(decoder, Outage):
        return reaches(coding.thresholds(noise_to_power, decoder.gap))
    found_curve = _curve(decoder, coding, bits)
    if found_curve is None:
        return None
    points_db, curve = found_curve
    ratios, where = np.unique(np.asarray(noise_to_power), return_inverse=True)
    middle = from_db((points_db[:-1] + points_db[1:]) / 2)
    found = np.empty((len(ratios), curve.shape[1]))
    for message, rises in enumerate(np.diff(curve, axis=0).T):
        used = rises > 0
        gains = reaches(np.multiply.outer(ratios, middle[used]))
        found[:, message] = curve[0, message] + gains @ rises[used]
    return found[where].reshape(*np.shape(noise_to_power), curve.shape[1])


def _curve(decoder: Decoder, coding: Coding, bits: Sequence[float]) -> tuple[Floats, Floats] | None:
    """Points in dB and the probabilities there, close together where these rise."""
    coarse_db = np.arange(LOWEST_DB, HIGHEST_DB + COARSE_DB / 2, COARSE_DB)
    coarse = decoder.probabilities(coding, bits, from_db(coarse_db))
    if coarse is None:
        return None
    [rises] = np.nonzero((np.diff(coarse, axis=0) > 0).any(axis=1))
    low, high = (rises[0], rises[-1] + 1) if len(rises) else (0, 1)
    points_db = np.linspace(
        coarse_db[low], coarse_db[high], round((high - low) * COARSE_DB / STEP_DB) + 1
    )
    fine = decoder.probabilities(coding, bits, from_db(points_db))
    assert fine is not None
    return points_db, fine


class Reaches(Protocol):
    """Pr(g >= threshold)."""

    def __call__(self, threshold: Floats) -> Floats:
        """For an array of thresholds."""


def drawn(probabilities: Floats, uniform: Floats) -> NDArray[np.int64]:
    """The number of messages decoded, by one uniform number per row."""
    return np.asarray((uniform[:, None] < probabilities).sum(axis=1), np.int64)
