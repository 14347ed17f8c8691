"""How messages become code blocks and layers: modulation, number, length, rate and powers.

As in TS 38.212, a message is cut into blocks of equal length, each with a CRC of its own. A block
of b payload bits becomes b + 24 information bits of an LDPC code and ceil(b / (u/W)) QAM symbols,
so that the message takes the time of its spectral efficiency u/W: the CRC costs code rate.

Superposed messages are one group of layers; messages in turn are groups of one, each with its own
power. Powers are shares of the transmit power.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio.coding import Coding, Superposition

CRC_BITS = 24
#: The code rates of TS 38.212 without repetition, and up to where it asks a receiver to decode.
LOWEST_RATE, HIGHEST_RATE = 1 / 5, 948 / 1024
#: Base graph 1 of longer blocks has no lower rate than this, unless base graph 2 takes over at 1/4.
LONG_BLOCK, LONG_RATE = 3824, 1 / 3


@dataclass(frozen=True)
class Modem:
    """The keys of the `radio` section that describe symbols."""

    bits_per_symbol: int = 4
    """2: QPSK, 4: 16-QAM, 6: 64-QAM, 8: 256-QAM."""
    block_bits: int = 1024
    """Most information bits of a code block, its CRC included."""
    iterations: int = 20
    """Most iterations of belief propagation."""

    @classmethod
    def of(cls, section: RadioSection) -> "Modem":
        """As the section has it."""
        return cls(section.modulation, section.block_bits, section.decoder_iterations)


@dataclass(frozen=True)
class Code:
    """The code blocks of a message."""

    modem: Modem
    blocks: int
    payload_bits: int
    """Of one block; the last one is filled up with zeros."""
    symbols: int
    """Of one block."""

    @property
    def information_bits(self) -> int:
        """k of the LDPC code."""
        return self.payload_bits + CRC_BITS

    @property
    def coded_bits(self) -> int:
        """n of the LDPC code."""
        return self.symbols * self.modem.bits_per_symbol

    @property
    def rate(self) -> float:
        """k / n."""
        return self.information_bits / self.coded_bits


@lru_cache(maxsize=256)
def code_of(modem: Modem, bits: int, spectral_efficiency: float) -> Code:
    """The code blocks of a message of some bits at u/W bit/s/Hz."""
    blocks = max(1, ceil(bits / (modem.block_bits - CRC_BITS)))
    payload = max(1, ceil(bits / blocks))
    code = Code(modem, blocks, payload, max(1, ceil(payload / spectral_efficiency)))
    _refuse_impossible(code, spectral_efficiency)
    return code


def _refuse_impossible(code: Code, spectral_efficiency: float) -> None:
    """One sentence that says which key to change."""
    modem, rate = code.modem, code.rate
    if rate > HIGHEST_RATE:
        way_on = (
            f"LDPC codes end at {HIGHEST_RATE:.2f}; raise radio.modulation or lower "
            "radio.spectral_efficiency"
        )
    elif rate < LOWEST_RATE:
        way_on = (
            f"LDPC codes begin at {LOWEST_RATE:.2f}; lower radio.modulation or raise "
            "radio.spectral_efficiency"
        )
    elif code.information_bits > LONG_BLOCK and LOWEST_RATE * 1.25 < rate < LONG_RATE:
        way_on = f"long blocks do not have it; lower radio.block_bits to {LONG_BLOCK}"
    else:
        return
    raise RequestError(
        f"a message at {spectral_efficiency:g} bit/s/Hz in blocks of {code.payload_bits} bits "
        f"would need the code rate {rate:.2f} with {2**modem.bits_per_symbol}-QAM, and {way_on}"
    )


@dataclass(frozen=True)
class MessageGroup:
    """Messages that are sent at the same time."""

    rates: tuple[float, ...]
    powers: tuple[float, ...]
    residual: float = 0.0
    """Share of a cancelled message's power that stays."""

    def interference(self, message: int) -> tuple[float, ...]:
        """The powers that message i is decoded against, besides noise."""
        left = (self.residual * power for power in self.powers[:message] if self.residual)
        return (*self.powers[message + 1 :], *left)


def groups_of(coding: Coding) -> Sequence[MessageGroup]:
    """The groups in the order in which they are decoded."""
    if isinstance(coding, Superposition):
        return [MessageGroup(coding.spectral_efficiencies, coding.split, coding.residual)]
    in_turn = zip(coding.rates.tolist(), coding.powers.tolist(), strict=True)
    return [MessageGroup((rate,), (power,)) for rate, power in in_turn]
