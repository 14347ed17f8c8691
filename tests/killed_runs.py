"""Run folders that were killed, edited or forged, and runs of the parts in `docs/howto`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from slimfl.round import RunFolder
from slimfl.runs.storage import checkpoint as checkpoints

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


def edit(path, **values):
    """Change keys of experiment.toml by hand."""
    file = path / "experiment.toml"
    text = file.read_text()
    for key, value in values.items():
        # the first: the server's own optimiser has keys of the same names further down
        text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text, count=1)
        assert count == 1, key
    file.write_text(text)


def rewrite(file, change):
    """Change a checkpoint as somebody would who knows how its checksum is made."""
    with safe_open(file, "numpy") as opened:
        state = json.loads(opened.metadata()["state"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    change(state, tensors)
    text = json.dumps(state, sort_keys=True)
    digest = checkpoints._digest(text, tensors)
    save_file(tensors, file, {"state": text, "sha256": digest})
