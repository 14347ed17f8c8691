"""Peers: other frameworks that do the same work, each in its own environment.

A peer is a folder with `requirements.txt` and `worker.py`. Its worker speaks the protocol of
`worker.py` and uses nothing of this package; what peers have in common is in `common`, beside
their folders.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.runners import STARTED, Runner
from benchmarks.work import Work
from slimfl.errors import RequestError, RunError

#: Default folder for environments, which git ignores.
CACHE = Path(".benchmarks") / "peers"
#: Timeout for installations: downloads may be slow, but must end.
INSTALL_S = 1800


def find_peers(root: Path) -> list[Path]:
    """The peers' folders below `root`, by name."""
    return sorted(
        p.parent for p in root.glob("*/worker.py") if (p.parent / "requirements.txt").is_file()
    )


def peer_runner(folder: Path, work: Work, cache: Path = CACHE) -> Runner:
    """The peer as a runner of the bench; creates its environment if necessary."""
    if work.kind != "fedavg" or work.cohort not in (None, work.devices):
        raise RequestError(
            f"The peer {folder.name!r} only does federated averaging with all devices; ask for the "
            "work 'fedavg' without a cohort."
        )
    python = prepare_environment(folder, cache)
    common = folder.resolve().parent / "common"
    command = ["env", f"PYTHONPATH={common}", str(python), str(folder.resolve() / "worker.py")]
    return Runner(folder.name, [[*command, STARTED, json.dumps(asdict(work))]])


def prepare_environment(folder: Path, cache: Path = CACHE) -> Path:
    """The Python of the peer's environment, which is rebuilt when its requirements change."""
    requirements = folder / "requirements.txt"
    environment = cache.resolve() / folder.name
    stamp, python = environment / "requirements.sha256", environment / "bin" / "python"
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if python.exists() and stamp.is_file() and stamp.read_text() == digest:
        return python
    shutil.rmtree(environment, ignore_errors=True)
    _call(folder.name, [sys.executable, "-m", "venv", str(environment)])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    first = requirements.read_text().splitlines()[:1]
    if first and first[0].startswith("torch=="):
        # alone and first: otherwise the resolver picks a build with gigabytes of CUDA
        _call(folder.name, [*pip, first[0]])
    _call(folder.name, [*pip, "--requirement", str(requirements)])
    stamp.write_text(digest)
    return python


def _call(peer: str, command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(
            f"The environment of the peer {peer!r} could not be made: {error}."
        ) from error
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
        reason = (errors or lines)[-1].rstrip(".")
        raise RunError(f"The environment of the peer {peer!r} could not be made: {reason}.")
