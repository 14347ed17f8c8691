"""The gate, the signed app and the processes of tasks, each tested separately."""

import asyncio
import hashlib
import os
import socket
import ssl
import subprocess
import sys
import threading
import tomllib

import pytest
import uvicorn

from slimfl.errors import RequestError, RunError
from slimfl.flower import gate
from slimfl.flower.gate import Gate
from slimfl.flower.guard import _guarded
from slimfl.flower.kit import CALLS, find_nginx, nginx_conf
from slimfl.flower.signed import SignedApp, Signer
from slimfl.flower.superlink import SuperLink
from slimfl.report.live import heads

TOKEN = "t" * 48


def test_the_processes_around_a_task_do_without_torch():
    script = (
        "import sys, slimfl.flower.guard, flwr.superlink.main, flwr.supernode.main;"
        "print('flwr' in sys.modules, 'torch' in sys.modules)"
    )
    found = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert found.split() == ["True", "False"]


def through(one, path, *chunks, headers=(), pause_s=0.0):
    """The status that a request gets, and the body that came through the gate."""
    sent, came = [], []
    events = [
        {"type": "http.request", "body": c, "more_body": k + 1 < len(chunks)}
        for k, c in enumerate(chunks or (b"",))
    ]

    async def receive():
        await asyncio.sleep(pause_s)
        return events.pop(0) if events else {"type": "http.disconnect"}

    async def send(event):
        sent.append(event)

    async def app(scope, receive, send):
        event = await receive()
        came.append(event["body"])
        assert not event["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    one.app = app
    scope = {"type": "http", "path": path, "headers": [*headers]}
    asyncio.run(one(scope, receive, send))
    return sent[0]["status"], came


def bearer(token):
    return [(b"authorization", f"Bearer {token}".encode())]


@pytest.mark.parametrize("path", ["/health", "/v1/fleet/pull-messages", "/v1/runtime/acquire-task"])
def test_what_flower_protects_itself_passes_the_gate(path):
    assert through(Gate(None, TOKEN), path, b"ab", b"c") == (200, [b"abc"])


@pytest.mark.parametrize(
    "path",
    ["/", "/docs", "/openapi.json", "/v1/fleet", "/v1/fleet/", "//v1/control/x", "/v2/control/x",
     "/v1/control/x/", "/v1/fleet/../control/x", "/v1/control/\n", "/v1/control/x?y", "/health\n"],
)  # fmt: skip
def test_other_paths_are_not_there(path):
    assert through(Gate(None, TOKEN), path, headers=bearer(TOKEN)) == (404, [])


@pytest.mark.parametrize(
    "headers",
    [[], bearer("x"), bearer(""), bearer(TOKEN + "x"), bearer(TOKEN[:-1]), 2 * bearer(TOKEN),
     [(b"authorization", TOKEN.encode())], [(b"authorization", b"\xff\xfe")]],
)  # fmt: skip
def test_control_needs_the_token(headers):
    assert through(Gate(None, TOKEN), "/v1/control/start-run", headers=headers) == (401, [])
    assert through(Gate(None, TOKEN), "/v1/control/start-run", headers=bearer(TOKEN))[0] == 200


@pytest.mark.parametrize("token", ["None", "", TOKEN])
def test_without_a_token_control_is_shut(token):
    assert through(Gate(None, None), "/v1/control/x", headers=bearer(token)) == (401, [])


def test_a_long_body_is_refused_by_its_announcement_and_by_its_length(monkeypatch):
    monkeypatch.setattr(gate, "BODY_BYTES", 10)
    one = Gate(None, TOKEN)
    path = "/v1/fleet/push-object"
    for length in (b"11", b"1" * 5000, b"-1", b"x"):
        assert through(one, path, b"", headers=[(b"content-length", length)]) == (413, [])
    assert through(one, path, *[b"abc"] * 4) == (413, [])
    assert through(one, path, b"0123456789", headers=[(b"content-length", b"10")])[0] == 200
    assert one.held == 0


def test_all_bodies_together_are_bounded(monkeypatch):
    monkeypatch.setattr(gate, "HELD_BYTES", 10)
    one = Gate(None, TOKEN)
    one.held = 8
    assert through(one, "/v1/fleet/push-object", b"abc") == (503, [])
    assert one.held == 8
    assert through(one, "/v1/fleet/push-object", b"ab")[0] == 200
    assert one.held == 8


def test_a_slow_body_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(gate, "BODY_S", 0.05)
    assert through(Gate(None, TOKEN), "/v1/fleet/x", b"a", b"b", pause_s=0.04) == (408, [])


def test_flowers_servers_wait_for_no_half_request(monkeypatch):
    monkeypatch.setattr(heads, "HEAD_S", 0.2)
    protocols = uvicorn.config.HTTP_PROTOCOLS
    monkeypatch.setitem(protocols, "auto", protocols["auto"])
    _guarded(lambda: None, None, None)  # what a SuperLink and a SuperNode do first

    async def app(scope, receive, send):
        await asyncio.sleep(0.6)  # an answer may take longer than a head
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"whole"})

    async def connections():
        bound = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
        serving = asyncio.create_task(server.serve([bound]))
        answers = []
        request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        for part in (b"", request[:3], request[:20], request):
            reader, writer = await asyncio.open_connection(*bound.getsockname())
            writer.write(part)
            try:
                answers.append(await asyncio.wait_for(reader.read(1 << 16), 10))
            except ConnectionResetError:
                answers.append(b"")
            writer.close()
        server.should_exit = True
        await serving
        return answers

    *halves, whole = asyncio.run(connections())
    assert halves == [b"", b"", b""]
    assert b"200 OK" in whole


