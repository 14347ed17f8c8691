"""Files that strangers may have made: read with care, and replaced atomically.

Opening a FIFO waits for a writer that may never come, and a device such as `/dev/zero` never ends.
So files that a user names are opened only if they are regular files (`open_regular`). Inside a run
folder the rule is stricter (`open_plain`): no symbolic link is followed at the last part of a path,
and no file is written that has a second name elsewhere.

New files are created exclusively under names that cannot be guessed, flushed to the disk, then
renamed: readers of the path see the old file or the new one, also after a kill or a power cut.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from slimfl.errors import RequestError, RunError

#: Number of characters of the final name in a temporary one; the final name may have maximum
#: length.
_NAME_PART = 50

#: The errors of opening something that is not a plain file.
_NOT_PLAIN = (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR)

#: Maximum size of a file of text; parsed, the worst takes about twenty times as much memory.
MOST_TEXT_BYTES = 1 << 26


class NotRegularError(OSError):
    """A path that is no regular file, or a file that is too large."""

    def __init__(self, problem: str) -> None:
        super().__init__(errno.EINVAL, problem)

    def __str__(self) -> str:
        return str(self.strerror)


class UnreadableError(ValueError):
    """What is wrong with the contents of a file, as the end of a sentence."""

    def __init__(self, problem: str, *, syntax: bool = False) -> None:
        super().__init__(problem)
        self.syntax = syntax


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading; `NotRegularError` for a folder, a FIFO, a socket or a device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a name with a NUL byte
        raise NotRegularError(str(error)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularError("it is not a regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The contents of a regular file; one of more than `most_bytes` is refused."""
    contents = bytearray()
    with open_regular(path) as file:
        # in pieces: reading all at once would first allocate that much memory
        while more := file.read(1 << 20):
            contents += more
            if len(contents) > most_bytes:
                raise NotRegularError(f"it holds more than {most_bytes:,} bytes")
    return bytes(contents)


def read_regular_text(path: Path) -> str:
    """The text of a small regular file."""
    return read_regular(path, MOST_TEXT_BYTES).decode()


def read_json(path: Path, most_bytes: int = MOST_TEXT_BYTES) -> Any:
    """The contents of a JSON file; `OSError` or `UnreadableError` if it cannot be read."""
    return parse_json(read_regular(path, most_bytes))


def read_toml(path: Path, most_bytes: int = MOST_TEXT_BYTES) -> dict[str, Any]:
    """The contents of a TOML file; `OSError` or `UnreadableError` if it cannot be read."""
    return parse_toml(read_regular(path, most_bytes))


def parse_json(contents: bytes | str) -> Any:
    """The value of JSON text that a stranger may have written."""
    return _parsed(json.loads, contents)


def parse_toml(contents: bytes | str) -> dict[str, Any]:
    """The tables of TOML text that a stranger may have written."""
    tables: dict[str, Any] = _parsed(tomllib.loads, contents)
    return tables


def _parsed(parse: Callable[[str], Any], contents: bytes | str) -> Any:
    try:
        return parse(contents if isinstance(contents, str) else contents.decode())
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise UnreadableError(str(error), syntax=True) from None
    except RecursionError:
        problem = "it is nested too deeply"
    except MemoryError:
        problem = "it does not fit into memory"
    except (ValueError, OverflowError):
        problem = "a number has too many digits, or a date does not exist"
    raise UnreadableError(problem)


def write_atomically(path: Path, contents: bytes) -> None:
    """Replace `path` completely or not at all, and wait until it is on the disk."""
    with replacing(path) as file:
        file.write(contents)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that durably replaces `path` when the block ends without an error."""
    remove_leftovers(path.parent, re.escape(path.name[:_NAME_PART]))
    file = _new_file(path)
    temporary = Path(file.name)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove_leftovers(folder: Path, name: str) -> None:
    """Remove the temporary files of processes that were killed; `name` is a regular expression."""
    pattern = re.compile(rf"\.{name}\.[0-9a-f]+\.tmp")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_unless_in_use(Path(entry.path))


def open_plain(path: Path, mode: str) -> IO[Any]:
    """Open a plain file ("rb", "rb+", "a"); refuse anything else."""
    return open(path, mode, opener=plain_descriptor)


def read_plain(path: Path) -> bytes:
    """The contents of a plain file."""
    with open_plain(path, "rb") as file:
        contents: bytes = file.read()
    return contents


def sha256(path: Path) -> str:
    """The checksum of a plain file of any size."""
    digest = hashlib.sha256()
    with open_plain(path, "rb") as file:
        while part := file.read(2**20):
            digest.update(part)
    return digest.hexdigest()


def plain_descriptor(path: str | Path, flags: int) -> int:
    """`os.open` for plain files only; the flags must not truncate."""
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode=0o666)
    except OSError as error:
        if error.errno in _NOT_PLAIN:
            raise _refusal(Path(path)) from None
        raise
    found = os.fstat(descriptor)
    writes = flags & (os.O_WRONLY | os.O_RDWR)
    if not stat.S_ISREG(found.st_mode) or (writes and found.st_nlink > 1):
        os.close(descriptor)
        raise _refusal(Path(path))
    return descriptor


def append_whole(path: Path, contents: bytes) -> None:
    """Append to a file, completely or not at all; it is on the disk when this returns."""
    descriptor = plain_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        size = os.fstat(descriptor).st_size
        try:
            rest = contents
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except BaseException:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)
    if size == 0:
        sync_folder(path.parent)


def own_folder(path: Path) -> None:
    """Create a folder, or use the existing one; a link to a folder is refused."""
    with suppress(FileExistsError):
        path.mkdir()
    if not stat.S_ISDIR(path.lstat().st_mode):
        raise _refusal(path)


def sync_folder(folder: Path) -> None:
    """Wait until a rename in the folder is on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _new_file(path: Path) -> IO[bytes]:
    """A new file beside `path`, locked so that no process takes it for a leftover."""
    while True:
        name = f".{path.name[:_NAME_PART]}.{secrets.token_hex(8)}.tmp"
        file = open(path.with_name(name), "xb", opener=_no_links)  # noqa: SIM115
        with suppress(OSError):  # some network disks have no locks: leftovers remain there
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # another process removed it between its creation and its lock


def _no_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, mode=0o666)


def _remove_unless_in_use(path: Path) -> None:
    descriptor = plain_descriptor(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)


def _refusal(path: Path) -> RequestError:
    mode = path.lstat().st_mode
    if stat.S_ISREG(mode):
        what = "a file with a second name (a hard link), which would be changed as well: copy it"
    elif stat.S_ISLNK(mode):
        what = "a symbolic link, and slimfl follows none inside a run folder: remove it"
    elif stat.S_ISDIR(mode):
        what = "a folder where a file belongs: move it away"
    else:
        what = "a pipe, socket or device instead of a plain file: remove it"
    return RequestError(f"{path} is {what}, then try again")


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends without an error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            yield Path(file.name)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise RunError(
                f"the disk is full and {path} was not written; free some space"
            ) from error
        raise RequestError(
            f"{path} cannot be written ({error.strerror}); choose another path"
        ) from error
