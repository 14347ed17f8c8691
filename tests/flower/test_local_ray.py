"""Ray of `--on ray` and `--engine flower`: others cannot reach it, and a kill leaves nothing.

Processes are found here by their parents, unlike in the guard.
"""

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from federations import listening

from slimfl.errors import RequestError
from slimfl.flower import local_ray, processes
from slimfl.flower.local_ray import LocalRay, clear_leftovers
from slimfl.flower.processes import living

linux_only = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads /proc")

#: More rounds than are done before the test ends it.
LONG = [
    *("--rounds", "100000", "--devices", "2", "--method", "slimfl"),
    *("--set", "data.dataset=synthetic", "--set", "data.train_samples=200"),
    *("--set", "data.test_samples=50", "--set", "training.steps=1", "--set", "threads=2"),
]
PLACES = {"on ray": ["--on", "ray"], "engine flower": ["--engine", "flower"]}

DEADLINE_S = 180


def until(found, what):
    deadline = time.monotonic() + DEADLINE_S
    while not (value := found()):
        assert time.monotonic() < deadline, f"no {what} within {DEADLINE_S} s"
        time.sleep(0.2)
    return value


def family(pid):
    """A process and all that it started, with their commands."""
    parent = psutil.Process(pid)
    found = {}
    for member in (parent, *parent.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            found[member] = " ".join(member.cmdline())
    return found


def alive(pid):
    with contextlib.suppress(psutil.Error):
        return psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE


#: One call that every kind of Ray server knows; knowing none of them is not an answer.
CALLS = (
    "NodeInfoGcsService/GetAllNodeInfo",
    "NodeManagerService/GetNodeStats",
    "ObjectManagerService/Pull",
    "CoreWorkerService/PushTask",
)


def answers(port, token=None):
    """What a server says to a stranger, or to one who holds a token."""
    grpc = pytest.importorskip("grpc")
    metadata = [("authorization", f"Bearer {token}")] if token else None
    codes = set()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        for call in CALLS:
            try:
                channel.unary_unary(f"/ray.rpc.{call}")(b"", timeout=10, metadata=metadata)
                codes.add("OK")
            except grpc.RpcError as error:
                codes.add(error.code().name)
    return codes


def http_status(port):
    """The status with which a server of HTTP turns a stranger away; None if it is gone."""
    url = f"http://127.0.0.1:{port}/get_runtime_envs_info"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, b"", method="POST"), timeout=10
        ) as r:
            return r.status
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return None  # Ray ends workers that it does not need
        raise


@linux_only
@pytest.mark.slow
@pytest.mark.parametrize("place", list(PLACES))
def test_nobody_else_reaches_it_and_a_kill_leaves_nothing(tmp_path, place):
    pytest.importorskip("ray")
    pytest.importorskip("flwr")
    code = "from slimfl.cli import main; main()"
    command = [sys.executable, "-c", code, "run", *LONG, *PLACES[place], "--out", tmp_path / "x"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "SLIMFL_"))}
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(
            [*map(str, command)], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            env=environment | {"OMP_NUM_THREADS": "1"}, start_new_session=True,
        )  # fmt: skip
    try:
        running = until(lambda: _working(process), "worker of Ray")
        (folder,) = {_folder_of(command) for command in running.values()} - {None}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        token = (folder / "token").read_text()
        assert stat.S_IMODE((folder / "token").stat().st_mode) == 0o600
        assert all(token not in command for command in running.values())

        until(lambda: _refusing_servers(process, token) >= 4, "servers that refuse strangers")

        process.kill()
        process.wait(30)
        until(lambda: not living(running), "end of all processes")
        until(lambda: not folder.exists(), "end of the folder")
    finally:
        process.kill()


def _working(process):
    assert process.poll() is None, "it ended by itself"
    members = family(process.pid)
    names = " ".join(members.values())
    if all(name in names for name in ("gcs_server", "RuntimeEnvAgent")) and (
        names.count("ray::") >= 3  # two are Ray's own
    ):
        return members
    return None


def _folder_of(command):
    _, found, rest = command.partition(f"--log_dir=/tmp/{local_ray.PREFIX}")
    return Path(f"/tmp/{local_ray.PREFIX}{rest.partition('/')[0]}") if found else None


