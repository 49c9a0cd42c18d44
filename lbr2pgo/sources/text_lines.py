"""Text files of any size, in pieces of whole lines, which several threads may read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lbr2pgo.support import headway
from lbr2pgo.support.errors import InputError

_NEWLINE = ord("\n")
CHUNK_SIZE = 1 << 21
"""Bytes in a piece; a longer line is skipped."""
_USUAL_LINE = 1 << 14
"""Read beyond a piece, where its last line mostly ends."""


class LineReader:
    """Goes over a text file in bounded memory, as often as asked."""

    def __init__(self, path: Path, chunk_size: int = CHUNK_SIZE) -> None:
        self._path = path
        self._chunk_size = chunk_size
        self._overlong: dict[int, int] = {}

    @property
    def overlong_bytes(self) -> int:
        """Bytes of lines too long to be read, in the last pass."""
        return sum(self._overlong.values())

    @contextmanager
    def open(self) -> Iterator[Pieces]:
        """Begin a pass; raises InputError where the file can't be read."""
        self._overlong = {}
        try:
            with self._path.open("rb", buffering=0) as file:
                if not file.seekable():
                    raise InputError(
                        "a pipe, which can't be read twice",
                        where=str(self._path),
                        cure="Save the text in a file first.",
                    )
                yield Pieces(file.fileno(), self._chunk_size, self._overlong)
        except OSError as error:
            what = f"can't be read: {error.strerror or error}"
            raise InputError(what, where=str(self._path)) from error

    def chunks(self) -> Iterator[tuple[bytes, int]]:
        """Yield text and where it stands in the file; only the last may lack a final newline.

        Raises InputError where the file can't be read.
        """
        with self.open() as pieces:
            buffer = pieces.buffer()
            for start in pieces.starts:
                text, base = buffer.read(start)
                if text:
                    yield bytes(text), base
                    headway.tell((base + len(text)) / pieces.size)


class Pieces:
    """The pieces of an open file: each holds the lines that begin in so many bytes from a start."""

    def __init__(self, descriptor: int, chunk_size: int, overlong: dict[int, int]) -> None:
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self.starts = range(0, self.size, chunk_size)
        self.overlong = overlong
        """Bytes of the line too long to be read that begins in a piece, by the piece's start."""

    def buffer(self) -> LineBuffer:
        """Room to read pieces in, one after the other, for one thread."""
        return LineBuffer(self)


class LineBuffer:
    """Reads pieces of a file, each over the one before it."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._most = pieces.starts.step
        self._bytes = bytearray()

    def read(self, start: int) -> tuple[memoryview, int]:
        """The lines of the piece that starts here, and where they stand in the file."""
        # The byte before tells whether a line begins at the start.
        offset = max(start - 1, 0)
        past = start - offset + self._most
        filled = self._fill(offset, 0, past + _USUAL_LINE)
        ends = 0, min(past - 1, filled)
        first = self._bytes.find(b"\n", *ends) + 1
        if start == 0:
            first = 0
        elif first == 0:
            return memoryview(b""), start
        last = max(self._bytes.rfind(b"\n", *ends) + 1, first)
        end = self._line_end(offset, last, filled)
        if end - last > self._most:
            is_whole = self._bytes[end - 1] == _NEWLINE
            rest = 0 if is_whole else self._rest_of_line(offset + end)
            self._pieces.overlong[start] = end - last + rest
            end = last
        return memoryview(self._bytes)[first:end], offset + first

    def _line_end(self, offset: int, line: int, filled: int) -> int:
        """Index after the line at an index, or anywhere in it where it is too long."""
        at = line
        while (found := self._bytes.find(b"\n", at, filled)) < 0 and filled - line <= self._most:
            at, filled = filled, self._fill(offset, filled, 2 * filled)
            if at == filled:
                break
        return filled if found < 0 else found + 1

    def _fill(self, offset: int, at: int, past: int) -> int:
        """Read what of the buffer stands in `[at, past)`, from `offset` on in the file.

        Returns where it ends: at `past`, or before it where the file does.
        """
        past = min(past, self._pieces.size - offset)
        if past > len(self._bytes):
            self._bytes = self._bytes[:at] + bytes(past - at)
        with memoryview(self._bytes) as room:
            while at < past:
                size = os.preadv(self._pieces.descriptor, [room[at:past]], offset + at)
                if size == 0:
                    break
                at += size
        return at

    def _rest_of_line(self, offset: int) -> int:
        """Bytes from here to the end of the line."""
        size = 0
        while text := os.pread(self._pieces.descriptor, self._most, offset + size):
            end = text.find(b"\n") + 1
            if end:
                return size + end
            size += len(text)
        return size
