"""Reading run folders: typed records, frames, summaries over rounds and seeds."""

from slimfl.results.curves import BatteryLine, battery_line, x_axes
from slimfl.results.devices import DeviceSummary, delivery, device_summary
from slimfl.results.expected import expected_of
from slimfl.results.groups import Group, group, title
from slimfl.results.records import RunRecord, find, load
from slimfl.results.run_summary import RunRow, run_summary
from slimfl.results.summary import GroupRow, Summary, summaries, summarise

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
