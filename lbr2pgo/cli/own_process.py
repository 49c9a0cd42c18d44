"""Settings of a process that is ours alone; a program that imports lbr2pgo has its own."""

from __future__ import annotations

import os
from contextlib import suppress

_THREADS = "OPENBLAS_NUM_THREADS"
_ARENA_MAX = -8
"""M_ARENA_MAX (glibc, malloc.h)."""


def prepare() -> None:
    """Load NumPy without threads, and let all threads take memory from one place.

    NumPy's OpenBLAS would start a thread for each processor, which nothing here uses; what one
    thread of ours frees, glibc would keep for that thread. Medians of nine runs of
    `lbr2pgo convert perf.data --binary sqlite --llvm A --fdata B` (59 MB, two processors): 0.77 s
    of CPU, and 0.83 s with those threads; a peak (VmHWM) of 69 MB, and 89 MB with many arenas.
    """
    import ctypes  # no command that only prints its help needs it

    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
    _load_numpy()


def give_back_memory() -> None:
    """Give back what was freed and the C library keeps: what comes next needs less, and else.

    Of the page of a C++ program of 168 MB (`benchmarks/inputs.py`) it is a tenth of the peak.
    """
    import ctypes

    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def keep_closed_streams() -> None:
    """Let no file that is opened take the number of a closed standard stream.

    What reads or writes a closed one fails then; it would read or write that file.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:  # the lowest number that is free is the next one that is given
            os.open(os.devnull, mode)


def _load_numpy() -> None:
    """Import NumPy; the environment stays what it was, for programs that we run."""
    if _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS]
