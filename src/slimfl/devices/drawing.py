"""Devices drawn once from the seed, class by class.

Every quantity has its own stream of uniform numbers, and device k gets the k-th. So changing one
quantity changes no other, and two methods with the same seed have the same devices.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from slimfl.devices.devices_csv import read_devices
from slimfl.devices.population import DEFAULT_ENERGY, Population, width_indices
from slimfl.errors import RequestError
from slimfl.experiment import Correlation, DeviceClass, Distribution, Experiment
from slimfl.experiment.sections.population import (
    LIMITS,
    QUANTITIES,
    Disc,
    Lognormal,
    OneOf,
    Uniform,
)
from slimfl.rng import generator

Floats = NDArray[np.float64]


def population_of(experiment: Experiment) -> Population:
    """The devices of an experiment, without their numbers of samples."""
    section, widths = experiment.population, experiment.model.widths
    devices = experiment.federation.devices
    if section.file is not None:
        return read_devices(section.file, devices, widths)
    alike = Population.alike(
        np.broadcast_to(np.int64(0), devices),
        max_width=len(widths) - 1,
        power_dbm=experiment.radio.power_dbm,
        distance_m=experiment.radio.distance_m,
    )
    classes = section.classes or preset_classes(section.preset, widths)
    return _drawn(experiment, classes, alike) if classes else alike


def preset_classes(name: str, widths: tuple[float, ...]) -> tuple[DeviceClass, ...]:
    """The classes of a population in `presets.toml`, for a network of these widths."""
    presets = tomllib.loads(Path(__file__).with_name("presets.toml").read_text())
    named = {
        "narrowest": widths[0],
        "about-half": max((width for width in widths if width <= 0.5), default=widths[0]),
    }
    classes = presets.get(name, {}).get("classes", [])
    for each in classes:
        if each.get("max_width") in named:
            each["max_width"] = named[each["max_width"]]
    return tuple(DeviceClass(**each) for each in classes)


def _drawn(experiment: Experiment, classes: Sequence[DeviceClass], alike: Population) -> Population:
    seed, count = experiment.seed, len(alike)
    members = _members([each.share for each in classes], count, seed)
    uniforms = {key: generator(seed, f"population {key}").random(count) for key in QUANTITIES}
    uniforms = correlated(uniforms, experiment.population.correlations)
    drawn: dict[str, Floats] = {}
    for key in QUANTITIES:
        if all(getattr(each, key) is None for each in classes):
            continue
        column = np.empty(count)
        for number, each in enumerate(classes):
            rows = members == number
            column[rows] = _values(each, key, uniforms[key][rows], _when_absent(experiment, key))
        drawn[key] = column
    columns: dict[str, Any] = {key: drawn[key] for key in drawn if key != "max_width"}
    energies = list(dict.fromkeys([DEFAULT_ENERGY, *(each.energy for each in classes)]))
    indices = np.array([energies.index(each.energy) for each in classes], np.int16)
    if "max_width" in drawn:
        where = "population.classes"
        columns["max_width"] = width_indices(drawn["max_width"], experiment.model.widths, where)
    return replace(
        alike,
        angle_rad=2 * np.pi * generator(seed, "population angle").random(count),
        device_class=members,
        energy=indices[members],
        class_names=tuple(each.name for each in classes),
        energy_names=tuple(energies),
        **columns,
    )


def _members(shares: Sequence[float], count: int, seed: int) -> NDArray[np.int16]:
    """The class of every device: counts in proportion to the shares, in random order."""
    exact = np.asarray(shares) / np.sum(shares) * count
    counts = np.floor(exact).astype(np.int64)
    lacking = count - counts.sum()
    counts[np.argsort(counts - exact, kind="stable")[:lacking]] += 1
    members = np.repeat(np.arange(len(counts), dtype=np.int16), counts)
    return generator(seed, "population class").permutation(members)


def _when_absent(experiment: Experiment, key: str) -> float:
    return {
        "max_width": 1.0,
        "distance_m": experiment.radio.distance_m,
        "power_dbm": experiment.radio.power_dbm,
    }.get(key, np.inf)


def _values(one: DeviceClass, key: str, uniform: Floats, when_absent: float) -> Floats | float:
    given = getattr(one, key)
    if given is None:
        return when_absent
    if isinstance(given, tuple):
        if len(given) != len(uniform):
            raise RequestError(
                f"population.classes, class {one.name!r}: {key} lists {len(given)} values for "
                f"{len(uniform)} devices; give one per device"
            )
        return np.asarray(given, np.float64)
    return given if isinstance(given, float) else quantile(given, uniform, key)


def quantile(distribution: Distribution, uniform: Floats, key: str) -> Floats:
    """The values of a distribution at some probabilities, within the limits of the quantity.

    Args:
        distribution: Of the quantity.
        uniform: [device] the probabilities.
        key: Names the quantity.
    """
    match distribution:
        case Uniform(low=low, high=high):
            values = low + (high - low) * uniform
        case Lognormal(median=median, sigma=sigma):
            values = median * np.exp(sigma * _normal(uniform))
        case OneOf(values=choices, weights=weights):
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
    return np.asarray(scipy.special.ndtri(np.clip(uniform, 1e-16, 1 - 1e-16)))


def _normal_share(normal: Floats) -> Floats:
    return np.asarray(scipy.special.ndtr(normal))
