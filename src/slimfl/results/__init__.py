"""Reading run folders: typed records, frames, summaries over rounds and seeds."""

from typing import TYPE_CHECKING

from slimfl.lazy import lazy_names

if TYPE_CHECKING:
    from slimfl.results.curves import BatteryLine, battery_line, x_axes
    from slimfl.results.devices import DeviceSummary, delivery, device_summary
    from slimfl.results.expected import expected_of
    from slimfl.results.groups import Group, group, title
    from slimfl.results.per_run import RunRow, run_summary
    from slimfl.results.records import RunRecord, find, load
    from slimfl.results.summary import GroupRow, Summary, summaries, summarise
else:
    # drawing a link needs no data frames, which take a second to import
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "slimfl.results.curves": ["BatteryLine", "battery_line", "x_axes"],
            "slimfl.results.devices": ["DeviceSummary", "delivery", "device_summary"],
            "slimfl.results.expected": ["expected_of"],
            "slimfl.results.groups": ["Group", "group", "title"],
            "slimfl.results.records": ["RunRecord", "find", "load"],
            "slimfl.results.per_run": ["RunRow", "run_summary"],
            "slimfl.results.summary": ["GroupRow", "Summary", "summaries", "summarise"],
        },
    )

__all__ = [
    "BatteryLine",
    "DeviceSummary",
    "Group",
    "GroupRow",
    "RunRecord",
    "RunRow",
    "Summary",
    "battery_line",
    "delivery",
    "device_summary",
    "expected_of",
    "find",
    "group",
    "load",
    "run_summary",
    "summaries",
    "summarise",
    "title",
    "x_axes",
]
