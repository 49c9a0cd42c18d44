"""Files whose names others chose: read if they are plain ones, and never waited for."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from pathlib import Path

_PIECE = 1 << 20
"""Bytes that are read at once."""


class UnfitFileError(Exception):
    """A file is there and isn't read; the text says why, to be put behind its name."""


def read_regular(path: Path, most: int, owners: Collection[int] = ()) -> bytes:
    """The content of a regular file of at most so many bytes, of one of these users if any is said.

    No link is followed at the path's end (it is for the caller to resolve them, and to judge what
    they lead to), and neither a FIFO nor a device can make it wait.
    Raises UnfitFileError, or OSError where there is nothing to read.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UnfitFileError("is a symbolic link") from error
        raise
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise UnfitFileError("is no regular file")
        if owners and found.st_uid not in owners:
            raise UnfitFileError("belongs to another user")
        if found.st_size > most:
            raise _too_large(most)
        content = bytearray()  # it may grow, or tell no size
        while piece := os.read(file, min(most + 1 - len(content), _PIECE)):
            content += piece
    finally:
        os.close(file)
    if len(content) > most:
        raise _too_large(most)
    return bytes(content)


def _too_large(most: int) -> UnfitFileError:
    return UnfitFileError(f"is larger than {most >> 20} MB")
