"""What the last bit of a run depends on beside its experiment."""

from __future__ import annotations

import platform
from importlib import metadata


def versions() -> dict[str, str]:
    """Of what computes."""
    packages = {name: metadata.version(name) for name in ("slimfl", "torch", "numpy")}
    return {"python": platform.python_version(), **packages}


def engine() -> str:
    """Whose instructions add up."""
    try:
        from slimfl import _native as native
    except ImportError:
        return "torch"
    return f"native ({native.simd_levels()[0]})"


def weights() -> str:
    """Who draws the weights that a run begins with."""
    import torch

    return f"torch ({torch.backends.cpu.get_cpu_capability()})"
