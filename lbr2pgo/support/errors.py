"""The exceptions that bad input raises, each with its place and its cure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike


class Lbr2pgoError(Exception):
    """Something that the user can mend: what is wrong, where, and what to do.

    `where` names a file and, where there is one, an offset (``file@0x1f0``) or a line
    (``file:12``). `cure` is a whole sentence. The command line prints both and exits with 2.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str | None = None, cure: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.cure = cure

    @property
    def headline(self) -> str:
        """Where, and what is wrong; without the cure."""
        place = f"{self.where}: " if self.where else ""
        return place + self.what

    def __str__(self) -> str:
        return "\n".join([self.headline, *([self.cure] if self.cure else [])])


class InputError(Lbr2pgoError):
    """A file is missing, is not what it was taken for, or is damaged past use."""


class OutputError(Lbr2pgoError):
    """A result can't be written, or there is nothing to write."""


class MissingToolError(Lbr2pgoError):
    """A program or a facility of this machine that the command needs is not there."""


@contextmanager
def readable(path: str | PathLike[str]) -> Iterator[None]:
    """Raise InputError where the file that is read in here can't be."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"can't be read: {error.strerror or error}",
            where=str(path),
            cure="Check the path and its permissions.",
        ) from error


@contextmanager
def writable(path: str | PathLike[str], what: str, cure: str) -> Iterator[None]:
    """Raise OutputError where the file that is written in here can't be."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{what}: {error.strerror}", where=str(path), cure=cure) from error
