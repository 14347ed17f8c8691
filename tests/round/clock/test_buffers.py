"""Segment buffers against plain counting, and FedBuff's step against its formula."""

import numpy as np
import pytest

from slimfl.methods import RunningMean, Work
from slimfl.radio import Signal
from slimfl.round.asynchronous import Flight, SegmentBuffers, discount, moved_to
from slimfl.round.uploads import Upload


def landed(device, arrived, sent=(0, 1), versions=(0, 0)):
    signal = Signal(tuple((segment,) for segment in sent), None)
    upload = Upload(0, device, Work((0,), signal.messages), signal, decoded=len(arrived))
    upload.parameters = np.zeros(1, np.float32)
    return Flight(upload, 1, 0, 0.0, 0.0, versions, 0.0, 0.0)


def test_every_segment_fills_by_itself():
    buffers = SegmentBuffers(2, size=2, count="arrivals")
    buffers.add(landed(0, (0,)))
    buffers.add(landed(1, (0, 1)))
    assert buffers.due() == (0,)
    taken = buffers.take(buffers.due())
    assert [(one.device, parts) for one, parts in taken] == [(0, (0,)), (1, (0,))]
    buffers.versions[0] += 1
    assert buffers.places.tolist() == [0, 1]
    buffers.add(landed(2, (0, 1), versions=(0, 0)))
    assert buffers.due() == (1,)
    [(first, one), (second, two)] = buffers.take((1,))
    assert (first.device, one, second.device, two) == (1, (1,), 2, (1,))
    assert buffers.staleness(second, 0) == 1
    assert buffers.staleness(second, 1) == 0
    assert [parts for _, parts in buffers.waiting] == [(0,)]


def test_a_lost_upload_takes_a_place():
    buffers = SegmentBuffers(2, size=2)
    buffers.add(landed(0, ()))
    buffers.add(landed(1, (0,)))
    assert buffers.due() == (0, 1)
    assert [parts for _, parts in buffers.take((0, 1))] == [(0,)]
    assert buffers.waiting == []


def test_a_narrow_device_takes_no_place_in_the_second_buffer():
    buffers = SegmentBuffers(2, size=1)
    buffers.add(landed(0, (0,), sent=(0,)))
    assert buffers.due() == (0,)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_fedbuffs_step(exponent):
    """w + (1 / K) sum of s(tau) delta, worked out in double precision."""
    random = np.random.default_rng(3)
    now = random.normal(size=6).astype(np.float32)
    updates = []
    for staleness in (0, 1, 3):
        began = now if staleness == 0 else random.normal(size=6).astype(np.float32)
        updates.append((staleness, began, random.normal(size=6).astype(np.float32)))
    mean = RunningMean(now)
    for staleness, began, parameters in updates:
        mean.add(
            moved_to(now, began, parameters, [(slice(None), staleness)], exponent), slice(None)
        )
    expected = now.astype(np.float64)
    for staleness, began, parameters in updates:
        change = parameters.astype(np.float64) - began
        expected = expected + change / (1 + staleness) ** exponent / 3
    np.testing.assert_allclose(mean.result(), expected, rtol=2e-6, atol=1e-6)


def test_what_is_fresh_stays_as_it_came():
    now, parameters = np.ones(4, np.float32), np.full(4, 0.1, np.float32)
    assert moved_to(now, now, parameters, [(slice(None), 0)], 0.5) is parameters
    parts = [(np.array([0, 1]), 0), (np.array([2, 3]), 1)]
    moved = moved_to(now, np.zeros(4, np.float32), parameters, parts, 0.5)
    assert moved[:2].tolist() == parameters[:2].tolist()
    np.testing.assert_allclose(moved[2:], 1 + discount(1, 0.5) * 0.1, rtol=1e-6)
