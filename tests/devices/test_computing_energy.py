"""Computing energy: the numbers of the presets, and ratios that do not depend on the preset."""

from typing import get_args

import numpy as np
import pytest

from slimfl.devices import Population
from slimfl.devices.computing_energy import (
    ENERGY_PRESETS,
    NONE,
    joule_per_mac,
    presets_used,
)
from slimfl.errors import RequestError
from slimfl.experiment.sections.rounds import EnergyPreset
from slimfl.nn import build, multiply_adds


def devices(speeds, energy=(0,), names=("default",)):
    count = len(speeds)
    alike = np.ones(count)
    return Population(
        np.arange(count),
        np.ones(count, np.int64),
        np.ones(count, np.int64),
        alike,
        alike,
        macs_per_s=np.asarray(speeds, np.float64),
        energy=np.resize(np.array(energy, np.int16), count),
        energy_names=names,
    )


def per_sample(preset, macs, speed):
    """Energy of one training image: three passes."""
    return float(3 * macs * joule_per_mac(devices([speed]), preset)[0])


@pytest.mark.parametrize(
    ("preset", "speed", "expected_j"),
    [
        ("horowitz-45nm", 1e9, 42.6e-6),
        ("kappa-1e-28", 1e9, 0.93e-3),
        ("kappa-1e-28", 2e9, 3.7e-3),
        ("kappa-1e-27", 1e9, 9.3e-3),
        ("raspberry-pi-4", 1e9, 3 * 3.09e6 / 1e9 * 5.14),
    ],
)
def test_published_figures(preset, speed, expected_j):
    """UL-MobileNet at 1.0x has 3.09 million multiply-adds."""
    assert per_sample(preset, 3.09e6, speed) == pytest.approx(expected_j, rel=0.02)


@pytest.mark.parametrize("preset", [name for name in ENERGY_PRESETS if name != NONE])
def test_two_widths_differ_as_their_multiply_adds(preset):
    network = build("ul-mobilenet", {}, in_channels=1, classes=10, initialisation="he", seed=0)
    narrow, wide = (multiply_adds(network, width, (1, 28, 28)) for width in (0.5, 1.0))
    for speed in (1e6, 3e8, 7e9):
        ratio = per_sample(preset, wide, speed) / per_sample(preset, narrow, speed)
        assert ratio == pytest.approx(wide / narrow, rel=1e-12)


def test_each_device_has_its_own_preset():
    mixed = devices([1e9, 1e9, 2e9], (1, 0, 2), (NONE, "default", "kappa-1e-28"))
    assert joule_per_mac(mixed, "horowitz-45nm") == pytest.approx([4.6e-12, 0.0, 1e-28 * 4e18])
    assert presets_used(mixed, "horowitz-45nm") == [NONE, "horowitz-45nm", "kappa-1e-28"]


@pytest.mark.parametrize("preset", ["kappa-1e-28", "raspberry-pi-4"])
def test_a_preset_that_needs_a_speed_says_so(preset):
    with pytest.raises(RequestError, match="macs_per_s"):
        joule_per_mac(devices([np.inf]), preset)


def test_an_unknown_preset_is_refused():
    with pytest.raises(RequestError, match="no energy preset 'coal'"):
        joule_per_mac(devices([1e9], (0,), ("coal",)), NONE)


def test_the_section_knows_the_presets():
    assert {*get_args(EnergyPreset)} == {*ENERGY_PRESETS}


def test_every_preset_names_its_source():
    assert all(len(model.source) > 20 for model in ENERGY_PRESETS.values())
