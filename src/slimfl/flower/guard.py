"""Flower's SuperLink and SuperNode, protected against other users of the machine.

Flower protects a SuperLink's fleet paths (node keys) and, if a secret is given, access to its
tasks. Its open-source version has no credentials for the control paths, reads bodies of any size
into memory, and passes task tokens as arguments, where `ps` shows them to everybody. Its programs
listen on TCP alone, so a proxy in front of them cannot keep other users of the machine away from
their ports. So both run here, with Flower's own options, behind a gate (`gate.py`), and in its
`process` isolation, in which Flower demands a secret for every task. The secret is drawn at every
start and shared with the only process that may get tasks: a SuperExec that hands tokens over in an
unnamed file.

    python -m slimfl.flower.guard superlink|supernode|tasks FLOWER'S OPTIONS
"""

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import tomli_w
from flwr.common.constant import NOOP_FLWR_AID
from flwr.supercore.constant import NOOP_FEDERATION_ID, TASK_TYPE_TO_COMMAND, TaskType
from flwr.supercore.fab import Fab
from flwr.supercore.superexec.executor import ExecutionSpec, LaunchResult
from flwr.supercore.superexec.executor.subprocess_executor import SubprocessExecutor
from uvicorn.config import HTTP_PROTOCOLS

from slimfl.flower.gate import Gate
from slimfl.flower.keys import write_loopback_certificate, write_private
from slimfl.flower.kit import NO_NGINX, find_nginx, joined
from slimfl.flower.signed import APP_ID, SignedApp
from slimfl.flower.superlink import read_token

#: Environment variables that would make Flower open further ports.
UNWANTED = ("FLWR_INTERNAL_GRPC_CONTROL_API", "FLWR_INTERNAL_GRPC_FLEET_API", "FLWR_OIDC_ENABLED")


def superlink(arguments: list[str]) -> None:
    """Run the server of a kit in its `server` folder, the current folder.

    With `--proxy nginx.conf` before Flower's options, nginx is started as well.
    """
    from flwr.superlink import main
    from flwr.superlink.cli.flower_superlink import flower_superlink

    token, app = read_token(Path()), SignedApp.read(Path())
    commands = []
    if arguments[:1] == ["--proxy"]:
        commands.append(_nginx(arguments[1]))
        arguments = arguments[2:]
    address = _address(arguments)
    secret = _fresh_secret()
    commands.append(_tasks(address, Path("ca.crt"), secret))
    main.create_app = _guarded(main.create_app, token, app)
    sys.argv[1:] = [*arguments, *_process_isolation(secret)]
    with _children(commands):
        flower_superlink()


def supernode(arguments: list[str]) -> None:
    """Run a device of a kit in its folder, the current folder."""
    from flwr.supernode import main
    from flwr.supernode.cli.flower_supernode import flower_supernode

    home = _home()
    certificate, key = home / "loopback.crt", home / "loopback.private"
    for old in (certificate, key):
        old.unlink(missing_ok=True)
    # without it, any process that takes the port after this one has ended would be asked for tasks
    write_loopback_certificate(certificate, key)
    secret = _fresh_secret()
    main.create_app = _guarded(main.create_app, None, None)
    sys.argv[1:] = [
        *arguments,
        "--node-config", str(_node_config(home)),
        "--ssl-certfile", str(certificate),
        "--ssl-keyfile", str(key),
        "--ssl-ca-certfile", str(certificate),
        *_process_isolation(secret),
    ]  # fmt: skip
    with _children([_tasks(_address(arguments), certificate, secret)]):
        flower_supernode()


def _guarded(
    create_app: Callable[..., Any], token: str | None, app: SignedApp | None
) -> Callable[..., Any]:
    """Wraps Flower's factory of its web application: adds the gate, and stores our app."""
    # what Flower's servers take; other users of the machine could keep half requests open
    HTTP_PROTOCOLS["auto"] = "slimfl.report.live.heads:PromptHeads"

    def create(*args: Any, **kwargs: Any) -> Any:
        web = create_app(*args, **kwargs)
        web.add_middleware(Gate, token=token)  # added last, so it is the outermost
        if app is not None:
            _store(web.state.linkstate_factory.state(), app)
        return web

    return create


def _store(state: Any, app: SignedApp) -> None:
    """Store the signed app, as Flower drops the signature of an app that comes with a run."""
    state.store_app(
        fab=Fab(app.digest, app.content, app.verifications),
        federation_id=NOOP_FEDERATION_ID,
        app_id=APP_ID,
        app_type=TaskType.SERVER_APP,
        added_by=NOOP_FLWR_AID,
    )


