"""Memory and threads that the machine, or a limit, does not give."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator

from lbr2pgo.support.errors import Lbr2pgoError

_ROOM = 96 << 20
"""Address space that NumPy and its libraries take, which end the process themselves without it."""
_WORDS = ("failed to map segment", "cannot allocate memory", "can't start new thread")
"""Of the loader (glibc: elf/dl-load.c), of the system, of Python."""


class ShortageError(Lbr2pgoError):
    """There is not enough memory, or not enough threads."""


def expect_room() -> None:
    """Raise MemoryError if there is no address space to begin with (`ulimit -v`)."""
    try:
        mmap.mmap(-1, _ROOM, prot=0).close()
    except OSError as error:
        raise MemoryError from error


def shortage_of(error: BaseException) -> ShortageError | None:
    """What to tell the user if an error comes of a shortage; None if it does not."""
    for each in _chain(error):
        if _is_shortage(each):
            detail = " ".join(str(each).split())[:200]
            return ShortageError(
                "out of memory" + (f": {detail}" if detail else ""),
                cure="Raise the limit (ulimit -v, or ulimit -u for threads), end other programs, "
                "or take a machine with more memory.",
            )
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_shortage(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    text = str(error).lower()
    return isinstance(error, OSError | ImportError | RuntimeError) and any(
        words in text for words in _WORDS
    )
