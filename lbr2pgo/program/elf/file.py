"""The bytes of an ELF file, on disk or in memory."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG

from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class File:
    """A file, open for reading; only what is looked at costs memory."""

    path: str
    """What messages call it."""
    data: mmap.mmap | bytes = field(repr=False)

    @classmethod
    def open(cls, path: str | Path) -> File:
        """Open a regular file; raises InputError if there is none that can be read."""
        name = str(path)
        try:
            if not S_ISREG(os.stat(name).st_mode):  # opening a pipe would wait for its writer
                raise not_elf(name, "it is no regular file")
            with open(name, "rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    raise not_elf(name, "it is empty")
                return cls(name, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
            raise InputError(
                f"can't be read: {getattr(error, 'strerror', None) or error}",
                where=name,
                cure="Check the path of the binary.",
            ) from error

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.data)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes at an offset, fewer at the end of the file."""
        return self.data[offset : offset + size]

    def view(self, offset: int, size: int) -> memoryview:
        """As `read`, without a copy."""
        return memoryview(self.data)[offset : offset + size]

    def let_go(self) -> None:
        """Give back the memory of what was looked at; the file is read again where need be."""
        if isinstance(self.data, mmap.mmap):
            self.data.madvise(mmap.MADV_DONTNEED)


def not_elf(path: str, why: str) -> InputError:
    """The error that something is no ELF file."""
    return InputError(
        f"not an ELF file: {why}",
        where=path,
        cure="Name the program or shared library that the profile was recorded on.",
    )
