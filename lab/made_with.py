"""What the last bits of a run depend on besides its experiment."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib import import_module, metadata
from typing import Any


def here() -> dict[str, Any]:
    """Engine, versions, and digests of numbers whose last bits depend on the processor."""
    return {
        "engine": engine(),
        "weights": drawn_weights(),
        "gains": drawn_gains(),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Versions of the packages that compute."""
    packages = {name: metadata.version(name) for name in ("slimfl", "torch", "numpy")}
    return {"python": platform.python_version(), **packages}


def engine() -> str:
    """The engine that computes and, if native, its instruction set."""
    try:
        native = import_module("slimfl._native")
    except ImportError:
        return "torch"
    return f"native ({native.simd_levels()[0]})"


def weights() -> str:
    """What draws the initial weights: torch with its instruction set."""
    import torch

    return f"torch ({torch.backends.cpu.get_cpu_capability()})"


@cache
def drawn_weights() -> str:
    """A digest of some initial weights, which processors of the same kind share."""
    from slimfl.nn import build, flatten

    network = build(
        "ul-mobilenet", {}, in_channels=1, classes=10, initialisation="he", seed=0
    )  # fmt: skip
    return _digest(flatten(network).tobytes())


@cache
def drawn_gains() -> str:
    """A digest of some gains: the last bit of a logarithm depends on the processor."""
    from slimfl.experiment import RadioSection
    from slimfl.radio import outage_link

    return _digest(outage_link(RadioSection()).gains(0, 1, 10_000).tobytes())


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:12]
