"""Measured curves in the user's cache, under the hash of what they were measured with."""

import hashlib
import json
import logging
import math
import os
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from slimfl.files import read_json, write_atomically
from slimfl.radio.waveform.code import Code
from slimfl.radio.waveform.curve import OFFSETS_DB, SEARCH_BLOCKS, Curve, measure

log = logging.getLogger(__name__)

#: Blocks that are sent per point of a curve.
BLOCKS = 64
#: A file of a curve is no longer.
MOST_BYTES = 1 << 16


@lru_cache(maxsize=256)
def curve_of(code: Code, interference: tuple[float, ...]) -> Curve:
    """The curve of a layer: as it was measured before, or measured now."""
    made_with = settings(code, interference)
    name = hashlib.sha256(json.dumps(made_with, sort_keys=True).encode()).hexdigest()[:32]
    path = folder() / f"{name}.json"
    known = _read(path, made_with)
    if known is not None:
        return known
    log.info(
        "measuring a code block of %d bits at rate %.3f: once, up to some minutes",
        code.information_bits,
        code.rate,
    )
    curve = measure(code, interference, BLOCKS)
    document = {"settings": made_with, "middle_db": curve.middle_db, "width_db": curve.width_db}
    if math.isinf(curve.middle_db):
        document["middle_db"] = None
    with suppress(OSError):  # a cache that cannot be written is no reason to stop
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(document, indent=1, sort_keys=True).encode() + b"\n")
    return curve


def settings(code: Code, interference: tuple[float, ...]) -> dict[str, object]:
    """All that a curve depends on; the number of blocks in a message is not part of it."""
    return {
        "bits_per_symbol": code.modem.bits_per_symbol,
        "iterations": code.modem.iterations,
        "payload_bits": code.payload_bits,
        "symbols": code.symbols,
        "interference": [round(power, 9) for power in interference],
        "blocks": [BLOCKS, SEARCH_BLOCKS, *OFFSETS_DB],
        "sionna": _sionna_version(),
    }


def folder() -> Path:
    """Where curves are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slimfl" / "waveform"


def _read(path: Path, made_with: dict[str, object]) -> Curve | None:
    """None where there is no file, or one that does not say what it should."""
    try:
        document = read_json(path, MOST_BYTES)
        if document["settings"] != made_with:
            return None
        middle, width = document["middle_db"], float(document["width_db"])
        curve = Curve(math.inf if middle is None else float(middle), width)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return curve if width > 0 and math.isfinite(width) and not math.isnan(curve.middle_db) else None


def _sionna_version() -> str:
    try:
        return version("sionna-no-rt")
    except PackageNotFoundError:
        return "another"
