"""Figures, tables and the HTML report, all from run folders.

Matplotlib is imported only when something is drawn with it.
"""

from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names

if TYPE_CHECKING:
    from slimfl.report.explorer import write_explorer
    from slimfl.report.figures import (
        accuracy_figure,
        bound_figure,
        cell_figure,
        partition_figure,
        preference_figure,
        probability_figure,
        save,
        split_figure,
    )
    from slimfl.report.pages.conclusions import caveats, conclusions_by_scene
    from slimfl.report.pages.run_report import write_report
    from slimfl.report.tables import clock_tables, closing_table, compare_table, devices_tables
else:
    # drawing a link needs no data frames, which take a second to import
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.report.explorer": ["write_explorer"],
            "slimfl.report.figures": [
                "accuracy_figure",
                "bound_figure",
                "cell_figure",
                "partition_figure",
                "preference_figure",
                "probability_figure",
                "save",
                "split_figure",
            ],
            "slimfl.report.pages.conclusions": ["caveats", "conclusions_by_scene"],
            "slimfl.report.pages.run_report": ["write_report"],
            "slimfl.report.tables": [
                "clock_tables",
                "closing_table",
                "compare_table",
                "devices_tables",
            ],
        },
    )

__all__ = [
    "accuracy_figure",
    "bound_figure",
    "caveats",
    "cell_figure",
    "clock_tables",
    "closing_table",
    "compare_table",
    "conclusions_by_scene",
    "devices_tables",
    "partition_figure",
    "preference_figure",
    "probability_figure",
    "save",
    "split_figure",
    "write_explorer",
    "write_report",
]
