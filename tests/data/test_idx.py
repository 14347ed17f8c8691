"""Reading idx files, whole and damaged."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slimfl.data.formats import parse, read_bytes, serialise
from slimfl.errors import RequestError


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2**31))
def test_parse_gives_back_what_was_written(shape, seed):
    array = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    sizes = b"".join(size.to_bytes(4, "big") for size in shape)
    raw = bytes([0, 0, 8, len(shape)]) + sizes + array.tobytes()
    assert np.array_equal(parse(raw, "file"), array)


def test_sizes_above_a_byte_are_big_endian(to_idx):
    array = np.arange(300 * 2).reshape(300, 2) % 251
    assert np.array_equal(parse(to_idx(array), "file"), array)


def test_a_parsed_array_can_be_written_to_as_torch_wants(to_idx):
    array = parse(to_idx([1, 2, 3]), "file")
    array[0] = 9
    assert array.tolist() == [9, 2, 3]


@pytest.mark.parametrize("packed", [False, True])
def test_read_bytes_unpacks_by_content_and_not_by_name(tmp_path, packed):
    for name in ("file", "file.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(b"contents") if packed else b"contents")
        assert read_bytes(path) == b"contents"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not an idx file"),
        (b"\0\0\x08", "not an idx file"),
        (b"<html>not found</html>", "not an idx file"),
        (b"\x01\0\x08\x01\0\0\0\x01a", "not an idx file"),
        (b"\0\0\x0d\x01\0\0\0\x01abcd", "not an idx file"),  # floats, not bytes
        (b"\0\0\x08\x03", "header"),
        (b"\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0", "header"),
        (b"\0\0\x08\x01\0\0\0\x05abc", "5"),
        (b"\0\0\x08\x01\0\0\0\x02abc", "3"),
        (b"\0\0\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff", "has 0"),
    ],
)
def test_a_damaged_file_is_refused_by_name(raw, words):
    with pytest.raises(RequestError) as caught:
        parse(raw, "the-file")
    assert "the-file" in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_torn_copy_of_a_file_is_refused(to_idx):
    raw = to_idx(np.arange(12).reshape(3, 4))
    assert parse(raw, "file").shape == (3, 4)
    for length in range(len(raw)):
        with pytest.raises(RequestError):
            parse(raw[:length], "file")


def test_every_truncated_or_corrupted_gz_is_refused_by_name(tmp_path, to_idx):
    packed = gzip.compress(to_idx(np.arange(400) ** 2 % 17))
    path = tmp_path / "torn.gz"
    for length in range(2, len(packed), 3):
        path.write_bytes(packed[:length])
        with pytest.raises(RequestError, match=r"torn\.gz"):
            read_bytes(path)
    for position in range(10, len(packed) - 8):
        path.write_bytes(
            packed[:position] + bytes([packed[position] ^ 0x55]) + packed[position + 1 :]
        )
        with pytest.raises(RequestError, match=r"torn\.gz"):
            read_bytes(path)


def test_a_missing_file_or_a_folder_is_refused_by_name(tmp_path):
    with pytest.raises(RequestError, match="absent"):
        read_bytes(tmp_path / "absent")
    with pytest.raises(RequestError, match="cannot be read"):
        read_bytes(tmp_path)


@pytest.mark.parametrize("shape", [(0,), (5,), (3, 4), (2, 3, 4)])
def test_serialised_as_others_write_it(shape, to_idx):
    array = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    assert serialise(array) == to_idx(array)


@pytest.mark.parametrize("dimensions", [0, 5, 64, 65, 255])
def test_no_array_of_a_dataset_has_so_many_dimensions(dimensions):
    raw = bytes([0, 0, 8, dimensions]) + b"\0\0\0\1" * dimensions + b"x"
    with pytest.raises(RequestError, match=f"{dimensions} dimensions"):
        parse(raw, "the-file")


def test_a_gzip_bomb_is_unpacked_as_far_as_its_header_declares(tmp_path, to_idx):
    import tracemalloc

    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(to_idx(np.zeros((2, 2))) + bytes(100_000_000)))
    tracemalloc.start()
    try:
        with pytest.raises(RequestError, match=r"bomb\.gz .* more data than its header declares"):
            read_bytes(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_header_that_declares_too_much_is_refused_before_anything_is_unpacked(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"\0\0\x08\x02" + b"\xff" * 8 + bytes(1000)))
    with pytest.raises(RequestError, match=r"file\.gz .* declares more than"):
        read_bytes(path)


def test_a_pipe_is_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RequestError, match="not a regular file"):
        read_bytes(tmp_path / "pipe")
