"""The active width: scoped, nested, one for each thread."""

import threading

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from slimfl.nn import SlimLinear, active_width, at_width, channels_at


def test_the_width_is_full_outside_and_restored_after_nesting_and_errors():
    assert active_width() == 1.0
    with at_width(0.5):
        assert active_width() == 0.5
        with at_width(0.25):
            assert active_width() == 0.25
        assert active_width() == 0.5
        with pytest.raises(RuntimeError), at_width(0.75):
            raise RuntimeError
        assert active_width() == 0.5
    assert active_width() == 1.0


def test_threads_with_different_widths_do_not_disturb_each_other():
    layer = SlimLinear(4, 8, slim_in=False)
    turns = threading.Barrier(3, timeout=20)
    found = {}

    def work(name, width):
        seen = []
        with at_width(width):
            for _ in range(20):
                turns.wait()  # all threads are inside their own width now
                seen.append((active_width(), layer(torch.ones(1, 4)).shape[1]))
                turns.wait()
        seen.append((active_width(), 8))
        found[name] = seen

    threads = [
        threading.Thread(target=work, args=(name, width))
        for name, width in [("narrow", 0.25), ("half", 0.5)]
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(40):
            turns.wait()
            assert active_width() == 1.0
    finally:
        for thread in threads:
            thread.join(20)
    assert found["narrow"] == [(0.25, 2)] * 20 + [(1.0, 8)]
    assert found["half"] == [(0.5, 4)] * 20 + [(1.0, 8)]


@given(st.integers(1, 4096), st.integers(1, 1000))
@example(100, 70)  # 100 * 0.07 is a little more than 7 in floating point
def test_channels_are_the_share_rounded_up_in_exact_arithmetic(total, thousandths):
    exact = -(-total * thousandths // 1000)
    assert channels_at(total, thousandths / 1000) == exact


@given(st.integers(1, 4096), st.floats(1e-6, 1), st.floats(1e-6, 1))
def test_channels_are_nested_and_never_none(total, one, other):
    narrow, wide = sorted((one, other))
    assert 1 <= channels_at(total, narrow) <= channels_at(total, wide) <= total
    assert channels_at(total, 1.0) == total
