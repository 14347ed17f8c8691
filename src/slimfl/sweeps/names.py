"""The folder name of a run: its words, as far as a folder can be called so."""

from __future__ import annotations

import hashlib
import re

#: Disks take 255 bytes; temporary files add to the name.
LONGEST = 200


def run_name(words: list[str]) -> str:
    """The words, joined; where they had to be changed, a hash tells them apart from others.

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
