"""What a record says about the tasks that ended in an asynchronous step.

A device can end several tasks before a merge. The lists of a round name a device once, so where
that loses tasks, the record counts them too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from slimfl.round.clock.flights import Flight
from slimfl.round.reasons import REFUSED, outage


def task_fields(
    ended: Sequence[Flight],
    sent: Sequence[tuple[int, ...]],
    arrived: Sequence[tuple[int, ...]],
) -> dict[str, Any]:
    """The fields that count tasks; empty if no device ended two.

    Args:
        ended: The tasks.
        sent: For each task with an update, the segments that were sent.
        arrived: For each of these, the segments that arrived.
    """
    if len({each.device for each in ended}) == len(ended):
        return {}
    silent = Counter(each.device for each in ended if not each.trained)
    reasons = Counter(each.reason for each in ended if not each.trained)
    came = (each for each in ended if each.trained)
    for each, all_of_it, got in zip(came, sent, arrived, strict=True):
        if each.reason == REFUSED:
            reasons[REFUSED] += 1
        elif len(got) < len(all_of_it):
            reasons[outage(all_of_it[len(got)])] += 1
    devices = sorted(silent)
    return {
        "silent": devices,
        "silent_tasks": [silent[device] for device in devices],
        "missing_tasks": dict(sorted(reasons.items())),
    }
