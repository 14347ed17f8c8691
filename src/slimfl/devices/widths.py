"""Widths as numbers, as people write them, and as indices, as methods use them."""

import numpy as np
from numpy.typing import NDArray

from slimfl.errors import RequestError


def width_indices(
    values: NDArray[np.float64], widths: tuple[float, ...], where: str
) -> NDArray[np.int64]:
    """The index of every device's width; refuses widths that the network does not have."""
    distinct, inverse = np.unique(values, return_inverse=True)
    for value in distinct.tolist():
        if value not in widths:
            known = ", ".join(f"{width:g}" for width in widths)
            raise RequestError(
                f"{where}: the network has no width {value:g}; choose a max_width from {known}"
            )
    return np.searchsorted(widths, distinct)[inverse].astype(np.int64)
