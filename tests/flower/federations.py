"""Helpers for tests of real federations."""

import random
import socket
import subprocess
import time
from contextlib import ExitStack

import psutil

from slimfl.errors import RunError

#: Bounds on waiting, generous for a busy machine; an idle one needs a tenth.
PATIENCE_S = 300


def free_ports(count):
    """Ports in a row that no connection is given: these have 32768 and more, Ray less than 20000.

    A free port of those could be any connection's a moment later, and remain so for a minute.
    """
    while True:
        first = random.randrange(20000, 32768 - count)
        ports = range(first, first + count)
        with ExitStack() as held:
            try:
                for port in ports:
                    held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
        return ports


def bring_up(federation, **options):
    """Start it; a failure tells what the logs say, as nobody sees a test's files later."""
    try:
        federation.up(**options)
    except RunError as error:
        for log in sorted((federation.kit.path / "logs").glob("*.log")):
            error.add_note(f"{log.name}:\n{log.read_text(errors='replace')[-4000:]}")
        raise


def processes():
    return subprocess.check_output(["ps", "-A", "-o", "args="], text=True)


def until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def listening(pids):
    """The addresses on which processes listen: (host, port)."""
    found = [one for pid in pids for one in psutil.Process(pid).net_connections("tcp")]
    return {tuple(one.laddr) for one in found if one.status == psutil.CONN_LISTEN}
