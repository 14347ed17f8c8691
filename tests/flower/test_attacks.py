"""Attacks on a real federation, from this machine and through its public address.

The attacker has no key and no secret; if the tests run as root, it is also another user.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from federations import PATIENCE_S, bring_up, free_ports, listening, until

from slimfl.flower.federation import Federation
from slimfl.flower.kit import find_nginx, lay_out
from slimfl.flower.signed import PROJECT

pytestmark = pytest.mark.slow

NOBODY = 65534

REFUSED = {400, 401, 403, 404, 405, 412, 413}

#: A body that Flower took whole into memory.
FLOOD_BYTES = 500 * 2**20


def stranger(*calls):
    """What a process without any secret is told."""
    user = [str(NOBODY)] if os.getuid() == 0 else []
    script = Path(__file__).with_name("attacker.py").read_text()
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, *user],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder():
    """Where everybody may go: what protects a kit there are its own permissions."""
    path = Path(tempfile.mkdtemp(prefix="slimfl-attacks-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def federation(folder):
    if find_nginx() is None:
        pytest.skip("nginx is not installed")
    port, control_port, device_port, _ = free_ports(4)
    kit = lay_out(
        folder / "kit", 2, "127.0.0.2", port, control_port=control_port, device_port=device_port
    )
    federation = Federation(kit)
    federation.device_ports = [device_port, device_port + 1]
    try:
        bring_up(federation)
        yield federation
    finally:
        federation.down()


def pids(federation):
    names = ["server", *map(federation.kit.device_name, range(federation.kit.devices))]
    return [process.pid for process in federation.processes.family(names)]


def foreign_app(folder):
    """An app that is not slimfl's, and tells where its code ran."""
    from flwr.cli.build import build_fab_from_files

    code = f"""
import os, pathlib, time
folder = pathlib.Path({str(folder)!r})
from flwr.app import Message, MessageType, RecordDict, ConfigRecord
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
server_app, client_app = ServerApp(), ClientApp()

@server_app.main()
def main(grid, context):
    (folder / "server").write_text(str(os.getpid()))
    content = RecordDict({{"config": ConfigRecord({{"a": 1}})}})
    sent = [Message(content, dst_node_id=n, message_type=MessageType.QUERY, ttl=60)
            for n in grid.get_node_ids()]
    told = list(grid.send_and_receive(sent, timeout=60))
    lines = [f"{{r.has_error()}} {{r.error.code if r.has_error() else 0}}" for r in told]
    (folder / "replies.tmp").write_text("\\n".join(lines))
    (folder / "replies.tmp").rename(folder / "replies")
    time.sleep(3)

@client_app.query()
def query(message, context):
    (folder / f"device-{{os.getpid()}}").write_text("it ran")
    return Message(RecordDict(), reply_to=message)
"""
    project = PROJECT.format(version="0.0.1")
    return build_fab_from_files(
        {"pyproject.toml": project.encode(), "slimfl_app.py": code.encode()}
    )[0]


def start_request(app):
    from flwr.proto.control_pb2 import StartRunRequest
    from flwr.proto.fab_pb2 import Fab

    return StartRunRequest(fab=Fab(hash_str="", content=app))


def hostile_calls(federation, folder):
    """Everything that needed no credentials: path, body, headers."""
    from flwr.proto.control_pb2 import (
        ListNodesRequest,
        ListRunsRequest,
        RegisterNodeRequest,
        UnregisterNodeRequest,
    )
    from flwr.proto.fleet_pb2 import ActivateNodeRequest, RegisterNodeFleetRequest
    from flwr.proto.runtime_pb2 import AcquireTaskRequest

    from slimfl.flower.keys import read_public_key

    own = read_public_key(federation.kit.device(0) / "node.pub")
    node = federation.kit.registered()[0]
    start = start_request(foreign_app(folder))
    nodes = ListNodesRequest()
    requests = [
        ("/v1/control/list-nodes", nodes),
        ("/v1/control/list-runs", ListRunsRequest()),
        ("/v1/control/register-node", RegisterNodeRequest(public_key=own, name="device-7")),
        ("/v1/control/unregister-node", UnregisterNodeRequest(node_id=node)),
        ("/v1/control/start-run", start),
        ("/v1/control/get-login-details", nodes),
        ("/v1/runtime/acquire-task", AcquireTaskRequest(supported_task_types=["flwr-clientapp"])),
        ("/v1/runtime/get-nodes", nodes),
        ("/v1/runtime/pull-messages", nodes),
        ("/v1/runtime/pull-task-input", nodes),
        ("/v1/runtime/push-task-output", nodes),
        ("/v1/runtime/responses", nodes),
        ("/v1/fleet/register-node", RegisterNodeFleetRequest(public_key=own)),
        ("/v1/fleet/activate-node", ActivateNodeRequest(public_key=own)),
        ("/v1/fleet/pull-messages", nodes),
        ("/docs", nodes),
        ("/openapi.json", nodes),
        # ways around a rule on paths
        ("/v1/fleet/../control/list-nodes", nodes),
        ("/v1/fleet/%2e%2e/control/list-nodes", nodes),
        ("/v1/fleet/activate-node/../../control/list-nodes", nodes),
        ("//v1/control/list-nodes", nodes),
        ("/v1/control/list-nodes/", nodes),
        ("/v1/control/list-nodes?/v1/fleet/", nodes),
        ("/v1/%63ontrol/list-nodes", nodes),
        ("/v1/fleet/activate-node%00/../control/list-nodes", nodes),
    ]
    calls = [(path, base64.b64encode(r.SerializeToString()).decode(), {}) for path, r in requests]
    body = calls[0][1]
    calls += [
        ("/v1/control/list-nodes", body, {"authorization": token})
        for token in ("", "Bearer", "Bearer ", "Bearer None", "Basic eDp4", f"Bearer {'a' * 64}")
    ]
    host = {"host": "localhost/v1/runtime/push-object?"}
    calls.append(("/v1/fleet/push-object", body, host))
    return calls


