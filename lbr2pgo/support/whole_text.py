"""Whether a file of lines is whole: all that write one end its last line."""

from __future__ import annotations

from os import PathLike

from lbr2pgo.support.errors import InputError, readable


def refuse_cut_off(path: str | PathLike[str]) -> None:
    """Raise InputError for a file whose last line has no end: more is missing than that."""
    with readable(path), open(path, "rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - 1, 0))
        is_whole = not size or stream.read(1) == b"\n"
    if not is_whole:
        raise InputError(
            "the last line has no end: the file is cut off",
            where=f"{path}",
            cure="Make the file again.",
        )
