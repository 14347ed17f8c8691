"""Decoding probabilities at a known gain, made once from real symbols: `radio.decoder = "table"`.

Given the gain, code blocks fail independently. Message i and all before it are decoded with the
probability of all their blocks,

    prod_{j <= i} success_j(SINR_j)^blocks_j,

where each layer's success per block is a measured curve (`curve`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slimfl.experiment import RadioSection
from slimfl.radio.coding import Coding
from slimfl.radio.superposition import Floats
from slimfl.radio.waveform.cache import curve_of
from slimfl.radio.waveform.code import Code, code_of
from slimfl.radio.waveform.layers import groups_of
from slimfl.radio.waveform.modem import Modem
from slimfl.radio.waveform.sionna_blocks import require_sionna


@dataclass(frozen=True)
class WaveformTable:
    """What real symbols did, without sending any."""

    modem: Modem
    certain: bool = False

    def probabilities(self, coding: Coding, bits: Sequence[float], snr: Floats) -> Floats | None:
        """None where the bits of the messages are not known: all of their blocks must succeed."""
        if not bits:
            return None
        snr = np.asarray(snr, np.float64)
        found, number = [], 0
        for group in groups_of(coding):
            for message, (rate, power) in enumerate(zip(group.rates, group.powers, strict=True)):
                code = code_of(self.modem, int(bits[number]), rate)
                around = group.interference(message)
                curve = curve_of(_one_block(code), tuple(each / power for each in around))
                sinr = snr * power / (1 + snr * sum(around))
                found.append(curve.success(sinr) ** code.blocks)
                number += 1
        return np.asarray(np.cumprod(np.stack(found, axis=-1), axis=-1))


def waveform_table(section: RadioSection) -> WaveformTable:
    """The decoder of `radio.decoder = "table"` without rows of its own."""
    require_sionna()
    return WaveformTable(Modem.of(section))


def _one_block(code: Code) -> Code:
    """The same for messages of any length."""
    return Code(code.modem, 1, code.payload_bits, code.symbols)
