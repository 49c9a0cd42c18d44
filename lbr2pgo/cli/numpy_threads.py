"""Load NumPy without the threads of its linear algebra, which nothing here uses.

They are started for every processor while it is loaded, and take half of the time.
"""

from __future__ import annotations

import os

_THREADS = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Import NumPy; the environment stays what it was, for programs that we run."""
    if _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS]
