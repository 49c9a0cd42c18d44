"""The one way to compile a loop: cached on disk where that is possible, GIL released.

A function whose name begins with an underscore is called by other loops only: it gets no entry
for Python, which takes longer to compile than a small function itself, and is kept as a part of
those loops.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core import event

from lbr2pgo.native.loop_cache import LoopCache, directory

F = TypeVar("F", bound=Callable[..., object])

_LOG = logging.getLogger("lbr2pgo")


def compiled(function: F) -> F:
    """Compile a function over arrays with Numba, keeping its type for the checker.

    See `loop_cache` for where the cache stands; where it can't be written (a read-only
    installation without a home), the loop is compiled anew in each run.
    """
    return _compiled(function)


def compiled_leaf(function: F) -> F:
    """Compile a function that allocates nothing, without reference counts.

    Numba counts references to an array in every function that it is passed to, which costs several
    times the work of a function that looks at a few bytes. Without them, making an array or any
    other object is an error when the function is compiled.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: F, **options: bool) -> F:
    is_inner = function.__name__.startswith("_")
    loop: Any = njit(
        nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=is_inner, **options
    )(function)  # fmt: skip
    is_kept = not is_inner and directory() is not None
    if is_kept and hasattr(loop, "_cache"):  # it has none if NUMBA_DISABLE_JIT
        loop._cache = LoopCache(function)
    return loop  # type: ignore[no-any-return]


class _Announcement(event.Listener):  # type: ignore[misc]
    """Says once, before the first loop is compiled, why this run takes longer."""

    def on_start(self, _event: event.Event) -> None:
        event.unregister("numba:compile", self)
        cause = "first run after installation" if directory() else "no directory to keep them in"
        _LOG.warning("compiling loops (%s), which takes some seconds", cause)

    def on_end(self, _event: event.Event) -> None:
        pass


event.register("numba:compile", _Announcement())
