"""Which width is picked, against a naive search; energy presets; latency with a fake clock."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slimfl.devices.computing_energy import ENERGY_PRESETS
from slimfl.errors import RequestError
from slimfl.export.energy import DEFAULT, PRESETS, preset
from slimfl.export.latency import WARM_UP, latencies_ms
from slimfl.export.picking import Choice, Limits, pick
from slimfl.nn import ULMobileNet, multiply_adds

choices = st.lists(
    st.builds(
        Choice,
        name=st.just("m"),
        width=st.sampled_from([0.25, 0.5, 1.0]),
        parameters=st.just(1),
        multiply_adds=st.integers(1, 9),
        joules_per_image=st.integers(1, 9).map(float),
        accuracy=st.integers(0, 9).map(lambda n: n / 10),
        latency_ms=st.none() | st.integers(1, 9).map(float),
    ),
    min_size=1,
    max_size=6,
)
limits = st.builds(
    Limits,
    max_macs=st.none() | st.integers(1, 9),
    max_energy_j=st.none() | st.integers(1, 9),
    min_accuracy=st.none() | st.sampled_from([0.2, 0.5, 0.8]),
    max_latency_ms=st.none() | st.integers(1, 9),
)


@given(choices, limits)
def test_nothing_that_keeps_the_limits_is_better(choices, limits):
    def keeps(one):
        return (
            (limits.max_macs is None or one.multiply_adds <= limits.max_macs)
            and (limits.max_energy_j is None or one.joules_per_image <= limits.max_energy_j)
            and (limits.min_accuracy is None or one.accuracy >= limits.min_accuracy)
            and (
                limits.max_latency_ms is None
                or (one.latency_ms is not None and one.latency_ms <= limits.max_latency_ms)
            )
        )

    if limits == Limits() or not any(map(keeps, choices)):
        with pytest.raises(RequestError, match="limit"):
            pick(choices, limits)
        return
    found = pick(choices, limits)
    assert keeps(found.choice)
    for other in filter(keeps, choices):
        if limits.min_accuracy is None:
            assert other.accuracy <= found.choice.accuracy
        else:
            assert other.joules_per_image >= found.choice.joules_per_image


NARROW = Choice("net-0.5x", 0.5, 10, 100, 1.0, 0.6)
FULL = Choice("net-1.0x", 1.0, 30, 300, 3.0, 0.8)


def test_the_reason_names_the_choice_and_its_numbers():
    found = pick([NARROW, FULL], Limits(max_macs=200))
    assert found.choice is NARROW
    assert "net-0.5x is the only one of 2 that keeps the limits" in found.why
    assert "0.6000" in found.why
    assert pick([NARROW, FULL], Limits(min_accuracy=0.7)).choice is FULL
    assert pick([NARROW, FULL], Limits(min_accuracy=0.5)).choice is NARROW


def int8(name="net-0.5x-int8", *, file_bytes=900, latency_ms=None, joules=0.1):
    return Choice(name, 0.5, 10, 100, joules, 0.6, "int8", latency_ms, file_bytes)


@pytest.mark.parametrize(
    ("small", "plain_ms", "eligible"),
    [
        (int8(file_bytes=1200), None, False),
        (int8(file_bytes=900), None, True),
        (int8(file_bytes=1200, latency_ms=0.2), 0.1, False),
        (int8(file_bytes=1200, latency_ms=0.05), 0.1, True),
        (int8(file_bytes=900, latency_ms=0.2), 0.1, True),
        (int8(file_bytes=None), None, True),
    ],
)
def test_int8_must_be_smaller_or_faster_than_float32(small, plain_ms, eligible):
    plain = replace(NARROW, latency_ms=plain_ms, file_bytes=1000)
    wide = replace(FULL, latency_ms=plain_ms, file_bytes=100)  # not of its width
    found = pick([plain, small, wide], Limits(min_accuracy=0.5))
    assert found.choice is (small if eligible else plain)
    if not eligible:
        with pytest.raises(RequestError, match="int8: its file is neither smaller nor faster"):
            pick([plain, small, wide], Limits(max_energy_j=0.2))


def test_without_a_fitting_width_every_reason_is_given():
    with pytest.raises(RequestError, match=r"net-0\.5x: 100 .* exceed 50; net-1\.0x: 300"):
        pick([NARROW, FULL], Limits(max_macs=50))


@pytest.mark.parametrize(
    "limits",
    [Limits(), Limits(max_macs=-1), Limits(max_energy_j=float("nan")), Limits(min_accuracy=60),
     Limits(max_latency_ms=float("inf")), Limits(max_energy_j=0)],
)  # fmt: skip
def test_limits_that_make_no_sense(limits):
    with pytest.raises(RequestError, match="--m"):
        pick([NARROW, FULL], limits)


def test_presets_agree_on_ratios_and_have_the_published_values():
    network = ULMobileNet()
    half, full = (multiply_adds(network, width, (1, 28, 28)) for width in (0.5, 1.0))
    for each in PRESETS.values():
        assert each.joules(full) / each.joules(half) == pytest.approx(full / half)
    # 3.09 million multiply-adds of 4.6 pJ; kappa f^2 = 1e-28 * (1e9)^2 = 0.1 nJ each
    assert preset(DEFAULT).joules(full) == pytest.approx(14.2e-6, rel=0.01)
    assert preset("kappa-1e-28-1ghz").joules(full) == pytest.approx(0.309e-3, rel=0.01)
    assert preset("kappa-1e-28-2ghz").joules(full) == pytest.approx(1.23e-3, rel=0.01)
    assert preset("kappa-1e-27-1ghz").joules(full) == pytest.approx(3.09e-3, rel=0.01)
    assert preset(DEFAULT).joules(full, "int8") < preset(DEFAULT).joules(full) / 10


@pytest.mark.parametrize(
    ("exported", "simulated", "macs_per_s"),
    [
        ("horowitz-45nm", "horowitz-45nm", 1e9),
        ("kappa-1e-28-1ghz", "kappa-1e-28", 1e9),
        ("kappa-1e-28-2ghz", "kappa-1e-28", 2e9),
        ("kappa-1e-27-1ghz", "kappa-1e-27", 1e9),
    ],
)
def test_an_export_counts_joules_as_the_simulation_does(exported, simulated, macs_per_s):
    model = ENERGY_PRESETS[simulated]
    assert preset(exported).float32_j == model.joule_per_mac(np.array([macs_per_s]))[0]
    assert preset(exported).source.startswith(model.source)


def test_latencies_are_medians_of_calls_that_take_turns():
    now, order = [0.0], []

    def call(name, durations):
        def one():
            order.append(name)
            now[0] += durations[min(order.count(name) - 1, len(durations) - 1)]

        return one

    slow_start = [50.0] * WARM_UP
    found = latencies_ms(
        {
            "a": call("a", [*slow_start, 0.001, 0.003, 9.0]),
            "b": call("b", [*slow_start, 0.005, 0.005, 0.005]),
        },
        repeats=3,
        clock=lambda: now[0],
    )
    assert found == pytest.approx({"a": 3.0, "b": 5.0})
    assert order == ["a", "b"] * (WARM_UP + 3)
