"""A Ray for one process on this machine: on loopback, behind a token, ended with its owner.

By default, Ray listens on all interfaces and runs the code of anyone who connects. Here it

* listens on 127.0.0.1 alone, with the dashboard off;
* asks for a token, which is in a file that only its owner can read;
* keeps its sockets and logs in a folder that only its owner can enter;
* does not let its processes import modules from the current folder, which may be a stranger's;
* is ended by a guard, which also removes its folder, however the process ends (`processes.py`). If
  the guard is killed too, the next one that is started cleans up.
"""

import contextlib
import fcntl
import logging
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from slimfl.errors import RequestError, RunError
from slimfl.flower import processes

PREFIX = "slimfl-ray-"

#: An empty folder that is younger than this is still being set up.
MAKING_S = 60.0

_TOKEN = "RAY_AUTH_TOKEN"

#: Time within which the guard ends processes and removes files.
GUARD_S = processes.PATIENCE_S + 10.0


class LocalRay:
    """Everything that has to be done before `ray.init` and after `ray.shutdown`.

    Ray itself is started by `ray.init(**init_args)`, here or in another library.
    """

    def __init__(self) -> None:
        ray = sys.modules.get("ray")
        if ray is not None and ray.is_initialized():
            raise RequestError(
                "this process is already connected to a Ray cluster; disconnect with "
                "ray.shutdown(), or use an engine other than flower"
            )
        clear_leftovers()
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_base()))
        # a process that can lock this file takes its owner and guard for dead, so the file must be
        # locked before it gets its final name
        temporary = self.folder / "lock.tmp"
        self._lock = temporary.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        temporary.rename(self.folder / "lock")
        self._guard = subprocess.Popen(
            [sys.executable, "-I", processes.__file__, str(self.folder), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[self._lock.fileno()],
            start_new_session=True,  # interrupts are for the owner
        )
        # Ray sets the last when it is imported
        changed = (*self._settings(), _TOKEN, "RAY_CLIENT_MODE")
        self._before = {name: os.environ.get(name) for name in changed}
        token = self.folder / "token"
        token.touch(0o600)
        token.write_text(secrets.token_hex(32))
        os.environ.update(self._settings())
        os.environ.pop(_TOKEN, None)  # it would take precedence over the file
        _read_environment_again()
        _close_current_folder()

    def _settings(self) -> dict[str, str]:
        return {
            processes.RAY: str(self.folder),
            "SPT_NOENV": "1",  # otherwise processes overwrite the mark with their titles
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.folder / "token"),
            # otherwise Ray replaces 127.0.0.1 by an address that others can reach
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        }

    @property
    def init_args(self) -> dict[str, Any]:
        """The arguments of `ray.init`."""
        return {
            "address": "local",  # otherwise Ray joins a cluster that runs or ran here
            "include_dashboard": False,
            "log_to_driver": False,
            "logging_level": logging.ERROR,
            "_node_ip_address": "127.0.0.1",
            # a subfolder, because Ray opens its own folder to everybody
            "_temp_dir": str(self.folder / "ray"),
        }

    def check(self) -> None:
        """After `ray.init`: refuse a Ray that others can reach."""
        import ray

        address = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        if address not in ("127.0.0.1", "::1"):
            raise RunError(
                f"Ray listens on {address}, not only on loopback; start again with "
                "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 in the environment"
            )
        core: Any = ray._raylet
        if not hasattr(core, "AuthenticationMode"):
            raise RunError(
                "this version of Ray cannot require a token; run `pip install 'ray>=2.52'`"
            )
        if core.get_authentication_mode() != core.AuthenticationMode.TOKEN:
            raise RunError(
                "Ray does not require a token; start again with RAY_AUTH_MODE=token in the "
                "environment"
            )

    def close(self) -> None:
        """End the remains of Ray and remove its folder."""
        assert self._guard.stdin is not None
        self._lock.close()
        self._guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(GUARD_S)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _read_environment_again()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _base() -> Path:
    # the path of a socket must be short, and the user's temporary folder may have a long one
    return Path("/tmp") if Path("/tmp").is_dir() else Path(tempfile.gettempdir())


def _read_environment_again() -> None:
    """Make Ray read its environment again, as it may have been imported before."""
    constants: Any = sys.modules.get("ray._private.ray_constants")
    if constants is not None:
        constants.ENABLE_RAY_CLUSTER = constants.env_bool(
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", not constants.IS_WINDOWS_OR_OSX
        )
    core = sys.modules.get("ray._raylet")
    if core is not None and hasattr(core, "AuthenticationMode"):
        core.Config.initialize("")
        core.AuthenticationTokenLoader.instance().reset_cache()


def _close_current_folder() -> None:
    """Keep Ray from putting the current folder first among those that its processes search.

    Ray omits it for tasks that bring a folder of their own, and asks in no other place.
    """
    from ray.job_config import JobConfig

    JobConfig._runtime_env_has_working_dir = lambda self: True  # type: ignore[method-assign]


def clear_leftovers() -> None:
    """End the Rays of this user whose owner and guard were both killed; remove their folders."""
    for folder in _base().glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # it has disappeared meanwhile
            status = folder.lstat()
            if folder.is_symlink() or not folder.is_dir() or status.st_uid != os.geteuid():
                continue
            if (folder / "lock").exists():
                if _abandoned(folder):
                    processes.clear_ray(folder)
            elif time.time() - status.st_mtime > MAKING_S:
                folder.rmdir()  # fails if it is not empty


def _abandoned(folder: Path) -> bool:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
