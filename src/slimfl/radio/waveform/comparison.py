"""Symbols, table and formula side by side under Rayleigh fading, and the gap that fits symbols.

Every link sends one code block per message. Its gain is drawn from its own slice of the
distribution (stratified), so that a few hundred links tell a probability to about a percent.

An ideal code needs SINR_i >= u'_i. A real one needs SINR_i >= gap u'_i, with one gap per modulation
and code whatever the split: that is what is fitted. A loss on the noise alone
(`implementation_loss_db`) is fitted beside it; it leaves out that interference counts too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slimfl.radio.coding import Floats, Superposition
from slimfl.radio.decoders import averaged
from slimfl.radio.fading import Rayleigh
from slimfl.radio.waveform.code import CRC_BITS, Code, Modem, code_of, groups_of
from slimfl.radio.waveform.symbols import Layer, decoded_layers, superposed, unit_noise
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
        return self._rayleigh([coding.thresholds(1.0, from_db(gap_db)) for coding in self.codings])

    def with_noise(self, loss_db: float) -> Floats:
        """The formula if there is more noise."""
        return self._rayleigh([coding.thresholds(from_db(loss_db)) for coding in self.codings])

    def fitted_gap_db(self) -> float:
        """The gap whose worst difference from symbols is smallest."""
        return self._fitted(self.with_gap)

    def fitted_noise_db(self) -> float:
        """The same for a loss on the noise."""
        return self._fitted(self.with_noise)

    def _fitted(self, formula: Callable[[float], Floats]) -> float:
        worst = [np.abs(formula(tried) - self.symbols).max() for tried in TRIED_DB.tolist()]
        return float(TRIED_DB[int(np.argmin(worst))])

    def _rayleigh(self, thresholds: Sequence[Floats]) -> Floats:
        ratios = np.array([from_db(each) for each in self.snr_db])
        return np.stack([np.exp(-each / ratios[:, None]) for each in thresholds])


def compare(
    modem: Modem,
    spectral_efficiency: float,
    splits: Sequence[tuple[float, ...]],
    snr_db: Sequence[float],
    draws: int,
    seed: int = 0,
) -> Comparison:
    """Send blocks over links of every split and mean ratio.

    Args:
        modem: The symbols.
        spectral_efficiency: u/W of every message in bit/s/Hz.
        splits: Shares of the power.
        snr_db: Mean ratios P/c.
        draws: How many links of each.
        seed: Of gains, bits and noise.
    """
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
    many = replace(code, blocks=links)
    layers = [
        Layer(many, number, power, group.interference(number), links * code.symbols)
        for number, power in enumerate(group.powers)
    ]
    sent = [
        random.integers(2, size=(links, code.payload_bits), dtype=np.uint8) for _ in group.powers
    ]
    gains = np.repeat(snr.astype(np.float32), code.symbols)
    received = np.sqrt(gains) * superposed(layers, sent) + unit_noise(len(gains), random)
    decoded, alive, altered = np.zeros(links, np.int64), np.ones(links, np.bool_), 0
    layers_found = decoded_layers(layers, received, gains, each_block=True)
    for (_, found, passed), payload in zip(layers_found, sent, strict=True):
        alive &= passed
        decoded += alive
        altered += int((found[alive] != payload[alive]).sum())
    return decoded, altered
