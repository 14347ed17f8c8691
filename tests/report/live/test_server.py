"""The server over the network: access, answers, shutdown."""

import importlib.util
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from slimfl.cli import main
from slimfl.report.live import heads
from slimfl.report.live import server as live_server
from slimfl.report.live.board import Board
from tests.report.live.serving import COMMAND, TOKEN, append, watching, write_run

METHODS = ("slimfl", "vanilla-0.5x", "vanilla-1.0x")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One server of three runs for all tests that only ask."""
    folder = tmp_path_factory.mktemp("served")
    for method in METHODS:
        write_run(folder / method, method)
    with watching(folder) as server:
        yield server


def test_who_is_let_in(served):
    page = f"/{TOKEN}/"
    assert served.get(page)[0] == 200
    for path in (
        "/",
        "/events",
        "/live.js",
        f"/{TOKEN}x/",
        f"/{TOKEN[:-1]}/",
        "/wrong/",
        "//",
        "/%ff/",
    ):
        assert served.get(path)[0] == 403, path
    for path in ("", "nothing.js", "../", "..%2f..%2fetc/passwd", "page/live.js"):
        status = served.get(page + path)[0]
        assert status == (200 if path == "" else 404), path
    foreign = (
        "evil.example", f"evil.example:{served.port}", "127.0.0.1.evil.example", "10.0.0.1",
        "localhost.evil.example", "[2001:db8::1]", "localhost@evil.example",
    )  # fmt: skip
    for host in foreign:
        status, _, body = served.get(page, host)
        assert status == 421, host
        assert b"vanilla" not in body
    for host in ("127.0.0.1", "localhost", f"localhost:{served.port}", "127.0.0.1:9", "[::1]:80"):
        assert served.get(page, host)[0] == 200, host
    assert served.get(page[:-1])[0] == 307


def test_a_request_needs_exactly_one_host(served):
    for hosts in ("", "Host: 127.0.0.1\r\nHost: evil.example\r\n"):
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
            request = f"GET /{TOKEN}/ HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n"
            connection.sendall(request.encode())
            assert re.match(rb"HTTP/1.1 4\d\d ", connection.recv(4096))


def test_nothing_can_be_written(served):
    import http.client

    for method in ("POST", "PUT", "DELETE", "PATCH"):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        connection.request(method, f"/{TOKEN}/events", body=b"x")
        assert connection.getresponse().status == 405
        connection.close()


def test_every_answer_keeps_the_browser_in(served):
    for path in (f"/{TOKEN}/", f"/{TOKEN}/live.js", f"/{TOKEN}/nothing", "/wrong/"):
        headers = served.get(path)[1]
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def events(server):
    """The text of the stream up to the end of a batch in which all has been read."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(f"GET /{TOKEN}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        text = b""
        while b'"caught_up": true' not in text:
            more = connection.recv(1 << 16)
            assert more
            text += more
    assert b"content-type: text/event-stream" in text.lower()
    assert text.count(b"event: run\n") > 0
    return text.decode()


def test_the_report_is_made_when_asked_for(served):
    text = events(served)
    keys = re.findall(r'"key": "([0-9a-f]{12})"', text)
    status, headers, body = served.get(f"/{TOKEN}/report?run={keys[0]}")
    assert status == 200
    assert "sandbox allow-scripts" in headers["content-security-policy"]
    assert "allow-same-origin" not in headers["content-security-policy"]
    assert b"</html>" in body
    for query in ("", "?run=000000000000", "?run=../../etc"):
        assert served.get(f"/{TOKEN}/report{query}")[0] == 404
    assert served.get(f"/{TOKEN}/details/000000000000")[0] == 404
    found = json.loads(served.get(f"/{TOKEN}/details/{keys[0]}")[2])
    assert found["heat"]["rounds"] == [1, 2]


def test_a_report_that_cannot_be_made_is_a_sentence(make_run):
    run = make_run(experiment={"rounds": 9})
    append(run.path, {"round": 3})
    with watching(run.path) as server:
        [key] = set(re.findall(r'"key": "([0-9a-f]{12})"', events(server)))
        status, headers, body = server.get(f"/{TOKEN}/report?run={key}")
    assert status == 409
    assert headers["content-type"].startswith("text/plain")
    assert b"line 3 of" in body


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_at_once_and_quietly(make_run, number, status):
    with watching(make_run().path) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as stream:
            stream.sendall(f"GET /{TOKEN}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            stream.recv(1)
            server.process.send_signal(number)
            assert server.process.wait(timeout=30) == status
        errors = server.process.stderr.read()
    assert "Traceback" not in errors
    assert len(errors.splitlines()) <= 1


@pytest.mark.slow
def test_it_lives_no_longer_than_asked(make_run):
    run = make_run()
    done = subprocess.run(
        [*COMMAND, "watch", str(run.path), "--port", "0", "--json", "--seconds", "1"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", json.loads(done.stdout)["url"])


@pytest.mark.parametrize(
    ("what", "token", "words"),
    [
        (["{folder}/absent"], None, "there is no folder"),
        (["{folder}/run/experiment.toml"], None, "is a file"),
        (["{folder}", "--port", "{taken}"], None, "--port"),
        (["{folder}", "--host", "192.0.2.1"], None, "--host"),
        (["{folder}"], "short", "SLIMFL_WATCH_TOKEN"),
        (["{folder}"], "a/../../../../../../../b?", "SLIMFL_WATCH_TOKEN"),
    ],
)
def test_wrong_requests(tmp_path, monkeypatch, capsys, what, token, words):
    write_run(tmp_path / "run")
    if token:
        monkeypatch.setenv("SLIMFL_WATCH_TOKEN", token)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        filled = [w.format(folder=tmp_path, taken=taken.getsockname()[1]) for w in what]
        monkeypatch.setattr("sys.argv", ["slimfl", "watch", *filled, "--seconds", "1"])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    find = importlib.util.find_spec
    absent = lambda name, *more: None if name == "uvicorn" else find(name, *more)  # noqa: E731
    monkeypatch.setattr("importlib.util.find_spec", absent)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr("sys.argv", ["slimfl", "watch", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "`pip install '.[watch]'`" in error
    assert len(error.splitlines()) == 1


def test_a_taken_default_port_is_no_obstacle(make_run):
    from slimfl.report.live.server import PORT, _bound

    with _bound("127.0.0.1", None) as first, _bound("127.0.0.1", None) as second:
        ports = {first.getsockname()[1], second.getsockname()[1]}
    assert len(ports) == 2
    assert PORT > 1024


@pytest.mark.slow
def test_half_a_request_is_not_waited_for_for_ever(make_run, monkeypatch):
    monkeypatch.setattr(heads, "HEAD_S", 0.5)
    serving = live_server.Server(Board([make_run().path]), None, "127.0.0.1", 0)
    thread = threading.Thread(target=serving.serve, args=(8,), daemon=True)
    thread.start()
    address = serving.socket.getsockname()
    halves = [socket.create_connection(address, timeout=5) for _ in range(5)]
    for number, half in enumerate(halves):
        half.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n"[: number * 8])
    for half in halves:
        with half, suppress(ConnectionResetError):
            assert half.recv(1) == b""
    thread.join()
