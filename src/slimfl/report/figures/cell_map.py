"""A map of the devices, coloured by how often they are heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from slimfl.devices import Population
from slimfl.report.figures import colours
from slimfl.report.figures.drawing import grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: More devices than this are thinned evenly.
MOST_POINTS = 5_000

_MARKERS = ("v", "s", "D", "^", "P")


def cell_figure(
    population: Population, delivered: NDArray[np.float64], widths: tuple[float, ...]
) -> Figure:
    """One map per segment; the shape of a point is the widest width of its device.

    `delivered` [device, segment] is how often each arrives.
    """
    rows = np.linspace(0, len(population) - 1, min(len(population), MOST_POINTS)).astype(np.int64)
    shown, values = population.take(rows), delivered[rows]
    count = values.shape[1]
    with grid(1, count, 3.6 * count + 0.8, 3.9) as (figure, all_axes):
        for segment, axes in enumerate(all_axes):
            for index, width in enumerate(widths):
                some = shown.max_width == index
                if some.any():
                    full = index == len(widths) - 1
                    axes.scatter(
                        shown.x_m[some], shown.y_m[some], s=26, edgecolor="#5b6670", linewidth=0.4,
                        c=[colours.delivery(share) for share in values[some, segment].tolist()],
                        marker="o" if full else _MARKERS[index % len(_MARKERS)],
                        label=f"trains up to {width}x",
                    )  # fmt: skip
            axes.plot(0, 0, marker="+", color="black", markersize=10)
            axes.set(xlabel="m", title=f"segment {segment + 1}: heard in % of rounds")
            axes.set_aspect("equal", adjustable="datalim")
        _scale(figure, all_axes)
        all_axes[0].set_ylabel("m")
        if len(np.unique(shown.max_width)) > 1:
            all_axes[0].legend(loc="upper left", handletextpad=0.3)
    return figure


def _scale(figure: Figure, all_axes: list) -> None:  # type: ignore[type-arg]
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    steps = [colours.delivery(share) for share in np.linspace(0, 1, 51).tolist()]
    colour_map = LinearSegmentedColormap.from_list("delivery", steps)
    mappable = ScalarMappable(Normalize(0, 100), colour_map)
    figure.colorbar(mappable, ax=all_axes, shrink=0.8, label="%")