class TestSignedApp:
    def test_flower_verifies_it_by_the_kits_key_and_by_no_other(self):
        from flwr.supercore.fab import Fab
        from flwr.supernode.start_client_internal import _verify_fab

        signer, other = Signer.generate(), Signer.generate()
        app = signer.sign(b"an app")

        def verified(content, verifications, trusted):
            return _verify_fab(Fab("", content, verifications), trusted)

        trusted = {signer.name: signer.public}
        assert verified(b"an app", app.verifications, trusted)
        assert not verified(b"another", app.verifications, trusted)
        assert not verified(b"an app", {"valid_license": "Valid"}, trusted)
        assert not verified(b"an app", app.verifications, {other.name: other.public})
        forged = {signer.name: other.sign(b"an app").verifications[other.name]}
        assert not verified(b"an app", forged, trusted)

    def test_it_is_read_as_it_was_written(self, tmp_path):
        app = Signer.generate().sign(b"\0\xff app")
        app.write(tmp_path)
        assert SignedApp.read(tmp_path) == app
        assert app.digest == hashlib.sha256(b"\0\xff app").hexdigest()

    @pytest.mark.parametrize(
        "text", ["", "[]", "{}", '{"content": "!", "verifications": {}}', "[" * 100_000]
    )
    def test_a_damaged_one_is_told_in_a_sentence(self, tmp_path, text):
        (tmp_path / "slimfl-app.json").write_text(text)
        with pytest.raises(RequestError, match="damaged"):
            SignedApp.read(tmp_path)


