"""A run folder from a stranger: its links and pipes neither reach the owner's files nor hang."""

import os
import shutil
import signal

import pytest

import slimfl
from slimfl.errors import RequestError
from tests import asking

SETTINGS = {
    "rounds": 2,
    "data__dataset": "synthetic",
    "data__train_samples": 300,
    "data__test_samples": 50,
    "training__steps": 1,
    "threads": 1,
}


@pytest.fixture(scope="module")
def received_once(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "received"
    asking.run(out=path, **SETTINGS)
    (path / ".lock").unlink()
    toml = path / "experiment.toml"
    toml.write_text(toml.read_text().replace("rounds = 2", "rounds = 3"))
    return path


@pytest.fixture
def received(received_once, tmp_path):
    return shutil.copytree(received_once, tmp_path / "received")


@pytest.fixture
def patience():
    """What waits for a pipe is ended."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it hangs"))
    signal.alarm(60)
    yield
    signal.alarm(0)


PLACES = [
    ".lock",
    "metrics.jsonl",
    "metrics.jsonl.tmp",
    "partition.json",
    "run.log",
    "checkpoints/round-00000002.safetensors",
    "checkpoints/round-00000003.safetensors",
    "checkpoints/.round-00000003.safetensors.00.tmp",
    "checkpoints/devices-00000000.safetensors",
]


def put(path, make):
    path.unlink(missing_ok=True)
    make(path)


def resume(path):
    """Finish the run; returns what is said where it is refused."""
    try:
        slimfl.resume(path)
    except RequestError as error:
        return str(error)
    return None


@pytest.mark.parametrize("place", PLACES)
def test_a_link_does_not_reach_the_owners_file(received, tmp_path, place):
    """With the same contents as the real file, so that a reader notices no difference."""
    owners = tmp_path / "owners"
    before = (received / place).read_bytes() if (received / place).exists() else b"precious"
    owners.write_bytes(before)
    put(received / place, lambda path: path.symlink_to(owners))
    said = resume(received)
    assert said is None or ("symbolic link" in said and place in said)
    assert owners.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["owners", "received"]


@pytest.mark.parametrize("place", PLACES)
def test_a_link_to_nowhere_makes_no_file_there(received, tmp_path, place):
    put(received / place, lambda path: path.symlink_to(tmp_path / "new"))
    said = resume(received)
    assert said is None or "symbolic link" in said
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("place", PLACES)
def test_a_pipe_is_refused_and_not_waited_for(received, patience, place):
    put(received / place, os.mkfifo)
    said = resume(received)
    assert said is None or ("pipe" in said and place in said)


def test_a_linked_folder_of_checkpoints_is_refused(received, tmp_path):
    (received / "checkpoints").rename(tmp_path / "owners")
    (received / "checkpoints").symlink_to(tmp_path / "owners")
    before = {path.name: path.read_bytes() for path in (tmp_path / "owners").iterdir()}
    with pytest.raises(RequestError, match="checkpoints is a symbolic link"):
        slimfl.resume(received)
    assert {path.name: path.read_bytes() for path in (tmp_path / "owners").iterdir()} == before


def test_a_second_name_of_the_metrics_is_not_written_to(received, tmp_path):
    (tmp_path / "owners").hardlink_to(received / "metrics.jsonl")
    before = (tmp_path / "owners").read_bytes()
    with pytest.raises(RequestError, match="second name"):
        slimfl.resume(received)
    assert (tmp_path / "owners").read_bytes() == before
