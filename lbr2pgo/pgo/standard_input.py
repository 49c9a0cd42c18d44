"""Standard input that every run of a command gets alike, from its beginning."""

from __future__ import annotations

import os
import select
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_PATIENCE = 1000
"""Milliseconds in which a pipe has to have something."""


@contextmanager
def reading(source: Path | None) -> Iterator[BinaryIO]:
    """What a command is to read: such a file, or nothing."""
    with (source or Path(os.devnull)).open("rb") as stream:
        yield stream


def kept_input(place: Path) -> Path | None:
    """A file with what this process was given; None where that is nothing, or is a terminal's.

    A pipe is read to its end, into a file at `place`. One that stays silent is not: who starts us
    may keep it open for ever.
    """
    try:
        mode = os.fstat(0).st_mode
    except OSError:  # closed
        return None
    if stat.S_ISREG(mode):
        named = _name()
        if named is not None:
            return named
    elif not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) or not _has_something():
        return None
    place.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.dup(0), "rb") as source, place.open("wb") as target:
        shutil.copyfileobj(source, target)
    return place


def _name() -> Path | None:
    """Of the file that standard input is; a here-document has none."""
    try:
        path = Path("/proc/self/fd/0").readlink()
        return path if os.path.samestat(path.stat(), os.fstat(0)) else None
    except OSError:
        return None


def _has_something() -> bool:
    poll = select.poll()
    poll.register(0, select.POLLIN)
    return any(events & select.POLLIN for _, events in poll.poll(_PATIENCE))
