"""All that is taken from Sionna: CRC, 5G LDPC code, QAM mapping and demapping, on NumPy arrays.

Nothing else imports it. Its import takes seconds and reseeds torch's default generator, which is
put back here; its own generators are never used. Every block is told to stay on the CPU, because
Sionna otherwise takes the first GPU it sees.

Soft values are Sionna's: log p(1)/p(0).
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.extras import require
from slimfl.radio.waveform.code import Code

Bits = NDArray[np.uint8]
Symbols = NDArray[np.complex64]
Soft = NDArray[np.float32]

#: Belief propagation is tried this shortly first: most blocks need no more.
FIRST_ITERATIONS = 5


def require_sionna() -> None:
    """Refuse what needs Sionna where it is not installed."""
    require("waveform", "sionna")


def encode(code: Code, payload: Bits) -> Bits:
    """[block, payload bit] -> [block, coded bit]."""
    crc, encoder, _, _ = _coders(code)
    return _bits(encoder(crc(_tensor(payload))))


def decode(code: Code, soft: Soft) -> tuple[Bits, NDArray[np.bool_]]:
    """[block, coded bit] -> [block, payload bit], and which blocks pass their CRC.

    Iterations end when the CRC is passed: after a few, or after all.
    """
    _, _, decoder, check = _coders(code)
    given = _tensor(soft)
    first = min(FIRST_ITERATIONS, code.modem.iterations)
    payload, passed = check(decoder(given, num_iter=first))
    payload, good = _bits(payload), passed.numpy()[:, 0]
    failed = np.flatnonzero(~good)
    if len(failed) and code.modem.iterations > first:
        again, passed = check(decoder(given[failed], num_iter=code.modem.iterations))
        payload[failed], good[failed] = _bits(again), passed.numpy()[:, 0]
    return payload, good


def map_bits(bits_per_symbol: int, bits: Bits) -> Symbols:
    """[..., bit] -> [..., symbol] of mean power 1."""
    mapper, _ = _mappers(bits_per_symbol)
    symbols: Symbols = mapper(_tensor(bits)).numpy()
    return symbols


def demap(bits_per_symbol: int, symbols: Symbols, noise: NDArray[np.float32]) -> Soft:
    """[..., symbol] -> [..., bit], where each symbol has Gaussian noise of the given power."""
    _, demapper = _mappers(bits_per_symbol)
    tensor = _sionna().torch.from_numpy
    soft: Soft = demapper(tensor(symbols), tensor(noise)).numpy()
    return soft


@lru_cache(maxsize=32)
def _coders(code: Code) -> tuple[Any, Any, Any, Any]:
    """CRC encoder, LDPC encoder, LDPC decoder, CRC check."""
    fec = _sionna().phy.fec
    crc = fec.crc.CRCEncoder("CRC24B", k=code.payload_bits, device="cpu")
    encoder = fec.ldpc.LDPC5GEncoder(
        code.information_bits,
        code.coded_bits,
        num_bits_per_symbol=code.modem.bits_per_symbol,
        device="cpu",
        check_input=False,
    )
    decoder = fec.ldpc.LDPC5GDecoder(encoder, device="cpu")
    return crc, encoder, decoder, fec.crc.CRCDecoder(crc, device="cpu")


@lru_cache(maxsize=8)
def _mappers(bits_per_symbol: int) -> tuple[Any, Any]:
    mapping = _sionna().phy.mapping
    return (
        mapping.Mapper("qam", bits_per_symbol, device="cpu"),
        mapping.Demapper("app", "qam", bits_per_symbol, device="cpu"),
    )


@lru_cache(maxsize=1)
def _sionna() -> SimpleNamespace:
    """Import it and torch, and leave torch's generator as it was."""
    require_sionna()
    import torch

    state = torch.random.get_rng_state()
    try:
        return SimpleNamespace(torch=torch, phy=import_module("sionna.phy"))
    finally:
        torch.random.set_rng_state(state)


def _tensor(array: NDArray[Any]) -> Any:
    return _sionna().torch.from_numpy(np.ascontiguousarray(array, np.float32))


def _bits(tensor: Any) -> Bits:
    bits: Bits = tensor.numpy().astype(np.uint8)
    return bits
