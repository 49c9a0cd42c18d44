"""Source lines of code that a process made, as its compiler told them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

import numpy as np

from lbr2pgo.program.dwarf.debug_info import InlineFrames, Lines, Origin
from lbr2pgo.program.jit.made_image import JitImage
from lbr2pgo.support.addresses import ImageAddresses, image_addresses
from lbr2pgo.support.arrays import I32, U32
from lbr2pgo.support.intervals import interval_of

_PLACE = re.compile(r" (\S.*?)(?::\d+){1,2}$")


def _path(file: bytes, function: bytes) -> str:
    r"""A file; some versions of V8 write memory that they gave back, but name it by the function.

    >>> _path(b"app.js", b"JS:*f /opt/app.js:1:15"), _path(b"\xff\xe4", b"JS:*f /opt/app.js:1:15")
    ('app.js', '/opt/app.js')
    >>> _path(b"\xff\xe4", b"f")
    '[unknown]'
    """
    try:
        text = file.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and text:
        return text
    place = _PLACE.search(function.decode("utf-8", "replace"))
    return place[1] if place else "[unknown]"


@dataclass(frozen=True, slots=True)
class JitLines:
    """Half-open ranges of code by their starts, each with a line."""

    start: ImageAddresses
    end: ImageAddresses
    line: U32
    file: I32
    """Index into `files`."""
    files: tuple[str, ...]

    @classmethod
    def of(cls, made: JitImage) -> Self:
        """Each line reaches to the next one, the last of a function to its end."""
        numbers: dict[str, int] = {}
        rows = []
        for begin, function in zip(made.start, made.functions, strict=True):
            ends = [*(offset for offset, _, _ in function.lines[1:]), function.size]
            for (offset, line, file), end in zip(function.lines, ends, strict=False):
                number = numbers.setdefault(_path(file, function.name), len(numbers))
                if offset < end and line > 0:
                    rows.append((begin + offset, begin + end, line, number))
        start, end_, line_, file_ = np.array(rows, np.uint64).reshape(-1, 4).T
        return cls(
            image_addresses(start), image_addresses(end_),
            line_.astype(np.uint32), file_.astype(np.int32),
            tuple(numbers),
        )  # fmt: skip

    @property
    def present(self) -> bool:
        """Whether the compiler told any."""
        return len(self.start) > 0

    @property
    def missing_reason(self) -> str:
        """Why there are none; empty if there are."""
        return "" if self.present else "the code's compiler told no lines"

    def frames(self, addresses: ImageAddresses) -> InlineFrames:
        """What was inlined is not told."""
        return InlineFrames.none(len(addresses))

    def lines(self, addresses: ImageAddresses) -> Lines:
        """File and line of (n,) image addresses."""
        at = interval_of(self.start, self.end, addresses)
        line = np.where(at >= 0, np.append(self.line, 0)[at], 0).astype(np.uint32)
        file = np.where(at >= 0, np.append(self.file, -1)[at], -1).astype(np.int32)
        none = np.zeros(len(addresses), np.uint32)
        return Lines(file, line, none, none, self.files)

    def origins(self, addresses: ImageAddresses) -> dict[str, Origin]:
        """Nothing is."""
        return {}
