"""Written profiles of any format, told apart by their content, whole or of one function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from lbr2pgo.profiles.registry import formats, read_written
from lbr2pgo.program.code.named_functions import near_matches
from lbr2pgo.support.errors import InputError


def lines(path: Path, function: str | None = None) -> Iterator[str]:
    """The file as text; raises InputError where it is none, or does not hold the function."""
    written = read_written(path)
    if written is None:
        raise InputError(
            f"is no written profile that can be shown ({'; '.join(_readable())})",
            where=str(path),
            cure="Recordings are shown by `lbr2pgo dump stacks` and `lbr2pgo dump counts`.",
        )
    reader, content = written.reader, written.content
    if function is None:
        return reader.lines(content)
    found = reader.of_function(content, function)
    if found is None:
        raise _missing(path, function, reader.functions(content))
    return found


def _readable() -> Iterator[str]:
    return (each.name for form in formats() if form.readers() for each in form.forms)


def _missing(path: Path, function: str, names: Iterable[str]) -> InputError:
    near = near_matches(function, sorted(names))
    cure = f"Near matches: {', '.join(near)}." if near else "Leave the name out to see all."
    return InputError(f"holds nothing of {function}", where=str(path), cure=cure)
