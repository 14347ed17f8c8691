"""`slimfl watch` in its own process, as users run it."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from slimfl.round import RunFolder
from tests import asking
from tests.hand_made_runs import PROVENANCE, line

COMMAND = [sys.executable, "-c", "from slimfl.cli import main; main()"]
TOKEN = "a-token-of-the-tests"


@dataclass
class Served:
    url: str
    process: "subprocess.Popen[str]"

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port
        return port

    def get(self, path: str, host: str | None = None) -> tuple[int, dict[str, str], bytes]:
        """The answer to a request whose Host header may be anything."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers={"Host": host} if host else {})
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, headers, answer.read()
        finally:
            connection.close()


@contextmanager
def watching(*paths: Path, port: int = 0, seconds: int = 120) -> Iterator[Served]:
    process = subprocess.Popen(
        [*COMMAND, "watch", *map(str, paths), "--port", str(port), "--json", "--no-browser",
         "--seconds", str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SLIMFL_WATCH_TOKEN": TOKEN},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    text = ""
    try:
        while not text.endswith("}\n"):
            read = process.stdout.readline()
            assert read, process.stderr.read()
            text += read
        yield Served(json.loads(text)["url"], process)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def write_run(path: Path, method: str = "slimfl", rounds: int = 2, asked: int = 2) -> Path:
    """A run folder with two devices."""
    (experiment,) = asking.load(
        method=method, rounds=asked, federation__devices=2, radio__rates="equal"
    )
    RunFolder.create(path, experiment, PROVENANCE)
    widths = {"slimfl": ("0.5x", "1.0x")}.get(method, (method.removeprefix("vanilla-"),))
    for number in range(1, rounds + 1):
        append(path, line(number, dict.fromkeys(widths, 0.5)))
    return path


def append(run: Path, line: dict[str, Any]) -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def until(what: Any, seconds: float = 60) -> Any:
    """Wait until a function gives something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
    return found
