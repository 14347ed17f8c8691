"""A file is written completely or not at all, and remains of killed processes are removed."""

import errno
import multiprocessing
import os
import signal

import pytest

from slimfl.errors import RequestError, RunError
from slimfl.files import atomic_write


def temporaries(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]


def begin_and(what, path):
    with atomic_write(path) as temporary:
        temporary.write_text("half")
        what(path)


def die(path):
    os.kill(os.getpid(), signal.SIGKILL)


def child(what, path):
    process = multiprocessing.get_context("fork").Process(target=begin_and, args=(what, path))
    process.start()
    return process


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "report [1].html"
    path.write_text("old")
    child(die, path).join(60)
    assert len(temporaries(tmp_path)) == 1
    assert path.read_text() == "old"
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert temporaries(tmp_path) == []


def test_the_temporary_file_of_a_living_process_stays(tmp_path):
    path = tmp_path / "report.html"
    reading, writing = os.pipe()

    def wait(path):
        os.write(writing, b".")
        os.read(end, 1)

    end, finish = os.pipe()
    process = child(wait, path)
    os.read(reading, 1)
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert len(temporaries(tmp_path)) == 1
    os.write(finish, b".")
    process.join(60)
    assert process.exitcode == 0
    assert path.read_text() == "half"
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, RunError), (errno.EACCES, RequestError)]
)
def test_an_error_is_a_sentence_and_leaves_the_old_file(tmp_path, number, kind):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(kind, match=r"report\.html"), atomic_write(path):
        raise OSError(number, os.strerror(number))
    assert path.read_text() == "old"
    assert temporaries(tmp_path) == []


def test_a_link_of_the_temporary_name_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".report.html.{os.getpid()}.tmp").symlink_to(victim)
    with atomic_write(tmp_path / "report.html") as temporary:
        temporary.write_text("new")
    assert victim.read_text() == "precious"
