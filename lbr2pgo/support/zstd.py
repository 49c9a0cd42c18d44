"""zstd: Python's own module from 3.14 on, its backport before; loaded when there is need of it."""

from __future__ import annotations

import sys
from types import ModuleType


def _module() -> ModuleType:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def unpack(packed: bytes | memoryview, most: int) -> bytes:
    """The first `most` bytes of what a frame unpacks to; raises ValueError if it is damaged."""
    return StreamUnpacker().unpack(packed, most)


class StreamUnpacker:
    """Unpacks frames that follow one another, piece by piece."""

    def __init__(self) -> None:
        self._zstd = _module()
        self._frame = self._zstd.ZstdDecompressor()

    def unpack(self, packed: bytes | memoryview, most: int = -1) -> bytes:
        """What the next piece adds, `most` bytes a frame if that is not negative.

        Raises ValueError if it is damaged.
        """
        plain = b""
        while len(packed):
            if self._frame.eof:
                self._frame = self._zstd.ZstdDecompressor()
            try:
                plain += self._frame.decompress(packed, most)
            except self._zstd.ZstdError as error:
                raise ValueError(str(error)) from error
            packed = self._frame.unused_data
        return plain
