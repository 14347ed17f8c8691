"""When a round ends: against a plain walk over the uploads in the order of (time, device)."""

import numpy as np
import pytest

from slimfl.round.clock import WorkCosts, round_end


def walked(ids, finished, ends, heard, deadline, first):
    """(duration, ids in time): one upload after the other."""
    in_time, clock, count = [], 0.0, 0
    for at, device, ending, loud in sorted(zip(finished, ids, ends, heard, strict=True)):
        if not ending or (deadline is not None and at > deadline):
            continue
        in_time.append(device)
        clock = at
        count += loud
        if first is not None and count == first:
            return clock, sorted(in_time)
    if deadline is not None and len(in_time) < len(ids):
        clock = deadline
    return clock, sorted(in_time)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("deadline", [None, 3.0])
@pytest.mark.parametrize("first", [None, 1, 4, 12])
def test_like_a_walk(seed, deadline, first):
    random = np.random.default_rng(seed)
    count = 8
    ids = random.choice(50, count, replace=False)
    finished = random.integers(1, 6, count).astype(float)  # many equal times
    ends, heard = random.random(count) < 0.8, random.random(count) < 0.7
    found = round_end(ids, finished, ends, heard, deadline_s=deadline, first=first)
    duration, in_time = walked(ids, finished, ends, heard, deadline, first)
    assert found[0] == duration
    assert sorted(ids[found[1]].tolist()) == in_time


def test_nobody_takes_no_time():
    nobody = np.zeros(0)
    none = nobody.astype(bool)
    assert round_end(nobody.astype(int), nobody, none, none)[0] == 0.0


def test_what_is_done_when_the_round_ends():
    seconds = np.array([1.0, 1.0, 0.0]), np.array([4.0, 2.0, 0.0]), np.array([2.0, 2.0, 1])
    times = WorkCosts(np.arange(3), *seconds, np.zeros(3), np.zeros(3), np.ones(3, bool))
    assert times.finished_s.tolist() == [7.0, 5.0, 1.0]
    assert times.trained_share(4.0).tolist() == [0.75, 1.0, 1.0]
    assert times.sent_share(4.0).tolist() == [0.0, 0.5, 1.0]
    assert times.trained_share(0.5).tolist() == [0.0, 0.0, 1.0]
