"""Count every change that a process makes below a folder, and make the k-th fail.

Changes are counted where Python passes them to the operating system: writes (also those of file
objects), fsync, truncation, rename, removal and new folders.
"""

import builtins
import errno
import io
import os
import signal
from pathlib import Path

#: What needs room on the disk.
NEEDS_ROOM = ("write", "fsync", "mkdir")


def ways(kind):
    """How an event of a kind can go wrong."""
    middle = ("middle",) if kind == "write" else ()
    full = ("full",) if kind in NEEDS_ROOM else ()
    return ("before", *middle, "after", *full)


class Faults:
    """`before`, `middle`, `after`: the process is killed there. `full`: the disk is, from then on.

    `events` has the kinds of all that was counted.
    """

    def __init__(self, root, at=None, way="before"):
        self.root, self.at, self.way = os.path.realpath(root), at, way
        self.events = []

    def install(self):
        """Stand between the program and the system; only for a process that ends with the test."""
        for name, kind in {
            "fsync": "fsync", "ftruncate": "truncate", "rename": "rename", "replace": "rename",
            "unlink": "unlink", "remove": "unlink", "mkdir": "mkdir",
        }.items():  # fmt: skip
            setattr(os, name, self._wrapped(getattr(os, name), kind))
        self._write, self._open = os.write, io.open
        os.write = lambda fd, raw: (
            self._written(lambda part: self._write(fd, part), raw)
            if self._inside(fd)
            else self._write(fd, raw)
        )
        io.open = builtins.open = self._opened

    def _wrapped(self, function, kind):
        def call(first, *rest, **options):
            # to remove what is not there, or make what is, changes nothing
            nothing = {"unlink": False, "mkdir": True}.get(kind) == _exists(first)
            if nothing or not self._inside(first):
                return function(first, *rest, **options)
            way = self._count(kind)
            if way == "full":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if way == "before":
                _die()
            result = function(first, *rest, **options)
            if way == "after":
                _die()
            return result

        return call

    def _written(self, write, raw):
        way = self._count("write")
        half = memoryview(raw).cast("B")[: len(raw) // 2]
        if way == "full":
            if len(half):
                write(half)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if way == "middle":
            write(half)
        if way in ("before", "middle"):
            _die()
        count = write(raw)
        if way == "after":
            _die()
        return count

    def _opened(self, file, mode="r", buffering=-1, encoding=None, errors=None, newline=None,
                closefd=True, opener=None):  # fmt: skip
        plain = (file, mode, buffering, encoding, errors, newline, closefd, opener)
        if not set(mode) & set("wxa+") or not self._inside(file):
            return self._open(*plain)
        faults = self

        class Raw(io.FileIO):
            def write(self, raw):
                return faults._written(super().write, raw)

        raw = Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        kind = io.BufferedRandom if "+" in mode else io.BufferedWriter
        buffered = kind(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

    def _inside(self, where):
        try:
            path = Path(f"/proc/self/fd/{where}").readlink() if isinstance(where, int) else where
        except OSError:
            return False
        return (Path.cwd() / path).is_relative_to(self.root)

    def _count(self, kind):
        """Which way this event goes wrong, None if it does not."""
        number = len(self.events)
        self.events.append(kind)
        if self.at is None or number < self.at:
            return None
        if self.way == "full":
            return "full" if kind in NEEDS_ROOM else None
        return self.way if number == self.at else None


def _exists(where):
    return not isinstance(where, int) and os.path.lexists(where)


def _die():
    os.kill(os.getpid(), signal.SIGKILL)
