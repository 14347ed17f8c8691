"""Ctrl-C and SIGTERM end a command like an error: with clean-up, one sentence and a status."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from slimfl.errors import Interrupted

#: A terminal, a shell and `make` may all forward the same Ctrl-C; within this time it counts once.
SAME_S = 1.0


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """Make SIGINT and SIGTERM raise `Interrupted`.

    Python's own KeyboardInterrupt does not work here, as typer silently ends the command on it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last_s = -SAME_S

    def raise_interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= SAME_S:
            last_s = time.monotonic()
            raise Interrupted(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as in a background job of a shell script
            signal.signal(number, raise_interrupted)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def resumed_by(command: str) -> Iterator[None]:
    """Inside the block, the message after an interrupt names `command` to continue."""
    try:
        yield
    except Interrupted as interrupted:
        interrupted.way_on = f"`{command}` continues after the last complete round"
        raise
