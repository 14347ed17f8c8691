"""The folder name of a run, from words that may contain any characters."""

from __future__ import annotations

import hashlib
import re

#: Maximum length: disks allow 255 bytes, and temporary files add to the name.
LONGEST = 200


def run_name(words: list[str]) -> str:
    """The words, joined; if characters had to be replaced, a hash makes the name unique.

    >>> run_name(["slimfl", "data.alpha=0.1", "seed0"])
    'slimfl-data.alpha=0.1-seed0'
    >>> run_name(["slimfl", "data.dataset=../x", "seed0"])
    'slimfl-data.dataset=.._x-seed0-1e3b3ace'
    """
    text = "-".join(words)
    safe = re.sub(r"[^\w.,=+-]", "_", text, flags=re.ASCII).lstrip(".-")[:LONGEST]
    if safe == text:
        return text
    return f"{safe}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
