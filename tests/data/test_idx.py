"""Reading idx files, whole and damaged."""

import gzip
import hashlib
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slimfl.data.formats import read_idx, serialise
from slimfl.errors import RequestError


@pytest.fixture
def read(tmp_path):
    """What is read from a file with some bytes."""

    def read(raw, name="the-file"):
        path = tmp_path / name
        path.write_bytes(raw)
        return read_idx(path)[0]

    return read


@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2**31))
def test_what_was_written_is_read(read, to_idx, shape, seed):
    array = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    sizes = b"".join(size.to_bytes(4, "big") for size in shape)
    raw = bytes([0, 0, 8, len(shape)]) + sizes + array.tobytes()
    assert np.array_equal(read(raw), array)
    assert serialise(array) == to_idx(array) == raw


def test_sizes_above_a_byte_are_big_endian(read, to_idx):
    array = np.arange(300 * 2).reshape(300, 2) % 251
    assert np.array_equal(read(to_idx(array)), array)


@pytest.mark.parametrize("name", ["file", "file.gz"])
@pytest.mark.parametrize("packed", [False, True])
def test_it_is_unpacked_by_content_and_writable_as_torch_wants(tmp_path, to_idx, packed, name):
    raw = to_idx([1, 2, 3])
    (tmp_path / name).write_bytes(gzip.compress(raw) if packed else raw)
    array, checksum = read_idx(tmp_path / name)
    array[0] = 9
    assert array.tolist() == [9, 2, 3]
    assert checksum == hashlib.sha256(raw).hexdigest()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not an idx file"),
        (b"<html>not found</html>", "not an idx file"),
        (b"\0\0\x0d\x01\0\0\0\x01abcd", "not an idx file"),  # floats, not bytes
        (b"\0\0\x08\0x", "0 dimensions"),
        (b"\0\0\x08\x05" + b"\0\0\0\1" * 5 + b"x", "5 dimensions"),
        (b"\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0", "header"),
        (b"\0\0\x08\x01\0\0\0\x05abc", "5 values and has 3"),
        (b"\0\0\x08\x01\0\0\0\x02abc", "2 values and has more"),
        (b"\0\0\x08\x02" + b"\xff" * 8 + bytes(1000), "declares more than"),
    ],
)
def test_a_damaged_file_is_refused_by_name(read, raw, words):
    for contents in (raw, gzip.compress(raw)):
        with pytest.raises(RequestError) as caught:
            read(contents)
        assert "the-file" in str(caught.value)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_every_torn_or_corrupted_copy_is_refused_by_name(read, to_idx):
    raw = to_idx(np.arange(400) ** 2 % 17)
    packed = gzip.compress(raw)
    torn = [raw[:length] for length in range(0, len(raw), 3)]
    torn += [packed[:length] for length in range(2, len(packed), 3)]
    torn += [
        packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :]
        for at in range(10, len(packed) - 8)
    ]
    for contents in torn:
        with pytest.raises(RequestError, match="torn"):
            read(contents, "torn")


def test_what_is_no_file_is_refused_by_name(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, words in (("absent", "absent"), ("", "cannot be read"), ("pipe", "not a regular")):
        with pytest.raises(RequestError, match=words):
            read_idx(tmp_path / name)


def test_a_gzip_bomb_is_unpacked_as_far_as_its_header_declares(read, to_idx):
    bomb = gzip.compress(to_idx(np.zeros((2, 2))) + bytes(100_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(RequestError, match="has more"):
            read(bomb)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
