"""`slimfl doctor`: what this machine can do, and why not."""

import os
import platform
import shutil
from typing import Any

from slimfl.cli.data import how_to_fetch, places
from slimfl.cli.output import Json, show, show_json, table

#: The packages of each extra; those of the flower engine are checked with the engines.
EXTRAS = {
    "watch": ("starlette", "uvicorn"),
    "export": ("onnx", "onnxruntime", "onnxscript"),
    "huggingface": ("datasets",),
    "waveform": ("sionna",),
    "ray": ("ray",),
    "deploy": ("flwr", "psutil"),
    "tensorboard": ("tensorboard",),
    "mlflow": ("mlflow",),
    "wandb": ("wandb",),
}


def doctor(json: Json = False) -> None:
    """Check the engines, data, extras and disk of this machine.

    Says what is missing and how to get it.
    """
    findings = [_python(), *_engines(), *_data(), *_extras(), _disk()]
    if json:
        show_json({"findings": findings})
        return
    show(table([{"": "ok" if f["ok"] else "no", "what": f["what"], "state": f["state"]}
                for f in findings]))  # fmt: skip


def _finding(what: str, ok: bool, state: str) -> dict[str, Any]:
    return {"what": what, "ok": ok, "state": state}


def _python() -> dict[str, Any]:
    from importlib.metadata import version

    state = f"{platform.python_version()}, slimfl {version('slimfl')}, {os.cpu_count()} cores"
    return _finding("python", True, state)


def _engines() -> list[dict[str, Any]]:
    import torch

    from slimfl.engines.machine import available_cores, tune_allocator
    from slimfl.engines.native_engine import native_module
    from slimfl.extras import why_not_flower

    cuda = torch.cuda.is_available()
    gpu = (
        torch.cuda.get_device_name() if cuda else "torch finds no CUDA device; slimfl uses the CPU"
    )
    tuned = tune_allocator()
    native = native_module()
    return [
        _finding(
            "native engine",
            native is not None,
            f"{native.simd_levels()[0]}, {available_cores()} cores"
            if native
            else "not compiled: install a C++ compiler, then install slimfl again",
        ),
        _finding("torch engine", True, f"torch {torch.__version__}, {available_cores()} cores"),
        _finding("flower engine", why_not_flower() is None, why_not_flower() or _flower_versions()),
        _finding("GPU", cuda, gpu),
        _finding(
            "allocator",
            tuned,
            "glibc, tuned for training" if tuned else "not glibc; training may be slower",
        ),
    ]


def _flower_versions() -> str:
    from importlib.metadata import version

    return f"flwr {version('flwr')}, ray {version('ray')}"


def _data() -> list[dict[str, Any]]:
    return [
        _finding(name, where is not None, where or how_to_fetch(name))
        for name, where in places().items()
    ]


def _extras() -> list[dict[str, Any]]:
    from slimfl.extras import why_missing

    problems = {extra: why_missing(extra, *packages) for extra, packages in EXTRAS.items()}
    return [
        _finding(extra, problem is None, problem or "installed")
        for extra, problem in problems.items()
    ]


def _disk() -> dict[str, Any]:
    free = shutil.disk_usage(".").free
    return _finding("disk", free > 1e9, f"{free / 1e9:.0f} GB free in this folder")
