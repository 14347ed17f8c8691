"""Peers of the bench, without installing any, as real ones take gigabytes and minutes."""

import hashlib
import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks import peer_environments as peers
from benchmarks.peer_environments import find_peers, peer_runner, prepare_environment
from benchmarks.runners import interleave
from benchmarks.work import Work
from slimfl.errors import RequestError, RunError

ROOT = Path(__file__).parents[2] / "benchmarks" / "peers"
PEERS = find_peers(ROOT)
FEDAVG = Work(kind="fedavg", devices=3, images_per_device=4, batch_size=2)

FAKE = """
from peer_protocol import Peer, serve

def prepare(work):
    print("a framework's banner")
    rounds = []
    def round_():
        rounds.append(None)
        if len(rounds) == {last}:
            raise ValueError("the framework broke")
    return Peer(round_, lambda: float(len(rounds)))

serve(prepare)
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A peer's folder whose environment is the one of the tests."""
    folder = tmp_path / "peers" / "fake"
    folder.mkdir(parents=True)
    (folder / "requirements.txt").write_text("")
    (folder / "worker.py").write_text(FAKE.format(last=100))
    (folder.parent / "common").symlink_to(ROOT / "common")
    monkeypatch.setattr(peers, "prepare_environment", lambda *_: Path(sys.executable))
    return folder


def test_finds_all_four() -> None:
    assert [p.name for p in PEERS] == ["fedjax", "flower", "fluke", "pfl"]
    assert find_peers(ROOT / "nowhere") == []


@pytest.mark.parametrize("folder", PEERS, ids=lambda p: p.name)
def test_requirements_are_pinned_and_torch_comes_first(folder: Path) -> None:
    lines = (folder / "requirements.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[\w.-]+(\[\w+\])?==[\w.]+", line) for line in lines)
    torch = [number for number, line in enumerate(lines) if line.startswith("torch==")]
    assert torch == ([] if folder.name == "fedjax" else [0])


@pytest.mark.parametrize("folder", PEERS, ids=lambda p: p.name)
def test_uses_nothing_of_slimfl_and_says_how_it_is_fair(folder: Path) -> None:
    for script in [*folder.glob("*.py"), *(ROOT / "common").glob("*.py")]:
        assert "import slimfl" not in script.read_text()
        assert "from slimfl" not in script.read_text()
    assert "fair" in (folder / "README.md").read_text().lower()


def test_speaks_the_protocol_between_other_runners(fake: Path) -> None:
    runner = peer_runner(fake, FEDAVG)
    results = interleave([runner], repetitions=3)["fake"]
    assert [r["images"] for r in results] == [12, 12, 12]
    assert all(r["seconds"] >= 0 for r in results)
    assert runner.peak_mb > 0
    assert 0 < runner.startup_s < 60
    assert [p.returncode for p in runner.processes] == [0]


def test_start_up_is_counted_from_the_process(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("benchmarks.runners.time.time", lambda: now[0])
    runner = peer_runner(fake, FEDAVG)
    now[0] = 2000.0
    with runner:
        assert float(runner.processes[0].args[-2]) == 2000.0


def test_check_prints_the_norm(fake: Path) -> None:
    command = [sys.executable, str(fake / "worker.py"), "0", json.dumps(asdict(FEDAVG)), "--check"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(ROOT / "common")},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["norm"] == 1
        process.stdin.write("go\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["norm"] == 2
        process.stdin.close()
        assert process.wait(20) == 0


def test_a_failing_framework_is_named_with_its_error(fake: Path) -> None:
    (fake / "worker.py").write_text(FAKE.format(last=2))
    with pytest.raises(RunError, match=r"'fake'.*the framework broke"):
        interleave([peer_runner(fake, FEDAVG)], repetitions=2)


@pytest.mark.parametrize("work", [Work(), Work(kind="fedavg", devices=10, cohort=3)])
def test_refuses_work_that_peers_do_not_do(fake: Path, work: Work) -> None:
    with pytest.raises(RequestError, match="federated averaging with all devices"):
        peer_runner(fake, work)


@pytest.mark.slow
def test_an_environment_that_fails_is_one_sentence(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "no-such-thing @ file:///nowhere/at/all\n")
    with pytest.raises(RunError, match="environment of the peer 'one' could not be made") as error:
        prepare_environment(folder, tmp_path / "cache")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "cache" / "one" / "requirements.sha256").exists()


def test_installs_torch_first_and_only_when_requirements_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def call(peer: str, command: list[str]) -> None:
        calls.append(command)
        if "venv" in command:
            python = Path(command[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.touch()

    monkeypatch.setattr(peers, "_call", call)
    folder = _folder(tmp_path, "torch==2.13.0\nother==1.0\n")
    python = prepare_environment(folder, tmp_path / "cache")
    assert python == tmp_path / "cache" / "one" / "bin" / "python"
    assert calls[1][-1] == "torch==2.13.0"
    assert calls[2][-2:] == ["--requirement", str(folder / "requirements.txt")]
    prepare_environment(folder, tmp_path / "cache")
    assert len(calls) == 3
    (folder / "requirements.txt").write_text("other==2.0\n")
    prepare_environment(folder, tmp_path / "cache")
    assert len(calls) == 5
    digest = hashlib.sha256((folder / "requirements.txt").read_bytes() + sys.version.encode())
    stamp = tmp_path / "cache" / "one" / "requirements.sha256"
    assert stamp.read_text() == digest.hexdigest()


def _folder(tmp_path: Path, requirements: str) -> Path:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "requirements.txt").write_text(requirements)
    return folder
