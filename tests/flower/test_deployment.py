"""A real federation on loopback, with TLS and authenticated devices, and its failures.

The tests share one federation, in the order of the file; its processes end with the last one.
Kills and lies take minutes, so they run with `make torture`.
"""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
from federations import PATIENCE_S, bring_up, free_ports, processes, until
from test_simulated import EXPERIMENT, assert_same_numbers, command

from slimfl.flower.federation import Federation
from slimfl.flower.kit import lay_out
from slimfl.round import RunFolder
from tests import asking

pytestmark = pytest.mark.slow


NETWORKS = """
    from torch import nn
    from slimfl.nn import slimmable

    def small(in_channels, classes):
        return slimmable(nn.Sequential(
            nn.Conv2d(in_channels, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(4, classes),
        ))
"""


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """A folder with a network of our own, which devices 0 and 1 are configured for."""
    path = tmp_path_factory.mktemp("python")
    (path / "networks_of_a_kit.py").write_text(textwrap.dedent(NETWORKS))
    return path


@pytest.fixture(scope="module")
def federation(tmp_path_factory, networks):
    path = tmp_path_factory.mktemp("deployment") / "kit"
    port, _, device_port, *_ = free_ports(5)  # the server's, its SuperLink's, three devices'
    federation = Federation(lay_out(path, 3, "127.0.0.1", port, device_port=device_port))
    for device in (0, 1):
        settings = federation.kit.device(device) / "device.env"
        text = settings.read_text()
        settings.write_text(text.replace("MODELS=''", "MODELS='networks_of_a_kit:small'"))
        assert settings.read_text() != text
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PYTHONPATH", str(networks))  # of every process of the federation
            bring_up(federation)
        yield federation
    finally:
        federation.down()
    assert f"--port {port}" not in processes(), "the server is still there"
    assert f":{port}" not in processes(), "a device, or a helper of the server, is still there"


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    path = tmp_path_factory.mktemp("experiment") / "experiment.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture(scope="module")
def in_process(experiment):
    return asking.run(experiment, engine="torch")


