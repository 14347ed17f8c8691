"""Tune glibc's allocator for training: keep freed memory instead of returning it every step.

By default glibc maps large tensors afresh and unmaps them on release, so each step pays for the
same page faults again.
"""

import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8
GIBIBYTE = 1 << 30


def tune_allocator() -> bool:
    """Make glibc reuse memory; False if the C library has no such setting."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    settings = (
        (M_MMAP_THRESHOLD, GIBIBYTE),
        (M_TRIM_THRESHOLD, GIBIBYTE),
        (M_TOP_PAD, 64 << 20),
        # one arena for all threads: a thread's own would map and unmap small pieces of memory
        (M_ARENA_MAX, 1),
    )
    return all(mallopt(option, value) == 1 for option, value in settings)
