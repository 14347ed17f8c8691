"""Figures for papers and the README. Every function returns a figure; `save` writes it.

Matplotlib is imported when the first figure is drawn.
"""

from slimfl.report.figures.cell_map import cell_figure
from slimfl.report.figures.drawing import save
from slimfl.report.figures.link import (
    bound_figure,
    preference_figure,
    probability_figure,
    split_figure,
)
from slimfl.report.figures.runs import accuracy_figure, partition_figure

__all__ = [
    "accuracy_figure",
    "bound_figure",
    "cell_figure",
    "partition_figure",
    "preference_figure",
    "probability_figure",
    "save",
    "split_figure",
]
