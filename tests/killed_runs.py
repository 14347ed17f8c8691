"""Runs of the parts in `docs/howto` by the command, killed on the way, and compared."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from safetensors.numpy import load_file

from slimfl.round import RunFolder

HOWTO = Path(__file__).parents[1] / "docs/howto"


def command(*arguments, trust="mylab"):
    code = "from slimfl.cli import main; main()"
    paths = os.pathsep.join(filter(None, [str(HOWTO), os.environ.get("PYTHONPATH", "")]))
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    environment.pop("SLIMFL_TRUST", None)
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments), "--trust", trust],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    _, error = process.communicate(timeout=300)
    assert process.returncode == 0, error


def killed_after(process, group, rounds):
    """Kill a process once its run has this many rounds."""
    deadline = time.monotonic() + 120
    try:
        while process.poll() is None and time.monotonic() < deadline:
            found = list(group.glob("*/metrics.jsonl"))
            if found and found[0].read_bytes().count(b"\n") >= rounds:
                break
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL, "it was faster"


def lines(folder):
    return [{**line.as_json(), "seconds": None} for line in RunFolder.open(folder).metrics()]


def last_checkpoint(folder):
    return load_file(sorted((folder / "checkpoints").glob("round-*.safetensors"))[-1])
