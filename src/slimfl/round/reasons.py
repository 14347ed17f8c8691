"""Short names for why a device's contribution to a round is missing."""

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

#: Its update changed too much, and was bounded.
CLIPPED = "clipped"

#: `stopped_by` of a run in which no device can work any more.
NOBODY_LEFT = "no device left"


def outage(segment: int) -> str:
    """Segment (from 0) and those after it were not decoded."""
    return f"outage of segment {segment + 1}"
