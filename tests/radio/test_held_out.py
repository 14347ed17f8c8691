"""Formula, simulation and an independent integral for every decoding probability.

The integral uses nothing of the package: it finds the gain from which a literal receiver decodes a
message, and integrates a density that is defined here.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, special

from slimfl.radio import Nakagami, OutageLink, Rayleigh, Rician, Superposition, decoding_frequencies
from slimfl.radio.fading import NoFading, Shadowed
from slimfl.radio.outage import Attempts


def rayleigh_density(gain):
    return math.exp(-gain)


def rician_density(k):
    def density(gain):
        root = math.sqrt(k * (k + 1) * gain)
        # i0e is exp(-x) I_0(x), so that no factor overflows
        return (k + 1) * math.exp(2 * root - k - (k + 1) * gain) * special.i0e(2 * root)

    return density


def nakagami_density(m):
    def density(gain):
        return math.exp(m * math.log(m) + (m - 1) * math.log(gain) - m * gain - math.lgamma(m))

    return density


FADING = {
    "rayleigh": (Rayleigh(), rayleigh_density),
    "rician": (Rician(2.7), rician_density(2.7)),
    "rician, strong": (Rician(25.0), rician_density(25.0)),
    "nakagami": (Nakagami(0.8), nakagami_density(0.8)),
    "nakagami, mild": (Nakagami(5.5), nakagami_density(5.5)),
}


def settings(segments, name):
    """Rates, split, c/P: drawn by the test, never used elsewhere."""
    random = np.random.default_rng([segments, *name.encode()])
    rates = random.uniform(0.3, 1.6, segments)
    targets, shares, after = 2**rates - 1, [], 0.0
    for target in reversed(targets):
        shares.append(random.uniform(0.2, 2.0) + target * after)
        after += shares[-1]
    split = np.array(shares[::-1]) / after
    strength = random.uniform(0.05, 0.6)
    needed = targets / (split - targets * (split[::-1].cumsum()[::-1] - split))
    return tuple(rates.tolist()), tuple(split.tolist()), float(strength / needed.max())


def decodes(gain, message, rates, split, c_over_p):
    """Whether a receiver gets through messages 0..message, ratio by ratio."""
    for i in range(message + 1):
        interference = gain * sum(split[i + 1 :])
        if math.log2(1 + gain * split[i] / (c_over_p + interference)) < rates[i]:
            return False
    return True


def gain_needed(message, rates, split, c_over_p):
    low, high = 1e-9, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        if decodes(middle, message, rates, split, c_over_p):
            high = middle
        else:
            low = middle
    return high


def integral(density, low):
    """Of the density above a gain."""
    edges = [low, *(edge for edge in (0.1, 0.5, 1.0, 2.0, 4.0, 10.0) if edge > low), 80.0]
    return sum(
        integrate.quad(density, a, b, epsabs=1e-12, epsrel=1e-11, limit=200)[0]
        for a, b in itertools.pairwise(edges)
    )


@pytest.mark.parametrize("segments", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", FADING)
def test_formula_integral_and_simulation_agree(name, segments):
    fading, density = FADING[name]
    rates, split, c_over_p = settings(segments, name)
    link, coding = OutageLink.at(c_over_p, fading), Superposition(rates, split)
    found = link.decoding_probabilities(coding)
    expected = [integral(density, gain_needed(i, rates, split, c_over_p)) for i in range(segments)]
    np.testing.assert_allclose(found, expected, atol=1e-7)
    draws = 40_000
    frequencies = decoding_frequencies(link, coding, draws, seed=segments)
    error = np.sqrt(found * (1 - found) / draws)
    assert (np.abs(frequencies - found) <= 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("segments", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", ["none", *FADING])
def test_shadowed_formula_integral_and_simulation_agree(name, segments):
    fading, density = FADING.get(name, (NoFading(), None))
    rates, split, c_over_p = settings(segments, name)
    sigma_db = 3.0 + segments
    link = OutageLink.at(c_over_p, Shadowed(fading, sigma_db))
    found = link.decoding_probabilities(Superposition(rates, split))
    for i in (0, segments - 1):
        needed = gain_needed(i, rates, split, c_over_p)

        def reached(normal, needed=needed):
            shadow = 10 ** (sigma_db * normal / 10)
            if density is None:
                return float(shadow >= needed)
            return integral(density, needed / shadow) if needed / shadow < 79 else 0.0

        def weighted(normal, reached=reached):
            return reached(normal) * math.exp(-(normal**2) / 2) / math.sqrt(2 * math.pi)

        if density is None:
            edge = 10 * math.log10(needed) / sigma_db
            expected = 0.5 * math.erfc(edge / math.sqrt(2))
        else:
            points = np.linspace(-6.5, 6.5, 14)
            expected = sum(
                integrate.fixed_quad(np.vectorize(weighted), a, b, n=12)[0]
                for a, b in itertools.pairwise(points)
            )
        assert found[i] == pytest.approx(expected, abs=2e-6)
    draws = 40_000
    coding = Superposition(rates, split)
    frequencies = decoding_frequencies(link, coding, draws, seed=segments)
    error = np.sqrt(found * (1 - found) / draws)
    assert (np.abs(frequencies - found) <= 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("gain", ["independent", "same"])
@pytest.mark.parametrize("name", [*FADING, "shadowed"])
def test_retransmissions_by_formula_and_simulation_agree(name, gain):
    fading = Shadowed(Rician(3.0), 6.0) if name == "shadowed" else FADING[name][0]
    rates, split, c_over_p = settings(3, name)
    coding = Superposition(rates, split)
    before = np.zeros(3)
    for attempts in (1, 2, 4):
        link = OutageLink.at(3 * c_over_p, fading, attempts=Attempts(attempts, gain))
        found = link.decoding_probabilities(coding)
        assert (found > before).all()
        frequencies = decoding_frequencies(link, coding, 40_000, seed=1)
        error = np.sqrt(found * (1 - found) / 40_000)
        assert (np.abs(frequencies - found) <= 4.5 * error + 1e-4).all()
        before = found


def test_two_rayleigh_attempts_by_hand():
    """Pr(g_1 + g_2 >= t) = (1 + t) exp(-t)."""
    link = OutageLink.at(0.4, Rayleigh(), attempts=Attempts(2))
    threshold = 0.4 * (2**1.5 - 1)
    [found] = link.decoding_probabilities(Superposition((1.5,), (1.0,)))
    assert found == pytest.approx((1 + threshold) * math.exp(-threshold), rel=1e-12)
