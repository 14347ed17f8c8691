"""The store of states behaves like a dictionary, whichever part of it is on disk."""

import random
import threading

import numpy as np
import pytest

from slimfl.engines import device_states
from slimfl.engines.device_states import DeviceStates, read_contents

SIZE = 500
ROW = 4 * (2 * SIZE + 1)


def state(value):
    return {
        "step": np.array(value, np.float32),
        "exp_avg": np.full(SIZE, value, np.float32),
        "exp_avg_sq": np.full(SIZE, -value, np.float32),
    }


def assert_holds(states, expected, devices):
    for device in range(devices):
        found = states.get(device)
        if device not in expected:
            assert found is None
            continue
        assert found.keys() == state(0).keys()
        for name, value in state(expected[device]).items():
            assert found[name].shape == value.shape
            np.testing.assert_array_equal(found[name], value)


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(device_states, "MEMORY_BYTES", 7 * ROW)
    monkeypatch.setattr(device_states, "INLINE_BYTES", 3 * ROW)
    monkeypatch.setattr(device_states, "SMALL_FILES", 12)


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_uses_is_that_of_a_dictionary(small_limits, tmp_path, seed):
    """Put, get, save, and go back to either of the last two saves, as a resumed run does."""
    chance = random.Random(seed)
    states = DeviceStates(keep=True)
    states.folder = tmp_path
    expected, saves, devices = {}, [], 40
    for value in range(1, 600):
        device = chance.randrange(devices)
        states.put(device, state(value))
        expected[device] = value
        assert states._fresh_bytes <= 7 * ROW
        if chance.random() < 0.2:
            saves = [*saves, (states.save(), dict(expected))][-2:]
            needed = {file.path for files, _ in saves for file in files}
            for path in set(tmp_path.iterdir()) - needed:
                path.unlink()
            rows = sum(file.rows for file in saves[-1][0])
            assert rows <= 2 * len(expected), "at most half is out of date"
        if chance.random() < 0.03 and saves:
            kept = chance.randrange(len(saves))
            files, expected = saves[kept][0], dict(saves[kept][1])
            saves = saves[: kept + 1]
            states = DeviceStates(keep=True)
            states.folder = tmp_path
            states.reopen([(file, read_contents(file.path)) for file in files])
            assert_holds(states, expected, devices)
    assert_holds(states, expected, devices)
    exported = states.export()
    again = DeviceStates(keep=True)
    again.restore(exported)
    assert_holds(again, expected, devices)


def test_only_what_changed_is_written(small_limits, tmp_path):
    states = DeviceStates(keep=True)
    states.folder = tmp_path
    for device in range(30):
        states.put(device, state(device))
    first = {file.path for file in states.save()}
    before = {path: path.stat().st_mtime_ns for path in first}
    states.put(3, state(100))
    states.put(4, state(101))
    new = [file for file in states.save() if file.path not in first]
    assert [file.rows for file in new] == [2]
    assert {path: path.stat().st_mtime_ns for path in first} == before


def test_many_small_files_are_joined(small_limits, tmp_path):
    states = DeviceStates(keep=True)
    states.folder = tmp_path
    for device in range(100):
        states.put(device, state(device))
        files = states.save()
        assert len(files) <= 12 + 100 // 3
    assert_holds(states, {device: device for device in range(100)}, 100)


def test_without_a_folder_the_files_go_with_the_store(small_limits):
    states = DeviceStates(keep=True)
    for value in range(200):
        states.put(value % 50, state(value))
    folder = states._place_for_files()
    assert list(folder.iterdir())
    rows = sum(file.rows for file in states._files.values())
    assert len(list(folder.iterdir())) == len(states._files), "files that are not used are gone"
    assert rows <= 100
    assert_holds(states, {value % 50: value for value in range(200)}, 50)
    del states
    assert not folder.exists()


def test_threads_may_use_it_side_by_side(small_limits, tmp_path):
    states = DeviceStates(keep=True)
    states.folder = tmp_path

    def use(first):
        for value in range(40):
            for device in range(first, 40, 4):
                states.put(device, state(value))
                assert states.get(device)["exp_avg"][0] == value

    failures = []
    threading.excepthook, before = lambda args: failures.append(args), threading.excepthook
    try:
        threads = [threading.Thread(target=use, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.excepthook = before
    assert not failures
    assert_holds(states, dict.fromkeys(range(40), 39), 40)


def test_nothing_is_kept_where_nothing_is_to_be(tmp_path):
    states = DeviceStates(keep=False)
    states.put(1, state(1))
    assert states.get(1) is None
    assert states.export() == {}
