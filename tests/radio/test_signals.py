"""Which segments are in which message, at which rate and power."""

import numpy as np
import pytest

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import (
    SignalMaker,
    noise_to_power,
    oddities,
    optimal_split,
    optimal_split_numeric,
    power_split,
    segment_rates,
    signal,
)

SLIMFL, HALF, FULL = ((0,), (1,)), ((0,),), ((0, 1),)


def test_vanilla_half_sends_one_segment_at_u_with_all_the_power():
    upload = signal(RadioSection(), HALF, 2)
    assert upload.coding.spectral_efficiencies == (1.5,)
    assert upload.coding.split == (1.0,)


def test_vanilla_full_sends_at_twice_the_rate():
    """u'_full = (1 + u')^2 - 1, with all the power: its threshold is that much higher."""
    section = RadioSection(noise_dbm=-45)
    c_over_p = noise_to_power(section)
    half = signal(section, HALF, 2).coding.thresholds(c_over_p)[0]
    upload = signal(section, FULL, 2)
    target = half / c_over_p
    assert upload.coding.split == (1.0,)
    assert upload.coding.thresholds(c_over_p)[0] == pytest.approx(
        c_over_p * ((1 + target) ** 2 - 1)
    )


def test_slimfl_sends_every_segment_at_u_with_the_papers_split():
    upload = signal(RadioSection(), SLIMFL, 2)
    assert upload.coding.spectral_efficiencies == (1.5, 1.5)
    assert upload.coding.split == (0.8, 0.2)


@pytest.mark.parametrize(
    ("given", "rates", "expected"),
    [
        (None, (1.5, 1.5), (0.8, 0.2)),
        ((0.7, 0.3), (1.5, 1.5), (0.7, 0.3)),
        ("optimal", (1.5, 1.5), optimal_split((1.5, 1.5))),
        (None, (1.0, 1.5), optimal_split((1.0, 1.5))),
        (None, (1.5, 1.5, 1.5), optimal_split((1.5, 1.5, 1.5))),
        (None, (1.5,), (1.0,)),
    ],
)
def test_the_split_is_the_one_asked_for(given, rates, expected):
    assert power_split(RadioSection(split=given), rates) == pytest.approx(expected)


def test_the_numeric_split_knows_the_noise():
    for noise_dbm in (-51, -40, -30):
        section = RadioSection(noise_dbm=noise_dbm, split="optimal-numeric")
        expected = optimal_split_numeric((1.5, 1.5), noise_to_power(section))
        assert power_split(section, (1.5, 1.5)) == pytest.approx(expected)
    quiet, loud = (
        power_split(RadioSection(noise_dbm=noise, split="optimal-numeric"), (1.5, 1.5))[0]
        for noise in (-60, -30)
    )
    assert abs(quiet - loud) > 0.01


def test_rates_are_one_for_all_or_one_each():
    assert segment_rates(RadioSection(spectral_efficiency=1.2), 3) == (1.2, 1.2, 1.2)
    assert segment_rates(RadioSection(spectral_efficiency=(1.0, 2.0)), 2) == (1.0, 2.0)


def test_unequal_rates_add_up_in_a_message_of_several_segments():
    section = RadioSection(spectral_efficiency=(1.0, 0.5, 0.25))
    assert signal(section, ((0, 1, 2),), 3).coding.spectral_efficiencies == (1.75,)
    upload = signal(section, ((0,), (1, 2)), 3)
    assert upload.coding.spectral_efficiencies == (1.0, 0.75)
    assert upload.coding.split == pytest.approx(optimal_split((1.0, 0.75)))


def test_messages_decoded_give_the_segments_they_carry():
    bits = (1.0, 10.0, 100.0, 1000.0, 10_000.0)
    upload = signal(RadioSection(), ((0, 1), (2,), (3, 4)), 5, bits)
    assert [upload.segments_decoded(count) for count in range(4)] == [
        (),
        (0, 1),
        (0, 1, 2),
        (0, 1, 2, 3, 4),
    ]
    assert upload.message_bits == (11, 100, 11_000)


def test_an_infeasible_configured_split_is_refused():
    with pytest.raises(RequestError, match="segment 1"):
        signal(RadioSection(split=(0.5, 0.5)), SLIMFL, 2)
    signal(RadioSection(split=(0.5, 0.5)), HALF, 2)  # one message does not split its power


def test_what_makes_superposition_something_else_is_said():
    sizes = (1530.0, 3056.0)

    def said(**keys):
        return oddities([signal(RadioSection(**keys), SLIMFL, 2, sizes)])

    assert said() == []
    assert said(rates="equal") == []
    [in_turn] = said(rates="equal", multiplexing="orthogonal-energy")
    assert "this is one message at a lower rate" in in_turn
    [none] = said(split=(1 - 1e-9, 1e-9))
    assert "segment 2 gets no power" in none
    assert oddities([signal(RadioSection(), FULL, 2, sizes)]) == []


def test_a_split_that_never_sends_a_segment_is_said():
    """At -33 dBm and equal weights nobody gives segment 2 power; nearby somebody does."""
    section = RadioSection(
        noise_dbm=-33.0, rates="equal", split="per-device", split_objective="weighted"
    )
    maker = SignalMaker(section, 2, (1530.0, 3056.0))
    far = np.array([noise_to_power(section)])
    [never] = maker.oddities(SLIMFL, far)
    assert "segment 2 no power on any device" in never
    assert maker.oddities(SLIMFL, np.append(far, far / 100)) == []
