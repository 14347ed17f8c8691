"""Which width is picked, against a naive search; energy presets; latency with a fake clock."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slimfl.devices.computing_energy import ENERGY_PRESETS, NONE
from slimfl.errors import RequestError
from slimfl.export.exporting import WARM_UP, latencies_ms
from slimfl.export.manifest import DEFAULT_ENERGY, File, Model, energy
from slimfl.export.picking import Limits, pick
from slimfl.nn import ULMobileNet, multiply_adds

choices = st.lists(
    st.builds(
        Model,
        name=st.just("m"),
        precision=st.just("float32"),
        bits=st.just(32),
        files=st.just([]),
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


def model(name, width, work, joules, accuracy, **values):
    given = {"precision": "float32", "parameters": 10, "bits": 320, "files": [], **values}
    return Model(
        name=name, width=width, multiply_adds=work, joules_per_image=joules, accuracy=accuracy,
        **given,
    )  # fmt: skip


NARROW = model("net-0.5x", 0.5, 100, 1.0, 0.6)
FULL = model("net-1.0x", 1.0, 300, 3.0, 0.8)


def test_the_reason_names_the_choice_and_its_numbers():
    found = pick([NARROW, FULL], Limits(max_macs=200))
    assert found.choice is NARROW
    assert "net-0.5x is the only one of 2 that keeps the limits" in found.why
    assert "0.6000" in found.why
    assert pick([NARROW, FULL], Limits(min_accuracy=0.7)).choice is FULL
    assert pick([NARROW, FULL], Limits(min_accuracy=0.5)).choice is NARROW


def int8(name="net-0.5x-int8", *, file_bytes=900, latency_ms=None, joules=0.1):
    values = {"precision": "int8", "latency_ms": latency_ms, "files": onnx(file_bytes)}
    return model(name, 0.5, 100, joules, 0.6, **values)


def onnx(size):
    return [File(format="onnx", name="m.onnx", bytes=size, sha256="0" * 64)] if size else []


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
    plain = NARROW.model_copy(update={"latency_ms": plain_ms, "files": onnx(1000)})
    wide = FULL.model_copy(update={"files": onnx(100)})  # not of its width
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


def test_an_export_counts_joules_as_the_simulation_does():
    for name, values in ENERGY_PRESETS.items():
        if name != NONE:
            found = energy(name, 2e9)
            assert found.float32_j == values.joule_per_mac(np.array([2e9]))[0]
            assert found.source.startswith(values.source)
    # 3.09 million multiply-adds of 4.6 pJ; kappa f^2 = 1e-28 * (1e9)^2 = 0.1 nJ each
    full = multiply_adds(ULMobileNet(), 1.0, (1, 28, 28))
    horowitz = energy(DEFAULT_ENERGY)
    assert horowitz.joules(full) == pytest.approx(14.2e-6, rel=0.01)
    assert horowitz.joules(full, "int8") == pytest.approx(0.926e-6, rel=0.01)
    assert energy("kappa-1e-28", 1e9).joules(full) == pytest.approx(0.309e-3, rel=0.01)
    for speed in (None, 0.0, float("nan")):
        with pytest.raises(RequestError, match="--macs-per-s"):
            energy("kappa-1e-28", speed)


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