def test_a_task_gets_its_token_in_a_file_without_a_name(monkeypatch, tmp_path):
    from flwr.supercore.constant import TaskType
    from flwr.supercore.superexec.executor import ExecutionSpec

    from slimfl.flower.guard import QuietExecutor

    out = tmp_path / "out"
    program = tmp_path / "flwr-clientapp"
    program.write_text(
        f'#!/bin/sh\necho "$@" >{out}.tmp\ncat "$4" >>{out}.tmp\nmv {out}.tmp {out}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)))
    spec = ExecutionSpec(
        task_type=TaskType.CLIENT_APP, runtime_api_address="127.0.0.1:1", token="s3cret",
        insecure=False, root_certificates_path="ca.crt", runtime_dependency_install=False,
        parent_pid=1, suppress_output=False, task_id=1,
    )  # fmt: skip
    executor = QuietExecutor()
    assert executor.launch(spec).status == "accepted"
    (process,) = started
    assert process.wait(30) == 0
    arguments, token = out.read_text().split("\n")
    assert token == "s3cret"
    assert "s3cret" not in arguments
    assert executor.get_eligible_capacity(set(TaskType))[0] == {
        TaskType.CLIENT_APP, TaskType.SERVER_APP,
    }  # fmt: skip


def test_whoever_took_the_superlinks_port_gets_no_token(tmp_path):
    """The owner's client checks the certificate before it says anything."""
    from slimfl.flower import keys

    certificate, key = tmp_path / "squatter.crt", tmp_path / "squatter.private"
    keys.write_loopback_certificate(certificate, key)
    ca, server = tmp_path / "ca", tmp_path / "server"
    ca.mkdir(), server.mkdir()
    keys.write_authority_and_server(ca, server, "127.0.0.1")
    keys.write_private(server / "control.token", TOKEN.encode())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            try:
                with context.wrap_socket(listener.accept()[0], server_side=True) as connection:
                    heard.append(connection.recv(65536))
            except OSError as error:
                heard.append(error)

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(RunError, match="does not answer"):
            SuperLink(address, server / "ca.crt", server).nodes()
        thread.join(30)
    assert len(heard) == 1
    assert not isinstance(heard[0], bytes) or TOKEN.encode() not in heard[0]


@pytest.mark.parametrize("contents", [None, b"short", b"\xff" * 64, b"a\nb" * 20])
def test_a_control_token_that_is_none_is_told_in_a_sentence(tmp_path, contents):
    if contents is not None:
        (tmp_path / "control.token").write_bytes(contents)
    (tmp_path / "ca.crt").write_text("")
    with pytest.raises(RequestError, match="control token"):
        SuperLink("127.0.0.1:9", tmp_path / "ca.crt", tmp_path).nodes()


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nx\n", "é"])
def test_a_damaged_certificate_is_told_in_a_sentence(tmp_path, text):
    (tmp_path / "ca.crt").write_text(text)
    with pytest.raises(RequestError, match="is not a certificate"):
        SuperLink("127.0.0.1:9", tmp_path / "ca.crt").nodes()


def test_the_devices_settings_reach_flower_whatever_they_hold(tmp_path, monkeypatch):
    from flwr.common.config import parse_config_args

    from slimfl.flower.guard import _node_config

    odd = """/a b/"c"/'d'/$(e)/`f`/g=1 h=2/é"""
    for name, value in {
        "SLIMFL_DEVICE": "1", "SLIMFL_DEVICES": "3", "DATA_DIR": odd, "GAIN_FILE": "",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    written = _node_config(tmp_path)
    expected = {"partition-id": 1, "num-partitions": 3, "data-dir": odd}
    assert tomllib.loads(written.read_text()) == expected
    assert parse_config_args([str(written)]) == expected


def test_the_proxy_hands_on_what_devices_call_and_nothing_else():
    """Compared with what Flower's client of a SuperNode knows."""
    import inspect
    import re

    from flwr.supernode.fleet_http_client import FleetHttpClient

    known = set(re.findall(r"/v1/fleet/([a-z-]+)", inspect.getsource(FleetHttpClient)))
    assert known - set(CALLS) == {"register-node", "unregister-node"}
    assert set(CALLS) <= known


@pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")
@pytest.mark.parametrize("listen", ["127.0.0.2:18443", "[::1]:18443", "localhost:18443"])
def test_nginx_takes_the_nginx_conf(tmp_path, listen):
    from slimfl.flower import keys

    keys.write_authority_and_server(tmp_path, tmp_path / ".", "localhost")
    (tmp_path / "nginx").mkdir()
    (tmp_path / "nginx.conf").write_text(nginx_conf(listen, "127.0.0.1:18444", 2**20))
    checked = subprocess.run(
        [find_nginx(), "-t", "-e", "stderr", "-p", f"{tmp_path}/", "-c", "nginx.conf"],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path):
    from slimfl.flower.kit import Kit

    for name in ("kit.toml", "slimfl-app.json", "control.token"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "ca.crt").write_text("")
    for read in (
        lambda: Kit.open(tmp_path),
        lambda: SignedApp.read(tmp_path),
        SuperLink("127.0.0.1:9", tmp_path / "ca.crt", tmp_path).nodes,
    ):
        with pytest.raises(RequestError, match=r"\(it is not a regular file\)"):
            read()
