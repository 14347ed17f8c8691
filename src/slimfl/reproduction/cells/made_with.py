"""What the last bit of a run depends on beside its experiment."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
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


@cache
def drawn_weights() -> str:
    """A digest of some first weights: processors of one kind draw the same."""
    from slimfl.nn import build, flatten

    network = build(
        "ul-mobilenet", {}, in_channels=1, classes=10, initialisation="he", seed=0
    )  # fmt: skip
    return _digest(flatten(network).tobytes())


@cache
def drawn_gains() -> str:
    """A digest of some gains: a logarithm's last bit depends on the processor."""
    from slimfl.config import RadioSection
    from slimfl.radio import outage_link

    return _digest(outage_link(RadioSection()).gains(0, 1, 10_000).tobytes())


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:12]
