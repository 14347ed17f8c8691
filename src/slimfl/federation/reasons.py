"""Why something of a device is missing from a round, in one word.

A device that was asked and delivered all that it was to send has no reason here.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slimfl.federation.plan import Plan

#: It could not be reached.
OFFLINE = "offline"
#: It was reached and did not answer, or nothing usable came.
NO_ANSWER = "no answer"
#: It did not decode the global model.
NO_MODEL = "no model"
#: The method's width is wider than it trains.
NOT_ABLE = "not able"
#: Its battery is empty, or was before its work was done.
BATTERY = "battery"
#: The round ended before its upload did.
DEADLINE = "deadline"
#: Its update made no sense.
REFUSED = "refused"


def outage(segment: int) -> str:
    """Segment (from 0) was not decoded, nor what came after it."""
    return f"outage of segment {segment + 1}"


def missing(
    plan: "Plan", rows: Iterable[int], arrived: Iterable[tuple[int, ...]], refused: Iterable[int]
) -> dict[str, list[int]]:
    """The devices by the reason for which something of theirs is missing.

    Args:
        plan: of the round.
        rows: of the plan, from which an update came.
        arrived: the segments that were decoded of each.
        refused: devices whose update was refused.
    """
    reasons = dict(plan.reasons)
    ids = plan.devices.ids.tolist()
    silent = {*range(len(ids))}
    for row, segments in zip(rows, arrived, strict=True):
        silent.discard(row)
        sent = plan.signals[row].segments_decoded(len(plan.signals[row].messages))
        if len(segments) < len(sent):
            reasons[ids[row]] = outage(sent[len(segments)])
    reasons |= {ids[row]: NO_ANSWER for row in silent}
    reasons |= dict.fromkeys(refused, REFUSED)
    found: dict[str, list[int]] = {}
    for device in sorted(reasons):
        found.setdefault(reasons[device], []).append(device)
    return dict(sorted(found.items()))
