"""What all messages of a run have in common: modulation, block length, iterations."""

from dataclasses import dataclass

from slimfl.experiment import RadioSection


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
