"""A log of what a private run has released, written before anybody can see the result.

A round whose checkpoint is lost is run again with new noise: its result is then released twice, and
both count. `releases.jsonl` has one line for each noisy result, written and synced before the
result leaves the process, so the count is never too small, even after a kill. An incomplete last
line belongs to a result that was never released.
"""

import errno
import json
import logging
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from slimfl.errors import RequestError
from slimfl.files import sync_folder

log = logging.getLogger(__name__)

RELEASES = "releases.jsonl"


@dataclass(frozen=True)
class Release:
    """One noisy result."""

    number: int
    """Counted from 1 over the whole life of a run, repeated rounds included."""
    round: int
    heard: tuple[int, ...]
    """The devices whose contributions it may depend on."""


class Releases:
    """The append-only log of releases in a run folder."""

    def __init__(self, folder: Path, devices: int) -> None:
        self.path, self.devices = folder / RELEASES, devices

    def read(self) -> list[Release]:
        """All releases; cuts off an incomplete last line, so that the next one starts a line."""
        descriptor = self._open(os.O_RDWR, missing_ok=True)
        if descriptor is None:
            return []
        releases: list[Release] = []
        with os.fdopen(descriptor, "rb+") as file:
            whole = 0
            for raw in file:
                if not raw.endswith(b"\n"):
                    file.truncate(whole)
                    os.fsync(file.fileno())
                    break
                whole += len(raw)
                before = releases[-1].number if releases else 0
                releases.append(self._parsed(raw) or self._damaged(before + 1))
        return releases

    def _parsed(self, raw: bytes) -> Release | None:
        try:
            values = json.loads(raw)
            number, round, heard = values["release"], values["round"], values["heard"]
            whole = all(type(n) is int and n >= 0 for n in (number, round, *heard))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        if not whole or any(device >= self.devices for device in heard):
            return None
        return Release(number, round, tuple(heard))

    def _damaged(self, number: int) -> Release:
        log.warning(
            "release %d in %s is damaged; it is counted as if every device had been decoded",
            number,
            self.path,
        )
        return Release(number, 0, tuple(range(self.devices)))

    def append(self, release: Release) -> None:
        """Add a release, whole or not at all; it is on the disk when this returns."""
        raw = json.dumps(
            {"release": release.number, "round": release.round, "heard": release.heard}
        ).encode()
        descriptor = self._open(os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        assert descriptor is not None
        try:
            size = os.fstat(descriptor).st_size
            try:
                if os.write(descriptor, raw + b"\n") != len(raw) + 1:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)
        if size == 0:
            sync_folder(self.path.parent)

    def _open(self, flags: int, missing_ok: bool = False) -> int | None:
        """Open the file itself: a link would lead out of the folder, and a pipe would block."""
        try:
            descriptor = os.open(self.path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        except FileNotFoundError:
            if missing_ok:
                return None
            raise
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
                raise self._not_a_file() from None
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise self._not_a_file()
        return descriptor

    def _not_a_file(self) -> RequestError:
        return RequestError(f"{self.path} is not a plain file; move it away")


def heard_after(releases: Sequence[Release], known: int) -> Iterator[int]:
    """The devices heard in releases after number `known`, once per release."""
    for release in releases:
        if release.number > known:
            yield from release.heard
