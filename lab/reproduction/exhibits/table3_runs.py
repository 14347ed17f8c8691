"""The runs behind tables III and VII and figure 7: channel x alpha x method x seed."""

from __future__ import annotations

from lab.reproduction.cells.cell import Cell, cell
from lab.reproduction.cells.scale import ALPHAS, Scale
from lab.reproduction.exhibits import exhibit
from lab.reproduction.exhibits.exhibit import Final, Runs

CHANNELS = ("good", "poor")
METHODS = ("slimfl", "vanilla-0.5x", "vanilla-1.0x")
#: (method, width) of every curve of the paper, in the order of table III.
CURVES = (
    ("slimfl", "0.5x"),
    ("slimfl", "1.0x"),
    ("vanilla-0.5x", "0.5x"),
    ("vanilla-1.0x", "1.0x"),
)
NAMES = {
    ("slimfl", "0.5x"): "SlimFL-0.5x",
    ("slimfl", "1.0x"): "SlimFL-1.0x",
    ("vanilla-0.5x", "0.5x"): "Vanilla FL-0.5x",
    ("vanilla-1.0x", "1.0x"): "Vanilla FL-1.0x",
}


def setting(scale: Scale, channel: str, alpha: float, method: str) -> list[Cell]:
    """One setting with every seed."""
    return [
        cell(scale, method, alpha=alpha, channel=channel, seed=seed) for seed in range(scale.seeds)
    ]


def all_cells(scale: Scale) -> list[Cell]:
    """The whole grid, one seed after the other, so that early results cover all settings."""
    columns = [
        setting(scale, channel, alpha, method)
        for alpha in ALPHAS
        for channel in reversed(CHANNELS)
        for method in METHODS
    ]
    return [cells[seed] for seed in range(scale.seeds) for cells in columns]


def final(
    scale: Scale, runs: Runs, channel: str, alpha: float, method: str, width: str
) -> Final | None:
    """The final accuracy of one setting."""
    cells = setting(scale, channel, alpha, method)
    return exhibit.final(runs, cells, width, scale.last_rounds(alpha))
