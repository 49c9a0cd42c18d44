"""Text files of any size, a few megabytes of whole lines at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lbr2pgo.support.errors import InputError

CHUNK_SIZE = 1 << 21
"""Bytes read at once; a longer line is skipped."""


class LineReader:
    """Goes over a text file in chunks of whole lines, in bounded memory, as often as asked."""

    def __init__(self, path: Path, chunk_size: int = CHUNK_SIZE) -> None:
        self._path = path
        self._chunk_size = chunk_size
        self.overlong_bytes = 0
        """Bytes of lines too long to be read, in the last pass."""

    def chunks(self) -> Iterator[tuple[bytes, int]]:
        """Yield text and where it stands in the file; only the last may lack a final newline.

        Raises InputError where the file can't be read.
        """
        self.overlong_bytes = 0
        try:
            with self._path.open("rb") as file:
                self._check(file)
                yield from self._chunks(file)
        except OSError as error:
            what = f"can't be read: {error.strerror or error}"
            raise InputError(what, where=str(self._path)) from error

    def _check(self, file: BinaryIO) -> None:
        if not file.seekable():
            raise InputError(
                "a pipe, which can't be read twice",
                where=str(self._path),
                cure="Save the text in a file first.",
            )

    def _chunks(self, file: BinaryIO) -> Iterator[tuple[bytes, int]]:
        base = 0
        while text := file.read(self._chunk_size):
            text += file.readline(self._chunk_size)
            size = len(text)
            last = text.rfind(b"\n", 0, -1) + 1
            if size - last > self._chunk_size:
                size += _skip_line(file, text)
                self.overlong_bytes += size - last
                text = text[:last]
            if text:
                yield text, base
            base += size


def _skip_line(file: BinaryIO, text: bytes) -> int:
    """Read the rest of the line that `text` ends with, in pieces; how many bytes that is."""
    size = 0
    while text and not text.endswith(b"\n"):
        text = file.readline(len(text))
        size += len(text)
    return size