def test_the_named_addresses_alone_are_open(federation):
    expected = {
        ("127.0.0.2", federation.kit.port),
        ("127.0.0.1", federation.kit.control_port),
        *(("127.0.0.1", port) for port in federation.device_ports),
    }
    assert listening(pids(federation)) == expected


def assert_commands_nothing(federation, folder):
    before = federation.kit.superlink.nodes()
    calls = [
        ("call", host, port, *call)
        for host, port in sorted(listening(pids(federation)))
        for call in hostile_calls(federation, folder)
    ]
    told = stranger(*calls)
    for (_, host, port, path, _, _), answers in zip(calls, told, strict=True):
        statuses = {answer for answer in answers if isinstance(answer, int)}
        assert statuses, f"{host}:{port}{path}: nobody answered, which shows nothing: {answers}"
        assert statuses <= REFUSED, f"{host}:{port}{path}: {answers}"
    assert federation.kit.superlink.nodes() == before
    assert not (folder / "server").exists(), "a stranger's code ran on the server"
    # the calls are right: with the token, the first of them is answered
    token = (federation.kit.server / "control.token").read_text()
    path, body, _ = hostile_calls(federation, folder)[0]
    owner = ("call", *federation.kit.control, path, body, {"authorization": f"Bearer {token}"})
    assert stranger(owner)[0][0] == 200


def test_a_stranger_commands_nothing_through_any_open_port(federation, folder):
    assert_commands_nothing(federation, folder)


def test_a_stranger_commands_nothing_where_there_is_no_proxy(folder):
    (port,) = free_ports(1)
    kit = lay_out(folder / "bare", 1, "127.0.0.3", port, proxied=False)
    bare = Federation(kit)
    try:
        bring_up(bare, server_only=True)
        assert listening(pids(bare)) == {("127.0.0.3", port)}
        assert_commands_nothing(bare, folder)
        ((_, answer),) = stranger(
            ("flood", "127.0.0.3", port, "/v1/fleet/push-object", FLOOD_BYTES, True)
        )
        assert answer == "" or " 413" in answer
    finally:
        bare.down()


def test_control_is_not_to_be_seen_from_outside_even_with_the_token(federation, folder):
    token = (federation.kit.server / "control.token").read_text()
    outside = ("call", "127.0.0.2", federation.kit.port)
    calls = [
        (*outside, path, body, {"authorization": f"Bearer {token}"})
        for path, body, _ in hostile_calls(federation, folder)
        if "fleet" not in path
    ]
    for (_, _, _, path, *_), answers in zip(calls, stranger(*calls), strict=True):
        assert answers[0] in (400, 404), f"{path}: {answers}"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_500_megabytes_is_refused_and_not_kept(federation, chunked):
    def peak():
        """The most memory that the processes ever had, together."""
        words = [Path(f"/proc/{pid}/status").read_text() for pid in pids(federation)]
        return sum(int(w.split("VmHWM:")[1].split()[0]) * 1024 for w in words if "VmHWM:" in w)

    ports = sorted(listening(pids(federation)))
    paths = {federation.kit.control_port: "/v1/runtime/push-object"}
    before = peak()
    told = stranger(
        *(
            ("flood", host, port, paths.get(port, "/v1/fleet/push-object"), FLOOD_BYTES, chunked)
            for host, port in ports
        )
    )
    for (host, port), (sent, answer) in zip(ports, told, strict=True):
        # some hang up before the answer can be read
        assert " 413" in answer or (answer == "" and sent < FLOOD_BYTES), f"{host}:{port}: {answer}"
    assert any(" 413" in answer for _, answer in told)
    assert peak() - before < 200 * 2**20
    assert federation.kit.superlink.healthy()


