"""Tune glibc's allocator for training: keep freed memory instead of giving it back every step.

By default glibc maps large tensors afresh and unmaps them on release, so each step pays for the
same page faults again.
"""

import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8
GIBIBYTE = 1 << 30


def tune_allocator() -> bool:
    """Ask glibc to reuse memory; False where the C library has no such setting."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    settings = (
        (M_MMAP_THRESHOLD, GIBIBYTE),
        (M_TRIM_THRESHOLD, GIBIBYTE),
        (M_TOP_PAD, 64 << 20),
        # a thread's own arena is made of small mappings that come and go; one arena serves all
        (M_ARENA_MAX, 1),
    )
    return all(mallopt(option, value) == 1 for option, value in settings)
