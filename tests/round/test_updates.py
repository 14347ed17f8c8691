"""Updates that must never enter a model."""

import numpy as np
import pytest

from slimfl.round.updates import RefusedUpdateError, check_update


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused(bad):
    broken = np.ones(6, np.float32)
    broken[5] = bad
    with pytest.raises(RefusedUpdateError, match="NaN or an infinity"):
        check_update(broken, 6)


@pytest.mark.parametrize("shape", [(5,), (7,), (1, 6), ()])
def test_a_wrong_shape_is_refused(shape):
    with pytest.raises(RefusedUpdateError, match="shape"):
        check_update(np.ones(shape, np.float32), 6)


def test_a_sound_update_passes():
    check_update(np.ones(6, np.float32), 6)
