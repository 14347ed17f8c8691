"""Real symbols: parameters as bits, LDPC-coded, QAM-mapped, superposed, faded and decoded.

Needs the extra `waveform`, of which only `sionna_blocks` knows.
"""