def test_nothing_of_a_kit_can_be_read_by_another_user(federation):
    if os.getuid() != 0:
        pytest.skip("only root can be somebody else")
    secrets = [
        path
        for pattern in ("*.key", "*.secret", "*.private")
        for path in federation.kit.path.rglob(pattern)
    ]
    secrets += [federation.kit.server / "control.token", federation.kit.path / "ca/app_ed25519"]
    assert len(secrets) == 4 + 3 + 2 + 2
    for path in secrets:
        assert path.stat().st_mode & 0o077 == 0, path
    environments = [Path(f"/proc/{pid}/environ") for pid in pids(federation)]
    wanted = [federation.kit.path, *secrets]
    told = stranger(*(("read", str(path)) for path in wanted))
    assert set(told) == {"PermissionError"}
    # of nginx, which has no secret in its environment, one process is nobody's
    started = [p for p in environments if b"guard" in p.with_name("cmdline").read_bytes()]
    assert started
    assert set(stranger(*(("read", str(path)) for path in started))) == {"PermissionError"}


def test_devices_refuse_an_app_that_the_kit_did_not_sign(federation, folder):
    """The owner's own token starts it, as whoever has taken the server over could."""
    from flwr.common.constant import ErrorCode

    with federation.kit.superlink._client() as client:
        reply = client.StartRun(start_request(foreign_app(folder)))
    assert reply.HasField("run_id")
    arguments = set()

    def replied():
        for pid in pids(federation):
            try:
                arguments.add(Path(f"/proc/{pid}/cmdline").read_bytes())
            except OSError:
                continue
        return (folder / "replies").exists()

    until(replied, "the foreign app never had its replies")
    assert (folder / "replies").read_text().split() == ["True", str(ErrorCode.INVALID_FAB)] * 2
    assert not list(folder.glob("device-*")), "foreign code ran on a device"

    # the same processes show that no secret is an argument
    apps = [line.split(b"\0") for line in arguments if b"flwr-serverapp" in line]
    assert apps, "the ServerApp was never seen"
    assert all(b"--token-file" in app and b"--token" not in app for app in apps)
    kept = [federation.kit.server / "control.token", *federation.kit.path.rglob("tasks.secret")]
    for secret in kept:
        assert not [line for line in arguments if secret.read_bytes() in line]


def test_a_revoked_device_does_not_come_back(federation):
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key
    from flwr.common.constant import TIMESTAMP_HEADER
    from flwr.proto.fleet_pb2 import ActivateNodeRequest, RegisterNodeFleetRequest
    from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
    from flwr.supercore.date import now
    from flwr.supercore.primitives.asymmetric import public_key_to_bytes, sign_message

    federation.processes.end(["device-1"])
    key = load_ssh_private_key((federation.kit.device(1) / "node.key").read_bytes(), None)
    public = public_key_to_bytes(key.public_key())

    def signed():
        stamp = now().isoformat()
        return {
            FLEET_HTTP_PUBLIC_KEY_HEADER: base64.b64encode(public).decode(),
            TIMESTAMP_HEADER: stamp,
            FLEET_HTTP_SIGNATURE_HEADER: base64.b64encode(
                sign_message(key, stamp.encode())
            ).decode(),
        }

    def asked(request):
        path = {ActivateNodeRequest: "activate", RegisterNodeFleetRequest: "register"}
        body = base64.b64encode(request.SerializeToString()).decode()
        call = (f"/v1/fleet/{path[type(request)]}-node", body, signed())
        control = ("127.0.0.1", federation.kit.control_port)
        told = stranger(
            ("call", "127.0.0.2", federation.kit.port, *call), ("call", *control, *call)
        )
        return {answers[0] for answers in told}

    activate = ActivateNodeRequest(public_key=public, heartbeat_interval=30)
    assert 200 in asked(activate), "the call is not what a registered device says"
    federation.revoke(1)
    assert asked(activate) <= REFUSED
    assert asked(RegisterNodeFleetRequest(public_key=public)) <= REFUSED
    states = [row["state"] for row in federation.status()]
    assert states == ["answers", "online", "unregistered"]


def test_nothing_is_left_when_the_server_died_first(federation, folder):
    for name in ("server", "replies"):
        (folder / name).unlink(missing_ok=True)
    with federation.kit.superlink._client() as client:
        client.StartRun(start_request(foreign_app(folder)))
    until((folder / "server").exists, "the ServerApp did not start")
    app = int((folder / "server").read_text())
    family = pids(federation)
    assert app in family
    os.kill(federation.processes.running()["server"].pid, 9)
    os.kill(app, 19)  # a ServerApp that does not notice
    federation.down()
    left = [pid for pid in family if (Path("/proc") / str(pid)).exists()]
    zombies = [pid for pid in left if ") Z " in Path(f"/proc/{pid}/stat").read_text()]
    assert left == zombies
