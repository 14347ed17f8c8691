"""Distributions as quantile functions, which map uniform random numbers to values."""

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError
from slimfl.experiment import Correlation, Distribution
from slimfl.experiment.sections.population import LIMITS, Choice, Disc, Lognormal, Uniform

Floats = NDArray[np.float64]


def quantile(distribution: Distribution, uniform: Floats, key: str) -> Floats:
    """The values of a distribution at some probabilities, within the limits of the quantity."""
    match distribution:
        case Uniform(low=low, high=high):
            values = low + (high - low) * uniform
        case Lognormal(median=median, sigma=sigma):
            values = median * np.exp(sigma * _normal(uniform))
        case Choice(values=choices, weights=weights):
            chances = np.ones(len(choices)) if weights is None else np.asarray(weights)
            edges = np.cumsum(chances / chances.sum())[:-1]
            values = np.asarray(choices)[np.searchsorted(edges, uniform, side="right")]
        case Disc(radius_m=radius, inner_m=inner):
            # the area grows with the square of the distance
            values = np.sqrt(inner**2 + (radius**2 - inner**2) * uniform)
    return np.clip(values, *LIMITS[key])


def correlated(uniforms: dict[str, Floats], pairs: tuple[Correlation, ...]) -> dict[str, Floats]:
    """Uniform numbers with the given rank correlations: a Gaussian copula.

    Normal variables with the correlation r have the rank correlation rho = (6 / pi) asin(r / 2), so
    r = 2 sin(pi rho / 6). Numbers in no pair are unchanged.
    """
    keys = list(dict.fromkeys(key for pair in pairs for key in pair.between))
    if not keys:
        return uniforms
    matrix = np.eye(len(keys))
    for pair in pairs:
        i, j = (keys.index(key) for key in pair.between)
        matrix[i, j] = matrix[j, i] = 2 * np.sin(np.pi * pair.rank / 6)
    values, vectors = np.linalg.eigh(matrix)
    if values.min() < -1e-9:
        raise RequestError(
            "population.correlations contradict each other; bring the ranks closer to 0"
        )
    root = vectors * np.sqrt(np.maximum(values, 0))
    normal = np.stack([_normal(uniforms[key]) for key in keys])
    # fully correlated numbers must be exactly equal
    mixed = np.round(root @ normal, 12)
    return uniforms | dict(zip(keys, _normal_share(mixed), strict=True))


def _normal(uniform: Floats) -> Floats:
    # imported here: SciPy takes a sixth of a run's start-up time, and few runs need it
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(uniform, 1e-16, 1 - 1e-16)))


def _normal_share(normal: Floats) -> Floats:
    from scipy.special import ndtr

    return np.asarray(ndtr(normal))
