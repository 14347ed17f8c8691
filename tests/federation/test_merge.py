import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slimfl.federation import RefusedUpdateError, SegmentAverage
from slimfl.nn import Segments

SEGMENTS = Segments(np.array([0, 0, 1, 0, 1, 2], np.uint8), (0.25, 0.5, 1.0))
LAST = np.arange(6, dtype=np.float32)


def test_each_segment_is_the_mean_over_the_devices_that_delivered_it():
    average = SegmentAverage(SEGMENTS, LAST)
    average.add(np.full(6, 2, np.float32), (0, 1, 2))
    average.add(np.full(6, 4, np.float32), (0, 1))
    average.add(np.full(6, 9, np.float32), (0,))
    average.add(np.full(6, 100, np.float32), ())
    np.testing.assert_array_equal(average.result(), [5, 5, 3, 5, 3, 2])


@given(
    st.integers(0, 8).flatmap(lambda n: st.lists(st.integers(0, 3), min_size=n, max_size=n)),
    st.booleans(),
    st.sampled_from(["keep", "zero"]),
)
def test_equals_a_naive_loop_over_parameters(counts, weighted, missing):
    random = np.random.default_rng(len(counts))
    updates = [random.normal(size=6).astype(np.float32) for _ in counts]
    weights = [float(random.integers(1, 50)) if weighted else 1.0 for _ in counts]
    average = SegmentAverage(SEGMENTS, LAST, missing)
    for update, count, weight in zip(updates, counts, weights, strict=True):
        average.add(update, range(count), weight)
    result = average.result()
    for i, segment in enumerate(SEGMENTS.of):
        pairs = [(w, u[i]) for u, c, w in zip(updates, counts, weights, strict=True) if c > segment]
        if pairs:
            expected = sum(w * float(v) for w, v in pairs) / sum(w for w, _ in pairs)
        elif missing == "zero" and any(counts):
            expected = 0.0
        else:
            expected = LAST[i]
        assert result[i] == pytest.approx(expected, rel=1e-6)


def test_case_3_skips_the_aggregation_even_when_missing_means_zero():
    np.testing.assert_array_equal(SegmentAverage(SEGMENTS, LAST, "zero").result(), LAST)


def test_the_result_is_not_the_last_model_itself():
    last = LAST.copy()
    SegmentAverage(SEGMENTS, last).result()[:] = 7
    np.testing.assert_array_equal(last, LAST)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_never_enters_the_average(bad):
    average = SegmentAverage(SEGMENTS, LAST)
    broken = np.ones(6, np.float32)
    broken[5] = bad
    with pytest.raises(RefusedUpdateError, match="NaN or an infinity"):
        average.add(broken, (0,))
    np.testing.assert_array_equal(average.result(), LAST)


@pytest.mark.parametrize("shape", [(5,), (7,), (1, 6), ()])
def test_a_wrong_shape_is_refused(shape):
    average = SegmentAverage(SEGMENTS, LAST)
    with pytest.raises(RefusedUpdateError, match="shape"):
        average.add(np.ones(shape, np.float32), (0,))
    np.testing.assert_array_equal(average.result(), LAST)