def _refusing_servers(process, token):
    """How many servers of the family refuse a stranger; those that start last may not be there."""
    sockets = listening(one.pid for one in living(family(process.pid)))
    assert {address for address, _ in sockets} <= {"127.0.0.1", "::ffff:127.0.0.1"}
    refused = 0
    for _, port in sockets:
        codes = answers(port)
        assert "OK" not in codes
        if "UNAUTHENTICATED" in codes:
            refused += 1
            assert "UNAUTHENTICATED" in answers(port, "0" * len(token))
            # the same call with the token is let in, so it was the token that was missing
            assert "UNAUTHENTICATED" not in answers(port, token)
        else:
            assert http_status(port) in (401, 403, None)
    return refused


@linux_only
def test_what_a_killed_guard_leaves_the_next_start_clears(tmp_path, monkeypatch):
    monkeypatch.setattr(local_ray, "_base", lambda: tmp_path)
    script = (
        "import subprocess, sys; from pathlib import Path;"
        "from slimfl.flower import local_ray;"
        f"local_ray._base = lambda: Path({str(tmp_path)!r});"
        "ray = local_ray.LocalRay();"
        "child = subprocess.Popen(['sleep', '300'], start_new_session=True,"
        " stdout=subprocess.DEVNULL);"
        "print(ray.folder, ray._guard.pid, child.pid, flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    folder, guard, child = owner.stdout.readline().split()
    try:
        clear_leftovers()
        assert Path(folder, "token").exists(), "a Ray in use was cleared"
        os.kill(int(guard), signal.SIGKILL)
        owner.kill()
        owner.wait(30)
        until(lambda: not alive(guard), "end of the guard")  # it holds the lock until then
        assert alive(child)
        clear_leftovers()
        until(lambda: not alive(child), "end of its process")
        assert not Path(folder).exists()
    finally:
        owner.kill()
        owner.communicate()


def test_other_people_s_folders_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(local_ray, "_base", lambda: tmp_path)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "lock").touch()
    (tmp_path / f"{local_ray.PREFIX}link").symlink_to(precious)
    (tmp_path / f"{local_ray.PREFIX}young").mkdir()
    unlocked = tmp_path / f"{local_ray.PREFIX}unlocked"
    (unlocked / "session").mkdir(parents=True)
    os.utime(unlocked, (0, 0))
    empty = tmp_path / f"{local_ray.PREFIX}empty"
    empty.mkdir()
    os.utime(empty, (0, 0))
    clear_leftovers()
    assert not empty.exists()
    assert len(list(tmp_path.iterdir())) == 4
    assert (precious / "lock").exists()


def test_the_environment_is_given_back(tmp_path, monkeypatch):
    monkeypatch.setattr(local_ray, "_base", lambda: tmp_path)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "of another cluster")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    before = dict(os.environ)
    with LocalRay() as ray:
        assert os.environ["RAY_AUTH_MODE"] == "token"
        assert "RAY_AUTH_TOKEN" not in os.environ
        assert ray.folder.is_dir()
    assert dict(os.environ) == before
    assert not ray.folder.exists()


def test_a_process_with_another_ray_is_refused(monkeypatch):
    class Connected:
        @staticmethod
        def is_initialized():
            return True

    monkeypatch.setitem(sys.modules, "ray", Connected)
    with pytest.raises(RequestError, match=r"ray\.shutdown"):
        LocalRay()


@linux_only
def test_only_marked_processes_are_ended(tmp_path):
    def started(environment):
        return subprocess.Popen(["sleep", "300"], env=os.environ | environment)

    ours = started({processes.RAY: str(tmp_path / "a")})
    others = [started({}), started({processes.RAY: str(tmp_path / "ab")})]
    try:
        (tmp_path / "a").mkdir()
        processes.clear_ray(tmp_path / "a")
        assert ours.wait(10) == -signal.SIGKILL
        assert all(other.poll() is None for other in others)
        assert not (tmp_path / "a").exists()
    finally:
        for process in (ours, *others):
            process.kill()
            process.wait()
