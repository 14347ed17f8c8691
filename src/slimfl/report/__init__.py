"""What a person sees: figures, tables and the HTML report, all from run folders.

Matplotlib and Plotly are imported by what draws with them, when it draws.
"""

from slimfl.report.figures import (
    accuracy_figure,
    bound_figure,
    partition_figure,
    probability_figure,
    save,
    split_figure,
)
from slimfl.report.pages.conclusions import caveats, headline
from slimfl.report.pages.run_report import write_report
from slimfl.report.tables.console import closing_table, compare_table
from slimfl.results.expected import expected_of
from slimfl.results.groups import Group, group, title
from slimfl.results.records import RunRecord, find, load
from slimfl.results.run_summary import RunRow, run_row
from slimfl.results.seed_summary import GroupRow, Spread
from slimfl.results.summary import Summary, summaries, summarise

__all__ = [
    "Group",
    "GroupRow",
    "RunRecord",
    "RunRow",
    "Spread",
    "Summary",
    "accuracy_figure",
    "bound_figure",
    "caveats",
    "closing_table",
    "compare_table",
    "expected_of",
    "find",
    "group",
    "headline",
    "load",
    "partition_figure",
    "probability_figure",
    "run_row",
    "save",
    "split_figure",
    "summaries",
    "summarise",
    "title",
    "write_report",
]
