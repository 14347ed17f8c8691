"""Files are replaced atomically, and only plain files are opened."""

import errno
import os
import threading

import pytest

from slimfl.errors import RequestError, RunError
from slimfl.files import (
    NotRegularError,
    UnreadableError,
    atomic_write,
    own_folder,
    parse_json,
    parse_toml,
    read_json,
    read_plain,
    replacing,
    write_atomically,
)
from slimfl.files import open_plain as open_file


@pytest.fixture
def owners(tmp_path):
    """A file of the owner, outside of the folder that is written to."""
    path = tmp_path / "owners.txt"
    path.write_text("precious")
    return path


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path, owners):
    path = tmp_path / "report.html"
    path.symlink_to(owners)
    write_atomically(path, b"new")
    assert path.read_text() == "new"
    assert not path.is_symlink()
    assert owners.read_text() == "precious"


@pytest.mark.parametrize("name", [".report.html.{pid}.tmp", "report.html.tmp"])
def test_a_link_under_a_name_that_can_be_guessed_is_not_followed(tmp_path, owners, name):
    (tmp_path / name.format(pid=os.getpid())).symlink_to(owners)
    with atomic_write(tmp_path / "report.html") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "report.html").read_text() == "new"
    assert owners.read_text() == "precious"


@pytest.mark.parametrize("mode", ["rb", "rb+", "a"])
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_what_is_no_plain_file_is_refused_at_once(tmp_path, owners, kind, mode):
    path = tmp_path / "it"
    match kind:
        case "link":
            path.symlink_to(owners)
        case "dangling":
            path.symlink_to(tmp_path / "elsewhere")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    with pytest.raises(RequestError, match=r"it is a .*then try again") as error:
        open_file(path, mode)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "elsewhere").exists()


def test_a_second_name_of_a_file_is_read_but_not_written_to(tmp_path, owners):
    (tmp_path / "it").hardlink_to(owners)
    assert read_plain(tmp_path / "it") == b"precious"
    for mode in ("rb+", "a"):
        with pytest.raises(RequestError, match="second name"):
            open_file(tmp_path / "it", mode)


def test_a_link_to_a_folder_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    own_folder(tmp_path / "real")
    own_folder(tmp_path / "new")
    assert (tmp_path / "new").is_dir()
    with pytest.raises(RequestError, match="symbolic link"):
        own_folder(tmp_path / "link")


def test_a_block_that_fails_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "it"
    path.write_text("old")

    def fail():
        with replacing(path) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["it"]


def test_what_a_killed_process_left_goes_and_what_is_being_written_stays(tmp_path):
    left = tmp_path / ".it.00ff.tmp"
    left.write_text("half of a file")
    other = tmp_path / ".others.00ff.tmp"
    other.write_text("somebody else's")
    with replacing(tmp_path / "it") as first:
        first.write(b"first")
        write_atomically(tmp_path / "it", b"second")
        assert (tmp_path / "it").read_bytes() == b"second"
    assert (tmp_path / "it").read_bytes() == b"first"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".others.00ff.tmp", "it"]


def test_many_writers_at_once_leave_one_atomic_write(tmp_path):
    path = tmp_path / "it"
    contents = [bytes([letter]) * 100_000 for letter in b"abcd"]

    def write(content):
        for _ in range(25):
            write_atomically(path, content)
            assert path.read_bytes() in contents

    failures = []
    threading.excepthook, before = lambda args: failures.append(args), threading.excepthook
    try:
        threads = [threading.Thread(target=write, args=(content,)) for content in contents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.excepthook = before
    assert not failures
    assert [entry.name for entry in tmp_path.iterdir()] == ["it"]


def test_a_name_of_any_length_can_be_written(tmp_path):
    path = tmp_path / ("é" * 120)
    write_atomically(path, b"x")
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("parse", [parse_json, parse_toml])
@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (b"\xff", "UTF-8"),
        (b"v = " + b"[" * 100_000, "nested|Expecting"),
        (b"[" * 100_000, "nested|Expect|Invalid"),
        (b"", "Expecting"),
        (b"v = 2020-13-40", "date|Expecting|Expected"),
        (b"9" * 5000, "digits|Expected"),
    ],
)
def test_a_strangers_text_is_parsed_or_refused_in_one_sentence(parse, contents, words):
    if not contents and parse is parse_toml:
        return
    with pytest.raises(UnreadableError, match=words) as caught:
        parse(contents)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "sparse.json").open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(NotRegularError, match="more than"):
        read_json(tmp_path / "sparse.json")


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, RunError), (errno.EACCES, RequestError)]
)
def test_an_error_of_writing_is_a_sentence_and_leaves_the_old_file(tmp_path, number, kind):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(kind, match=r"report\.html"), atomic_write(path):
        raise OSError(number, os.strerror(number))
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["old"]