def _node_config(home: Path) -> Path:
    """Write the device's settings to a file, as paths may contain any character."""
    settings: dict[str, Any] = {
        "partition-id": int(os.environ["SLIMFL_DEVICE"]),
        "num-partitions": int(os.environ["SLIMFL_DEVICES"]),
    }
    named = (("DATA_DIR", "data-dir"), ("GAIN_FILE", "gain-file"), ("MODELS", "models"))
    for name, key in named:
        if os.environ.get(name):
            settings[key] = os.environ[name]
    path = home / "node.toml"
    path.write_text(tomli_w.dumps(settings))
    return path


def _fresh_secret() -> Path:
    path = _home() / "tasks.secret"
    path.unlink(missing_ok=True)
    write_private(path, secrets.token_bytes(32))
    return path


def _home() -> Path:
    home = Path(os.environ["FLWR_HOME"])
    home.mkdir(mode=0o700, exist_ok=True)
    return home


def _process_isolation(secret: Path) -> list[str]:
    for name in UNWANTED:
        os.environ.pop(name, None)
    return ["--isolation", "process", "--superexec-auth-secret-file", str(secret)]


def _address(arguments: list[str]) -> str:
    host, port = (arguments[arguments.index(name) + 1] for name in ("--host", "--port"))
    return joined(host, int(port))


def _tasks(address: str, certificate: Path, secret: Path) -> list[str]:
    return [
        sys.executable, "-P", "-m", "slimfl.flower.guard", "tasks",
        "--runtime-api-address", address,
        "--root-certificates", str(certificate.absolute()),
        "--superexec-auth-secret-file", str(secret),
        "--parent-pid", str(os.getpid()),
    ]  # fmt: skip


def _nginx(configuration: str) -> list[str]:
    found = find_nginx()
    if found is None:
        sys.exit(NO_NGINX)
    Path("nginx").mkdir(mode=0o700, exist_ok=True)
    return [found, "-e", "stderr", "-p", f"{Path().absolute()}/", "-c", configuration]


@contextmanager
def _children(commands: list[list[str]]) -> Iterator[None]:
    """Child processes that end with this one; if one of them ends early, so does this one."""
    # Flower's programs are installed beside this Python
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    children = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for command in commands]
    ending = threading.Event()

    def watch() -> None:
        while not ending.wait(0.5):
            for child in children:
                if child.poll() is not None:
                    name = Path(child.args[0]).name  # type: ignore[index, arg-type]
                    print(f"{name} ended with status {child.returncode}", file=sys.stderr)
                    os.kill(os.getpid(), signal.SIGTERM)
                    return

    # uvicorn raises the signal again after its shutdown; the code below must still run
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ending.set()
        for child in children:
            child.terminate()
        deadline = time.monotonic() + 5
        for child in children:
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()


#: Flower also has agents, models and connectors, which a federation does not use.
KINDS = {TaskType.SERVER_APP, TaskType.CLIENT_APP}


class QuietExecutor(SubprocessExecutor):
    """Flower's way to start the processes of tasks, with their tokens in unnamed files."""

    def get_eligible_capacity(
        self, supported_task_types: set[TaskType], **_: Any
    ) -> tuple[set[TaskType], set[str]]:
        """The apps of a federation."""
        return KINDS & set(supported_task_types), set()

    def launch(self, spec: ExecutionSpec) -> LaunchResult:
        """Start the process of a task."""
        if spec.task_type not in KINDS or spec.insecure or spec.root_certificates_path is None:
            return LaunchResult.failed("only apps of a federation with TLS are started here")
        silent = subprocess.DEVNULL if spec.suppress_output else None
        with tempfile.TemporaryFile() as token:
            token.write(spec.token.encode())
            token.seek(0)
            command = [
                TASK_TYPE_TO_COMMAND[spec.task_type],
                "--runtime-api-address", spec.runtime_api_address,
                "--token-file", f"/dev/fd/{token.fileno()}",
                "--root-certificates", spec.root_certificates_path,
            ]  # fmt: skip
            if spec.parent_pid is not None:
                command += ["--parent-pid", str(spec.parent_pid)]
            subprocess.Popen(command, stdout=silent, stderr=silent, pass_fds=[token.fileno()])
        return LaunchResult.accepted()


def tasks(arguments: list[str]) -> None:
    """Run Flower's SuperExec until the parent process ends."""
    from flwr.supercore.cli.flower_superexec import flower_superexec

    loop = import_module("flwr.supercore.superexec.run_superexec")
    loop.get_executor = lambda *_, **__: QuietExecutor()  # type: ignore[attr-defined]
    sys.argv[1:] = arguments
    flower_superexec()


if __name__ == "__main__":
    programs = {"superlink": superlink, "supernode": supernode, "tasks": tasks}
    if sys.argv[1:2] and sys.argv[1] in programs:
        programs[sys.argv[1]](sys.argv[2:])
    else:
        sys.exit("give superlink, supernode or tasks, then Flower's options")
