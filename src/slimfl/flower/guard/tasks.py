"""Flower's SuperExec: starts a process for every task, without exposing its token.

Flower's own passes the token as an argument, which every user of the machine can read in the list
of processes and use to act as the ServerApp or as a device.
"""

import subprocess
import sys
import tempfile
from importlib import import_module

from flwr.supercore.cli.flower_superexec import flower_superexec
from flwr.supercore.constant import TASK_TYPE_TO_COMMAND, TaskType
from flwr.supercore.superexec.executor import ExecutionSpec, LaunchResult
from flwr.supercore.superexec.executor.subprocess_executor import SubprocessExecutor

#: Flower also has agents, models and connectors, which a federation does not use.
KINDS = {TaskType.SERVER_APP, TaskType.CLIENT_APP}


class QuietExecutor(SubprocessExecutor):
    """Starts tasks with the token in an unnamed file."""

    def get_eligible_capacity(
        self,
        supported_task_types: set[TaskType],
        *,
        insecure: bool = False,
        root_certificates_path: str | None = None,
    ) -> tuple[set[TaskType], set[str]]:
        """The two supported kinds of task."""
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


def run(arguments: list[str]) -> None:
    """Run until the parent process ends."""
    loop = import_module("flwr.supercore.superexec.run_superexec")
    loop.get_executor = lambda *_, **__: QuietExecutor()  # type: ignore[attr-defined]
    sys.argv[1:] = arguments
    flower_superexec()
