"""Reading run folders: typed records, summaries over rounds and seeds, curves as plain lists."""

from slimfl.results.devices import (
    DeviceSummary,
    GroupDeviceSummary,
    delivery,
    device_summary,
    group_device_summaries,
)
from slimfl.results.expected import expected_of
from slimfl.results.groups import Group, group, title
from slimfl.results.records import RunRecord, find, load
from slimfl.results.run_summary import RunSummary, run_summary
from slimfl.results.seed_summary import GroupSummary, Spread
from slimfl.results.summary import Summary, summaries, summarise

__all__ = [
    "DeviceSummary",
    "Group",
    "GroupDeviceSummary",
    "GroupSummary",
    "RunRecord",
    "RunSummary",
    "Spread",
    "Summary",
    "delivery",
    "device_summary",
    "expected_of",
    "find",
    "group",
    "group_device_summaries",
    "load",
    "run_summary",
    "summaries",
    "summarise",
    "title",
]
