"""The map of the preferable method against the advice of every place, one by one."""

import numpy as np
import pytest

from slimfl.experiment import RadioSection
from slimfl.radio import noise_to_power
from slimfl.radio.bound import TIE, advise
from slimfl.radio.preference import NO_METHOD, preference_map

WIDTHS = (0.5, 1.0)
NOISES = np.array([-62.0, -51.0, -44.0, -40.0, -36.0, -31.0, -24.0])
RATES = np.array([0.4, 1.0, 1.5, 3.0])
LINKS = {
    "paper": {},
    "line of sight": {"fading": "rician", "rician_k_db": 6.0},
    "nakagami": {"fading": "nakagami", "nakagami_m": 3.0},
    "shadow": {"shadowing_db": 6.0},
    "residual": {"residual_interference": 0.03},
    "attempts": {"max_attempts": 2},
    "in turn": {"multiplexing": "orthogonal-airtime"},
}


@pytest.mark.slow
@pytest.mark.parametrize("keys", LINKS.values(), ids=LINKS)
def test_every_cell_is_the_advice_for_the_best_split_of_its_place(keys):
    section = RadioSection(**keys)
    found = preference_map(section, WIDTHS, 10, NOISES, RATES)
    for row, rate in enumerate(RATES.tolist()):
        for column, noise in enumerate(NOISES.tolist()):
            there = RadioSection(
                noise_dbm=noise, spectral_efficiency=rate, split="optimal-numeric", **keys
            )
            if rate == 3.0 and "residual_interference" in keys:  # 3% of 7 times drowns any split
                assert found.preferred[row, column] > 0
                continue
            advice = advise(there, WIDTHS, 10)
            slim, whole = advice.terms["slimfl"], advice.terms["vanilla-1.0x"]
            apart = abs(slim - whole) / min(slim, whole) if np.isfinite(whole) else np.inf
            if apart > 1e-3:  # below, the coarse grid of splits may decide otherwise
                method = (*found.methods, None)[found.preferred[row, column]]
                assert method in (advice.methods or (None,)), (rate, noise)
            if abs(apart - TIE) > 2e-3:
                assert found.tie[row, column] == advice.is_tie, (rate, noise)


@pytest.mark.slow
def test_over_a_band_of_unequal_gains_it_is_the_advice_too():
    keys = {"fading": "tdl-a", "subcarriers": 4}
    noises, found = np.array([-45.0, -40.0, -35.0, -30.0]), []
    drawn = preference_map(RadioSection(**keys), WIDTHS, 10, noises, np.array([1.5]))
    for column, noise in enumerate(noises.tolist()):
        there = RadioSection(noise_dbm=noise, split="optimal-numeric", **keys)
        advice = advise(there, WIDTHS, 10)
        slim, whole = advice.terms["slimfl"], advice.terms["vanilla-1.0x"]
        if abs(slim - whole) / min(slim, whole) > 1e-3:  # as above
            method = drawn.methods[drawn.preferred[0, column]]
            assert method in advice.methods, noise
            found.append(method)
    assert len({*found}) > 1


def test_nothing_is_preferable_where_nothing_arrives():
    """10 devices, 10 million rounds: the narrowest needs p = exp(-c/P t) above 1e-8."""
    section = RadioSection()
    edge_dbm = section.noise + 10 * np.log10(
        8 * np.log(10) / (noise_to_power(section) * (2**1.5 - 1))
    )
    noises = np.array([edge_dbm - 0.1, edge_dbm + 0.1])
    found = preference_map(section, WIDTHS, 10, noises, np.array([1.5])).preferred[0]
    assert found.tolist() == [1, NO_METHOD]
    for noise, method in zip(noises.tolist(), ("vanilla-0.5x", None), strict=True):
        assert advise(RadioSection(noise_dbm=noise), WIDTHS, 10).method == method


def test_with_poor_cancellation_one_message_is_advised():
    """With 10% left, even the best split has a larger D than one message (quadrature by hand)."""
    section = RadioSection(residual_interference=0.1)
    advice = advise(section, WIDTHS, 10)
    assert advice.method == "vanilla-1.0x"
    target, ratio, r = 2**1.5 - 1, 10 ** ((-40 - 23) / 10) * 100**2.5, 0.1
    shares = np.linspace(0.66, 0.78, 4001)
    first = target / (shares - target * (1 - shares))
    second = target / (1 - shares - target * r * shares)
    usable = (first > 0) & (second > 0)
    d = np.exp(ratio * first) + np.exp(ratio * np.maximum(first, second))
    assert advice.terms["slimfl"] == pytest.approx(d[usable].min(), rel=1e-6)
    assert advice.terms["slimfl"] > advice.terms["vanilla-1.0x"] == 2 * np.exp(ratio * 7)


def test_the_advice_covers_links_that_may_be_in_line_of_sight():
    section = RadioSection(
        path_loss="umi", noise_density_dbm_hz=-174, noise_figure_db=9, distance_m=100
    )
    assert advise(section, WIDTHS, 10).terms["vanilla-0.5x"] > 1