def test_a_deployment_gives_the_numbers_of_the_torch_engine(
    federation, experiment, in_process, tmp_path
):
    shown = federation.status()
    assert [row["state"] for row in shown] == ["answers", "online", "online", "online"]
    done = command(
        "run", experiment, "--superlink", federation.kit.path, "--out", tmp_path / "group",
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "SlimFL" in done.stdout
    assert_same_numbers(tmp_path / "group/slimfl-seed0", in_process)

    kit = federation.kit.path
    # whole lines of them: a file's last line may be a character or two
    secrets = [key.read_text().splitlines()[2] for key in kit.rglob("*.key")]
    assert all(len(line) >= 64 for line in secrets)
    written = [*kit.glob("logs/*"), *(p for p in tmp_path.rglob("*") if p.is_file())]
    assert len(secrets) == 5
    for file in written:
        text = file.read_bytes().decode(errors="ignore")
        assert not [s for s in secrets if s in text], f"{file} holds a private key"


def test_a_device_that_was_not_configured_for_a_model_refuses_it(
    federation, networks, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", str(networks))
    name = 'name = "networks_of_a_kit:small"'
    (tmp_path / "mine.toml").write_text(f"{EXPERIMENT}\n[model]\n{name}\n")
    done = command(
        "run", tmp_path / "mine.toml", "--superlink", federation.kit.path, "--rounds", 1,
        "--trust", "networks_of_a_kit", "--out", tmp_path / "group",
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder = RunFolder.open(tmp_path / "group/slimfl-seed0")
    (line,) = folder.metrics()
    assert (line["devices"], line["dropped_out"]) == ([0, 1], [2])
    log = (folder.path / "run.log").read_text()
    assert "this device does not accept model 'networks_of_a_kit:small'" in log
    assert "MODELS in device.env" in log


@pytest.mark.torture
def test_a_device_killed_in_a_round_is_missed_and_the_run_goes_on(federation, experiment, tmp_path):
    run = subprocess.Popen(
        [
            sys.executable, "-c", "from slimfl.cli import main; main()", "run", str(experiment),
            "--superlink", str(federation.kit.path), "--out", str(tmp_path / "group"),
            "--rounds", "1", "--set", "flower.round_timeout_s=40",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    node = psutil.Process(federation.processes.running()["device-1"].pid)
    idle = len(node.children(recursive=True))
    try:
        asked = lambda: len(node.children(recursive=True)) > idle  # noqa: E731
        until(asked, "device 1 was never asked to train")
        for process in [*node.children(recursive=True), node]:
            process.kill()
        _, error = run.communicate(timeout=PATIENCE_S)
    finally:
        run.kill()
    assert run.returncode == 0, error
    folder = RunFolder.open(tmp_path / "group/slimfl-seed0")
    (line,) = folder.metrics()
    assert line["dropped_out"] == [1]
    assert line["devices"] == [0, 2]
    assert "nothing from device 1" in (folder.path / "run.log").read_text()


@pytest.mark.torture
def test_a_superlink_killed_in_a_run_stops_it_and_a_restarted_one_resumes_it(
    federation, experiment, tmp_path
):
    federation.up()  # device 1 was killed above
    folder = tmp_path / "group/slimfl-seed0"
    run = subprocess.Popen(
        [
            sys.executable, "-c", "from slimfl.cli import main; main()", "run", str(experiment),
            "--superlink", str(federation.kit.path), "--out", str(tmp_path / "group"),
            "--rounds", "2",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        metrics = folder / "metrics.jsonl"
        until(lambda: metrics.exists() and metrics.stat().st_size, "no round was done")
        server = federation.processes.running()["server"].pid
        os.kill(server, signal.SIGKILL)
        _, error = run.communicate(timeout=PATIENCE_S)
    finally:
        run.kill()
    assert run.returncode == 1, error
    assert "slimfl resume" in error
    assert "Traceback" not in error
    assert [line["round"] for line in RunFolder.open(folder).metrics()] == [1]

    until(lambda: not RunFolder.open(folder).in_use(), "the ServerApp outlived its server")
    federation.up()
    resumed = command("resume", folder, "--superlink", federation.kit.path, timeout=PATIENCE_S)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_numbers(folder, asking.run(experiment, engine="torch", rounds=2))


#: What device 2 does in which round, and the word about it in the log.
MISDEEDS = {
    1: ("nan", "holds a NaN"),
    2: ("shape", "has shape"),
    3: ("impostor", "it answers as device 0"),
    4: ("model", "it trained another model"),
    5: ("late", "it did not answer"),
    6: ("huge", "no training does"),
}


@pytest.mark.torture
def test_a_device_that_lies_or_is_late_changes_nothing(
    federation, experiment, tmp_path, monkeypatch
):
    federation.processes.end(["device-2"])
    with monkeypatch.context() as environment:
        environment.setenv("PYTHONPATH", str(Path(__file__).parent / "misbehaving"))
        deeds = " ".join(f"{number}={deed}" for number, (deed, _) in MISDEEDS.items())
        environment.setenv("SLIMFL_MISDEEDS", deeds)
        environment.setenv("SLIMFL_LATE_S", "50")
        federation.up()
    done = command(
        "run", experiment, "--superlink", federation.kit.path, "--out", tmp_path / "group",
        "--rounds", 7, "--set", "flower.round_timeout_s=45", "--set", "radio.noise_dbm=-200",
        timeout=2 * PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder = RunFolder.open(tmp_path / "group/slimfl-seed0")
    *spoilt, last = folder.metrics()
    assert [line["refused"] for line in spoilt] == [[2], [2], [], [], [], [2]]
    assert [line["dropped_out"] for line in spoilt] == [[], [], [2], [2], [2], []]
    assert [line["delivered"] for line in spoilt] == [[2, 2]] * 6
    assert (last["devices"], last["delivered"]) == ([0, 1, 2], [3, 3])
    said = (folder.path / "run.log").read_text().splitlines()
    for number, (_, words) in MISDEEDS.items():
        about = [line for line in said if f"round {number}:" in line]
        assert any("device 2" in line and words in line for line in about), about

    federation.processes.end(["device-2"])
    federation.up()  # honest again


def refused(folder):
    """Whether a device that starts from this folder is turned away."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = folder / "said.log"
    with said.open("wb") as output:  # a pipe would be held open by the helper that it leaves
        started = subprocess.run(
            ["sh", str(folder / "start.sh")],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
        )
    assert "BEGIN OPENSSH PRIVATE KEY" not in said.read_text()
    until(lambda: f":{own_port(folder)}" not in processes(), "a helper outlived the device")
    return started.returncode != 0


def own_port(folder):
    script = (folder / "start.sh").read_text()
    return script.split("--host 127.0.0.1 --port ")[1].split()[0]


def test_an_unregistered_and_a_revoked_device_are_refused(federation, tmp_path):
    from slimfl.flower.keys import write_node_key

    stranger = tmp_path / "stranger"
    shutil.copytree(federation.kit.device(0), stranger)
    shutil.rmtree(stranger / "flwr", ignore_errors=True)
    (stranger / "node.key").unlink()
    write_node_key(stranger)
    script = (stranger / "start.sh").read_text()
    (port,) = free_ports(1)
    (stranger / "start.sh").write_text(script.replace(own_port(stranger), str(port)))
    assert refused(stranger)

    federation.processes.end(["device-2"])
    done = command("deploy", "revoke", federation.kit.path, 2, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "unregistered" in done.stdout
    assert refused(federation.kit.device(2))
    federation.up()  # does not let it in again, and does not wait for it
    assert [row["state"] for row in federation.status()][-1] != "online"
