"""Symbols, table and formula side by side under Rayleigh fading, and the gap that fits symbols.

Every link sends one code block per message. Its gain is drawn from its own slice of the
distribution (stratified), so that a few hundred links tell a probability to about a percent.

An ideal code needs SINR_i >= u'_i. A real one needs SINR_i >= gap u'_i, with one gap per modulation
and code whatever the split: that is what is fitted. A loss on the noise alone
(`implementation_loss_db`) is fitted beside it; it leaves out that interference counts too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.coding import Floats, Superposition, interference, sinr_target
from slimfl.radio.decoders import averaged
from slimfl.radio.fading import Rayleigh
from slimfl.radio.waveform.code import CRC_BITS, Code, Modem, code_of, groups_of
from slimfl.radio.waveform.symbols import Layer, each_block, superposed
from slimfl.radio.waveform.table import WaveformTable
from slimfl.rng import generator
from slimfl.units import from_db

#: Gaps and losses that are tried.
TRIED_DB = np.arange(0, 8.001, 0.02)


@dataclass(frozen=True)
class Comparison:
    """One modulation and code: [split, mean ratio, message] of probabilities."""

    modem: Modem
    code_rate: float
    spectral_efficiency: float
    splits: tuple[tuple[float, ...], ...]
    snr_db: tuple[float, ...]
    """Mean signal-to-noise ratios P/c."""
    draws: int
    symbols: Floats
    table: Floats
    formula: Floats
    altered_bits: int
    """In blocks that passed their CRC."""

    @property
    def codings(self) -> list[Superposition]:
        """One per split."""
        return [
            Superposition((self.spectral_efficiency,) * len(split), split) for split in self.splits
        ]

    def with_gap(self, gap_db: float) -> Floats:
        """The formula if every message needs more SINR."""
        return self._rayleigh([gap_thresholds(coding, gap_db) for coding in self.codings])

    def with_noise(self, loss_db: float) -> Floats:
        """The formula if there is more noise."""
        return self._rayleigh([coding.thresholds(from_db(loss_db)) for coding in self.codings])

    def fitted_gap_db(self) -> float:
        """The gap whose worst difference from symbols is smallest."""
        worst = [np.abs(self.with_gap(gap) - self.symbols).max() for gap in TRIED_DB.tolist()]
        return float(TRIED_DB[int(np.argmin(worst))])

    def fitted_noise_db(self) -> float:
        """The same for a loss on the noise."""
        worst = [np.abs(self.with_noise(loss) - self.symbols).max() for loss in TRIED_DB.tolist()]
        return float(TRIED_DB[int(np.argmin(worst))])

    def _rayleigh(self, thresholds: Sequence[Floats]) -> Floats:
        ratios = np.array([from_db(each) for each in self.snr_db])
        return np.stack([np.exp(-each / ratios[:, None]) for each in thresholds])


def gap_thresholds(coding: Superposition, gap_db: float) -> Floats:
    """The ratio g P/c that every message and all before it need, infinite where none is enough."""
    needed = from_db(gap_db) * sinr_target(coding.spectral_efficiencies)
    shares = np.asarray(coding.split)
    margins = shares - needed * interference(shares, 0.0)
    with np.errstate(divide="ignore"):
        found = np.where(margins > 0, needed / np.maximum(margins, 1e-300), np.inf)
    return np.asarray(np.maximum.accumulate(found))


def compare(
    modem: Modem,
    spectral_efficiency: float,
    splits: Sequence[tuple[float, ...]],
    snr_db: Sequence[float],
    draws: int,
    seed: int = 0,
) -> Comparison:
    """Send blocks over links of every split and mean ratio."""
    bits = modem.block_bits - CRC_BITS
    code = code_of(modem, bits, spectral_efficiency)
    table = WaveformTable(modem)
    symbols, tabled, formula, altered = [], [], [], 0
    for split in splits:
        coding = Superposition((spectral_efficiency,) * len(split), split)
        for number, mean_db in enumerate(snr_db):
            ratio = np.asarray(1 / from_db(mean_db))
            random = generator(seed, "waveform comparison", number)
            quantile = (np.arange(draws) + random.random(draws)) / draws
            decoded, wrong = exchange_blocks(code, coding, -np.log1p(-quantile) / ratio, random)
            symbols.append([(decoded > message).mean() for message in range(len(split))])
            altered += wrong
            known = averaged(table, coding, (bits,) * len(split), Rayleigh().survival, ratio)
            assert known is not None
            tabled.append(known)
            formula.append(np.exp(-coding.thresholds(float(ratio))))
    shape = (len(splits), len(snr_db), -1)
    return Comparison(
        modem,
        code.rate,
        spectral_efficiency,
        tuple(splits),
        tuple(snr_db),
        draws,
        np.array(symbols).reshape(shape),
        np.array(tabled).reshape(shape),
        np.array(formula).reshape(shape),
        altered,
    )


def exchange_blocks(
    code: Code, coding: Superposition, snr: Floats, random: np.random.Generator
) -> tuple[NDArray[np.int64], int]:
    """The messages that every link delivers, one block each, and the bits that are not as sent."""
    links = len(snr)
    [group] = groups_of(coding)
    many = Code(code.modem, links, code.payload_bits, code.symbols)
    layers = [
        Layer(many, number, power, group.interference(number), links * code.symbols)
        for number, power in enumerate(group.powers)
    ]
    sent = [
        random.integers(2, size=(links, code.payload_bits), dtype=np.uint8) for _ in group.powers
    ]
    gains = np.repeat(snr.astype(np.float32), code.symbols)
    noise = random.standard_normal((len(gains), 2), np.float32) * np.float32(0.5**0.5)
    left = np.sqrt(gains) * superposed(layers, sent) + noise.view(np.complex64)[:, 0]
    decoded, alive, altered = np.zeros(links, np.int64), np.ones(links, np.bool_), 0
    for layer, payload in zip(layers, sent, strict=True):
        found, passed = each_block(layer, left, gains, 1.0)
        alive &= passed
        decoded += alive
        altered += int((found[alive] != payload[alive]).sum())
        left = left - np.float32(layer.power**0.5) * np.sqrt(gains) * layer.symbols(found)
    return decoded, altered
