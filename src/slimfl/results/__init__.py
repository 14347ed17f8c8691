"""Reading run folders: typed records, summaries over rounds and seeds, curves as plain lists."""

from slimfl.results.axes import Axis, x_axes
from slimfl.results.batteries import BatteryLine, Moment, battery_line
from slimfl.results.devices import (
    DeviceSummary,
    GroupDeviceSummary,
    delivery,
    device_summary,
    group_device_summaries,
)
from slimfl.results.energy import energy_words
from slimfl.results.expected import expected_of
from slimfl.results.groups import Group, group, title
from slimfl.results.records import RunRecord, find, load
from slimfl.results.run_summary import RunSummary, run_summary
from slimfl.results.seed_summary import GroupSummary, Spread
from slimfl.results.summary import Summary, summaries, summarise

__all__ = [
    "Axis",
    "BatteryLine",
    "DeviceSummary",
    "Group",
    "GroupDeviceSummary",
    "GroupSummary",
    "Moment",
    "RunRecord",
    "RunSummary",
    "Spread",
    "Summary",
    "battery_line",
    "delivery",
    "device_summary",
    "energy_words",
    "expected_of",
    "find",
    "group",
    "group_device_summaries",
    "load",
    "run_summary",
    "summaries",
    "summarise",
    "title",
    "x_axes",
]
