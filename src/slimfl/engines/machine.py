"""This machine: the number of usable cores, and how its memory is handed out."""

import ctypes
import os

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8
GIBIBYTE = 1 << 30


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def tune_allocator() -> bool:
    """Make glibc reuse memory; False if the C library has no such setting.

    By default glibc maps large tensors afresh and unmaps them on release, so each training step
    pays for the same page faults again.
    """
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
