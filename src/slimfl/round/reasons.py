"""Short names for why a device's contribution to a round is missing.

A device that delivered everything it should have sent has no reason.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slimfl.round.plan import Plan

#: It could not be reached.
OFFLINE = "offline"
#: It was reached and did not answer, or nothing usable came.
NO_ANSWER = "no answer"
#: It did not decode the global model.
NO_MODEL = "no model"
#: The method's width exceeds what it can train.
NOT_ABLE = "not able"
#: Its battery is empty or ran out during the work.
BATTERY = "battery"
#: The round ended before its upload did.
DEADLINE = "deadline"
#: Its update was invalid.
REFUSED = "refused"


def outage(segment: int) -> str:
    """Segment (from 0) and those after it were not decoded."""
    return f"outage of segment {segment + 1}"


def missing(
    plan: "Plan", rows: Iterable[int], arrived: Iterable[tuple[int, ...]], refused: Iterable[int]
) -> dict[str, list[int]]:
    """Devices grouped by the reason why something of theirs is missing.

    Args:
        plan: The plan of the round.
        rows: Rows of the plan from which an update came.
        arrived: The segments decoded from each of these rows.
        refused: Devices whose update was refused.
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
