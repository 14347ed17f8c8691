"""`slimfl doctor`: what this machine can do, and why not."""

import os
import platform
import shutil
from importlib.metadata import version

import torch

from slimfl.cli.data import how_to_fetch, places
from slimfl.cli.output import Reply, table
from slimfl.cli.settings import command
from slimfl.engines.machine import available_cores, tune_allocator
from slimfl.engines.native_engine import native_module
from slimfl.extras import why_missing, why_not_flower

#: The packages of each extra; those of the flower engine are checked with the engines.
EXTRAS = {
    "watch": ("starlette", "uvicorn"),
    "export": ("onnx", "onnxruntime", "onnxscript"),
    "huggingface": ("datasets",),
    "waveform": ("sionna",),
    "ray": ("ray", "psutil"),
    "deploy": ("flwr",),
    "tensorboard": ("tensorboard",),
    "mlflow": ("mlflow",),
    "wandb": ("wandb",),
}


@command()
def doctor() -> Reply:
    """Check the engines, data, extras and disk of this machine.

    Says what is missing and how to get it.
    """
    cores, native = available_cores(), native_module()
    no_flower, cuda = why_not_flower(), torch.cuda.is_available()
    tuned, free = tune_allocator(), shutil.disk_usage(".").free
    engines = [
        (
            "native engine",
            native is not None,
            f"{native.simd_levels()[0]}, {cores} cores"
            if native
            else "not compiled: install a C++ compiler, then install slimfl again",
        ),
        ("torch engine", True, f"torch {torch.__version__}, {cores} cores"),
        (
            "flower engine",
            no_flower is None,
            no_flower or f"flwr {version('flwr')}, ray {version('ray')}",
        ),
        (
            "GPU",
            cuda,
            torch.cuda.get_device_name()
            if cuda
            else "torch finds no CUDA device; slimfl uses the CPU",
        ),
        (
            "allocator",
            tuned,
            "glibc, tuned for training" if tuned else "not glibc; training may be slower",
        ),
    ]
    python = f"{platform.python_version()}, slimfl {version('slimfl')}, {os.cpu_count()} cores"
    problems = {extra: why_missing(extra, *packages) for extra, packages in EXTRAS.items()}
    checked = [
        ("python", True, python),
        *engines,
        *((name, at is not None, at or how_to_fetch(name)) for name, at in places().items()),
        *((extra, problem is None, problem or "installed") for extra, problem in problems.items()),
        ("disk", free > 1e9, f"{free / 1e9:.0f} GB free in this folder"),
    ]
    findings = [{"what": what, "ok": ok, "state": state} for what, ok, state in checked]
    rows = [{"": "ok" if each["ok"] else "no", **each} for each in findings]
    for row in rows:
        del row["ok"]
    return Reply({"findings": findings}, [table(rows)])
