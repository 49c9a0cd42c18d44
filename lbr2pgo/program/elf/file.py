"""The bytes of an ELF file, read where they are needed.

Nothing is mapped: when another process cuts a mapped file short, the next look at it ends this
one (SIGBUS). What is read is as large as was asked for, or there is an error.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Protocol

import numpy as np

from lbr2pgo.support.errors import InputError

_LARGE = 1 << 22
"""Bytes of a part in which it pays to ask for holes."""
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

    def view(self, offset: int, size: int) -> memoryview:
        """As `read`; of a large part, holes of a sparse file cost nothing."""

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

    def view(self, offset: int, size: int) -> memoryview:
        """See `File.view`."""
        size = max(0, min(size, self.size - offset))
        if size < _LARGE:
            return memoryview(self.read(offset, size))
        part = np.zeros(size, np.uint8)  # pages that are never written to take no memory
        for start, end in self._data(offset, offset + size):
            self._fill(part.data[start - offset : end - offset], start)
        if self._state()[0] < offset + size:  # what was cut off looks like a hole
            raise self._changed()
        return part.data.toreadonly()

    def check_unchanged(self) -> None:
        """See `File.check_unchanged`."""
        if self._state() != self._written:
            raise self._changed()

    def _data(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Where a part of the file holds data, and no hole."""
        while start < end:
            try:
                first = os.lseek(self._descriptor, start, os.SEEK_DATA)
                past = os.lseek(self._descriptor, first, os.SEEK_HOLE)
            except OSError as error:
                if error.errno == errno.ENXIO:  # a hole up to the end
                    return
                first, past = start, end  # a file system that does not know
            if first < end:
                yield first, min(past, end)
            start = past

    def _fill(self, part: memoryview, offset: int) -> None:
        done = 0
        while done < len(part):
            try:
                done += self._checked(os.preadv(self._descriptor, [part[done:]], offset + done))
            except OSError as error:
                raise self._unreadable(error) from error

    def _checked(self, size: int) -> int:
        """How many bytes were read: none, where there were some, is the end of a file cut short."""
        if size == 0:
            raise self._changed()
        return size

    def _read_some(self, offset: int, size: int) -> bytes:
        try:
            part = os.pread(self._descriptor, size, offset)
        except OSError as error:
            raise self._unreadable(error) from error
        self._checked(len(part))
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
        self.path, self.size, self._content = path, len(data), data

    def read(self, offset: int, size: int) -> bytes:
        """See `File.read`."""
        return self._content[offset : offset + max(size, 0)]

    def view(self, offset: int, size: int) -> memoryview:
        """See `File.view`."""
        return memoryview(self._content)[offset : offset + max(size, 0)]

    def check_unchanged(self) -> None:
        """Memory is ours alone."""


def not_elf(path: str, why: str) -> InputError:
    """The error that something is no ELF file."""
    return InputError(
        f"not an ELF file: {why}",
        where=path,
        cure="Name the program or shared library that the profile was recorded on.",
    )
