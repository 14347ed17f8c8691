"""Devices drawn once from the seed, class by class.

Every quantity has its own stream of uniform numbers, and device k gets the k-th. So changing one
quantity changes no other, and two methods with the same seed have the same devices.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimfl.devices.devices_csv import read_devices
from slimfl.devices.population import DEFAULT_ENERGY, Population
from slimfl.devices.presets import preset_classes
from slimfl.devices.quantiles import Floats, correlated, quantile
from slimfl.devices.widths import width_indices
from slimfl.errors import RequestError
from slimfl.experiment import DeviceClass, Experiment
from slimfl.experiment.sections.population import QUANTITIES
from slimfl.rng import generator


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


def _drawn(experiment: Experiment, classes: Sequence[DeviceClass], alike: Population) -> Population:
    seed, count = experiment.seed, len(alike)
    members = _members([each.share for each in classes], count, seed)
    uniforms = {key: generator(seed, f"population {key}").random(count) for key in QUANTITIES}
    uniforms = correlated(uniforms, experiment.population.correlations)
    drawn: dict[str, NDArray[np.float64]] = {}
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
