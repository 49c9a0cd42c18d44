"""Text files of any size, a few megabytes of whole lines at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lbr2pgo.support.arrays import Text
from lbr2pgo.support.errors import InputError

CHUNK_SIZE = 1 << 23
"""Bytes read at once; a longer line is skipped."""


class LineReader:
    """Goes over a text file in chunks of whole lines, in bounded memory, as often as asked."""

    def __init__(self, path: Path, chunk_size: int = CHUNK_SIZE) -> None:
        self._path = path
        self._chunk_size = chunk_size
        self.overlong_bytes = 0
        """Bytes of lines too long to be read, in the last pass."""

    def chunks(self) -> Iterator[tuple[Text, int]]:
        """Yield text, uint8[n], and where it stands in the file.

        A chunk is good until the next one is asked for. Only the last may lack a final newline.
        Raises InputError where the file can't be read.
        """
        self.overlong_bytes = 0
        try:
            yield from self._chunks()
        except OSError as error:
            what = f"can't be read: {error.strerror or error}"
            raise InputError(what, where=str(self._path)) from error

    def _chunks(self) -> Iterator[tuple[Text, int]]:
        buffer = bytearray(self._chunk_size)
        text, base, kept = np.frombuffer(buffer, dtype=np.uint8), 0, 0
        is_overlong = False
        with self._path.open("rb", buffering=0) as file:
            if not file.seekable():
                raise InputError(
                    "a pipe, which can't be read twice",
                    where=str(self._path),
                    cure="Save the text in a file first.",
                )
            while size := file.readinto(memoryview(buffer)[kept:]):
                filled = kept + size
                end = buffer.rfind(b"\n", kept, filled) + 1
                start = buffer.find(b"\n", kept, filled) + 1 if is_overlong else 0
                if end == 0 and (is_overlong or filled == len(buffer)):
                    self.overlong_bytes += filled
                    is_overlong, end = True, filled
                elif end:
                    self.overlong_bytes += start
                    is_overlong = False
                    yield text[start:end], base + start
                kept = filled - end
                buffer[:kept] = buffer[end:filled]
                base += end
        if kept:
            yield text[:kept], base
