"""The effective SINR of a message whose subcarriers have gains of their own.

Capacity mapping: a codeword over all subcarriers carries their mean mutual information, so it meets
the flat link of the same capacity,

    log2(1 + SINR_eff) = mean_f log2(1 + SINR(f)).

Decoders that are made for one gain are asked at the flat ratio that has this SINR.
"""

from collections.abc import Sequence

import numpy as np

from slimfl.radio.coding import Coding
from slimfl.radio.decoders import Decoder
from slimfl.radio.superposition import Floats, sinr_target


def effective_sinr(coding: Coding, snr: Floats) -> Floats:
    """[..., message] of the signal-to-noise ratios [..., subcarrier] of the whole signal."""
    return np.asarray(np.expm1(np.log1p(coding.sinr(snr)).mean(axis=-2)))


def effective_snr(coding: Coding, snr: Floats) -> Floats:
    """[..., message]: the flat ratio of the whole signal at which a message has that SINR."""
    return _flat_snr(coding, effective_sinr(coding, snr))


def at_effective_sinr(
    decoder: Decoder, coding: Coding, bits: Sequence[float], sinr: Floats
) -> Floats | None:
    """[..., message]: the probability to decode a message and all before it."""
    if decoder.certain:
        reached = sinr >= sinr_target(coding.rates)
        return np.asarray(np.logical_and.accumulate(reached, axis=-1), np.float64)
    flat = _flat_snr(coding, sinr)
    columns = []
    for message in range(flat.shape[-1]):
        known = decoder.probabilities(coding, bits, flat[..., message])
        if known is None:
            return None
        columns.append(known[..., message])
    return np.asarray(np.minimum.accumulate(np.stack(columns, axis=-1), axis=-1))


def sinr_slopes(coding: Coding) -> list[tuple[float, float]]:
    """Per message, the a and b of SINR(x) = x a / (1 + x b), which every coding has."""
    inverse_a, ratio = _inverse(coding)
    # rounding leaves a message that nothing interferes with a b of about 1e-16
    b = np.where(ratio < 1e-12, 0.0, ratio / inverse_a)
    return list(zip((1 / inverse_a).tolist(), b.tolist(), strict=True))


def _flat_snr(coding: Coding, sinr: Floats) -> Floats:
    inverse_a, ratio = _inverse(coding)
    with np.errstate(divide="ignore"):
        return np.asarray(inverse_a / np.maximum(1 / sinr - ratio, 1e-300))


def _inverse(coding: Coding) -> tuple[Floats, Floats]:
    """1 / a and b / a of every message, read off at two points: 1 / SINR = 1 / (x a) + b / a."""
    small, large = coding.sinr(np.array([1.0, 2.0]))
    inverse_a = 2 * (1 / small - 1 / large)
    return inverse_a, 1 / small - inverse_a
