"""Sections of DWARF, of which only what is looked at is in memory, and the strings in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from lbr2pgo.program.dwarf._texts import TEXT_SECTIONS, decode_texts
from lbr2pgo.program.elf.file import File
from lbr2pgo.support.arrays import I64, Bytes
from lbr2pgo.support.dataclass import dataclass

_LEAST, _MOST = 1 << 12, 1 << 20
"""Bytes of strings that are read together."""


class DebugSection(Protocol):
    """The content of a section, unpacked."""

    @property
    def size(self) -> int:
        """In bytes."""

    def read(self, start: int, end: int) -> Bytes:
        """The bytes between two positions, as far as the section reaches."""


@dataclass(frozen=True, slots=True)
class StoredSection:
    """A section that is read where it stands in a file."""

    file: File
    offset: int
    size: int

    def read(self, start: int, end: int) -> Bytes:
        """See `DebugSection.read`."""
        size = min(end, self.size) - start
        return np.frombuffer(self.file.read(self.offset + start, max(size, 0)), np.uint8)


@dataclass(frozen=True, slots=True)
class SectionInMemory:
    """A section that was unpacked, or none."""

    data: Bytes

    @property
    def size(self) -> int:
        """See `DebugSection.size`."""
        return len(self.data)

    def read(self, start: int, end: int) -> Bytes:
        """See `DebugSection.read`."""
        return self.data[start:end]


ABSENT = SectionInMemory(np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class DebugTexts:
    """Strings that end with a NUL, by their places: one number for a section and an offset there.

    The section is what is left by `TEXT_SECTIONS`. Places are given by loops, -1 where there is no
    string.
    """

    sections: Sequence[DebugSection]

    def decode(self, places: I64) -> list[str | None]:
        """The strings at (n,) places; None where there is none, or where it has no end.

        What is decoded in all is bounded, because hostile places may share one endless string.
        """
        found: list[str | None] = [None] * len(places)
        order = np.argsort(places, kind="stable")
        order = order[places[order] >= 0]
        for number, section in enumerate(self.sections):
            rows = order[places[order] % TEXT_SECTIONS == number]
            texts = _decode(section, places[rows] // TEXT_SECTIONS)
            for row, text in zip(rows.tolist(), texts, strict=False):
                found[row] = text
        return found


def _decode(section: DebugSection, offsets: I64) -> Iterator[str | None]:
    """The strings at ascending offsets, as long as reading them takes no longer than it should."""
    done, least, budget = 0, _LEAST, 16 * section.size + 4096
    past = int(np.searchsorted(offsets, section.size))
    while done < past and budget > 0:
        start = int(offsets[done])
        end = start + max(least, min(int(offsets[past - 1]) - start, _MOST))
        part = section.read(start, end)
        inside = offsets[done : done + np.searchsorted(offsets[done:], start + len(part))]
        texts = decode_texts(part, inside - start, budget)
        yield from texts
        done += len(texts)
        budget -= len(part) + sum(map(len, texts))
        if texts:
            least = _LEAST
        elif end < section.size:
            least *= 4  # a string that is longer than what was read
        else:
            yield None
            done += 1
