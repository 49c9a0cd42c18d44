"""Sections of DWARF, of which only what is looked at is in memory, and the strings in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np

from lbr2pgo.native.text_numbers import TextNumbers
from lbr2pgo.program.dwarf._texts import TEXT_SECTIONS, number_texts
from lbr2pgo.program.elf.file import File
from lbr2pgo.support.arrays import I64, Bytes
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.texts import Texts
from lbr2pgo.support.threads import made_of_each

_LEAST, _MOST = 1 << 12, 1 << 20
"""Bytes of strings that are read together."""
_MANY, _PIECES = 1 << 13, 4
"""More strings than this are read side by side in so many pieces."""
_OVERLAPS = 16
"""How often a section may be read in all."""


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
        """The strings at (n,) places; None where there is none, or where it has no end."""
        known = TextNumbers()
        numbers = self.number(places, known)
        texts = [*Texts(*known.texts()), None]  # the last one for a number of -1
        return [texts[number] for number in numbers.tolist()]

    def number(self, places: I64, known: TextNumbers) -> I64:
        """The number of the string at each of (n,) places, -1 where `decode` has None.

        What is read in all is bounded, because hostile places may share one endless string.
        """
        found = np.full(len(places), -1)
        order = np.argsort(places, kind="stable")
        order = order[places[order] >= 0]
        for number, section in enumerate(self.sections):
            rows = order[places[order] % TEXT_SECTIONS == number]
            pieces = np.array_split(rows, _PIECES if len(rows) > _MANY else 1)
            offsets = (places[piece] // TEXT_SECTIONS for piece in pieces)
            made = made_of_each(partial(_numbered, section, _OVERLAPS // len(pieces)), offsets)
            for piece, (numbers, texts) in zip(pieces, made, strict=True):
                number_of = np.append(known.number_all(*texts), -1)  # the last one for -1
                found[piece[: len(numbers)]] = number_of[numbers]
        return found


def _numbered(
    section: DebugSection, overlaps: int, offsets: I64
) -> tuple[I64, tuple[Bytes, I64, I64]]:
    """Numbers of strings at ascending offsets, as long as reading takes no longer than it should.

    -1 for strings without an end. Also returns the strings.
    """
    known = TextNumbers()
    done, least, budget = 0, _LEAST, overlaps * section.size + 4096
    past = int(np.searchsorted(offsets, section.size))
    found = [np.zeros(0, np.int64)]
    while done < past and budget > 0:
        start = int(offsets[done])
        end = start + max(least, min(int(offsets[past - 1]) - start, _MOST))
        part = section.read(start, end)
        inside = offsets[done : done + np.searchsorted(offsets[done:], start + len(part))]
        numbers, size = number_texts(part, inside - start, budget, known)
        budget -= len(part) + size
        if len(numbers):
            least = _LEAST
        elif end < section.size:
            least *= 4  # a string that is longer than what was read
        else:
            numbers = np.full(1, -1)
        found.append(numbers)
        done += len(numbers)
    return np.concatenate(found), known.texts()
