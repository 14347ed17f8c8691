"""The effective SINR of a message whose subcarriers have gains of their own.

Capacity mapping: a codeword over all subcarriers carries their mean mutual information, so it meets
the flat link of the same capacity,

    log2(1 + SINR_eff) = mean_f log2(1 + SINR(f)).
"""

import numpy as np

from slimfl.radio.coding import Coding
from slimfl.radio.superposition import Floats


def effective_sinr(coding: Coding, snr: Floats) -> Floats:
    """[..., message] of the signal-to-noise ratios [..., subcarrier] of the whole signal."""
    return np.asarray(np.expm1(np.log1p(coding.sinr(snr)).mean(axis=-2)))


def effective_snr(coding: Coding, snr: Floats) -> Floats:
    """[..., message]: the flat ratio of the whole signal at which a message has that SINR.

    SINR(x) = x a / (1 + x b) in every coding; a and b are read off at two points.
    """
    wanted = effective_sinr(coding, snr)
    small, large = coding.sinr(np.array([1.0, 2.0]))
    # 1 / SINR = 1 / (x a) + b / a
    inverse_a = 2 * (1 / small - 1 / large)
    ratio = 1 / small - inverse_a
    with np.errstate(divide="ignore"):
        return np.asarray(inverse_a / np.maximum(1 / wanted - ratio, 1e-300))
