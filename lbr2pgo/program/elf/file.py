"""The bytes of an ELF file, read where they are needed.

Nothing is mapped: when another process cuts a mapped file short, the next look at it ends this
one (SIGBUS). What is read is as large as was asked for, or there is an error.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from stat import S_ISREG
from typing import Protocol

from lbr2pgo.support.errors import InputError

_LONGEST_READ = 1 << 30  # Linux reads at most 2 GiB - 4096 bytes at once (read(2))


class File(Protocol):
    """Bytes that don't change, or else there is an error."""

    @property
    def path(self) -> str:
        """What messages call it."""

    @property
    def size(self) -> int:
        """In bytes."""

    def read(self, offset: int, size: int) -> bytes:
        """Bytes at an offset, fewer only at the end of the file.

        Raises InputError if the file can't be read, or was cut since it was opened.
        """

    def check_unchanged(self) -> None:
        """Raise InputError if the file was written to since it was opened."""


class StoredFile:
    """A file on disk, open for reading."""

    def __init__(self, path: str | Path) -> None:
        """Open a regular file; raises InputError if there is none that can be read."""
        self.path = str(path)
        try:
            if not S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for its writer
                raise not_elf(self.path, "it is no regular file")
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
            raise self._unreadable(error) from error
        weakref.finalize(self, os.close, self._descriptor)
        self._written = self._state()
        self.size = self._written[0]
        if self.size == 0:
            raise not_elf(self.path, "it is empty")

    def read(self, offset: int, size: int) -> bytes:
        """See `File.read`."""
        left = min(size, self.size - offset)
        parts = []
        while left > 0:
            parts.append(self._read_some(offset, min(left, _LONGEST_READ)))
            offset += len(parts[-1])
            left -= len(parts[-1])
        return b"".join(parts)

    def check_unchanged(self) -> None:
        """See `File.check_unchanged`."""
        if self._state() != self._written:
            raise self._changed()

    def _read_some(self, offset: int, size: int) -> bytes:
        try:
            part = os.pread(self._descriptor, size, offset)
        except OSError as error:
            raise self._unreadable(error) from error
        if not part:
            raise self._changed()
        return part

    def _state(self) -> tuple[int, int]:
        """Size and time of the last change: whoever writes to the file changes one of them."""
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns

    def _unreadable(self, error: OSError | ValueError) -> InputError:
        return InputError(
            f"can't be read: {getattr(error, 'strerror', None) or error}",
            where=self.path,
            cure="Check the path of the binary.",
        )

    def _changed(self) -> InputError:
        return InputError(
            "the file was changed while it was read",
            where=self.path,
            cure="Run again when nothing writes to it any more (a build, say), "
            "or use a copy of the program that was recorded.",
        )


class FileInMemory:
    """What was unpacked, say."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.size, self._data = path, len(data), data

    def read(self, offset: int, size: int) -> bytes:
        """See `File.read`."""
        return self._data[offset : offset + max(size, 0)]

    def check_unchanged(self) -> None:
        """Memory is ours alone."""


def not_elf(path: str, why: str) -> InputError:
    """The error that something is no ELF file."""
    return InputError(
        f"not an ELF file: {why}",
        where=path,
        cure="Name the program or shared library that the profile was recorded on.",
    )
