"""Many ULEB128 numbers at once: seven bits a byte, low ones first, the last byte below 128."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from lbr2pgo.support.arrays import I64, U8, U64
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.intervals import offsets_of

_LONGEST = 10  # bytes of a 64-bit number
_WINDOW = 1 << 16


def encode(values: Sequence[int]) -> tuple[bytes, I64]:
    r"""The encoded numbers, and (n + 1,) where each begins in the bytes and the last one ends.

    >>> encode([1, 300])
    (b'\x01\xac\x02', array([0, 1, 3]))
    """
    numbers = np.array(values, np.uint64)
    lengths = np.ones(len(numbers), np.int64)
    for k in range(1, _LONGEST):
        lengths += numbers >= np.uint64(1 << (7 * k))
    starts = offsets_of(lengths)
    encoded = np.zeros(starts[-1], np.uint8)
    for k in range(_LONGEST):
        rows = np.flatnonzero(lengths > k)
        low = (numbers[rows] >> np.uint64(7 * k)) & np.uint64(0x7F)
        more = np.where(lengths[rows] > k + 1, 0x80, 0)
        encoded[starts[rows] + k] = low.astype(np.uint8) | more.astype(np.uint8)
    return encoded.tobytes(), starts


def _decode(data: U8, ends: I64) -> tuple[U64, I64]:
    """Numbers whose last bytes stand at `ends`; and the indices of those beyond 64 bits."""
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    numbers = np.zeros(len(ends), np.uint64)
    for k in range(min(int(lengths.max()), _LONGEST)):
        rows = np.flatnonzero(lengths > k)
        bits = (data[starts[rows] + k] & np.uint8(0x7F)).astype(np.uint64)
        numbers[rows] |= bits << np.uint64(7 * k)
    too_large = (lengths > _LONGEST) | ((lengths == _LONGEST) & (data[ends] > 1))
    return numbers, np.flatnonzero(too_large)


@dataclass(frozen=True)
class UlebPart:
    """Bytes of a file, and where they stand in it."""

    data: memoryview
    file: str
    start: int = 0
    unpacked: bool = False
    """The file holds the bytes compressed; `start` is where the compressed ones begin."""

    def fail(self, what: str, offset: int) -> NoReturn:
        """Raise InputError about the byte at `offset` of this part."""
        place = f"0x{self.start:x} (unpacked byte {offset})"
        if not self.unpacked:
            place = f"0x{self.start + offset:x}"
        raise InputError(what, where=f"{self.file}@{place}", cure="Make the profile again.")

    def sub(self, start: int, end: int | None = None) -> UlebPart:
        """The part's bytes from `start` to `end`."""
        base = self.start if self.unpacked else self.start + start
        return UlebPart(self.data[start:end], self.file, base, self.unpacked)


def read_one(part: UlebPart, offset: int) -> tuple[int, int]:
    """The number at `offset`, and the offset behind it."""
    window = np.frombuffer(part.data[offset : offset + _LONGEST + 1], np.uint8)
    ends = np.flatnonzero(window < 0x80)[:1]
    if not len(ends):
        part.fail("a number has no end", offset)
    numbers, too_large = _decode(window, ends)
    if len(too_large):
        part.fail("a number is larger than 64 bits", offset)
    return int(numbers[0]), offset + int(ends[0]) + 1


class UlebStream:
    """Takes one number after the other from a part that holds nothing else."""

    def __init__(self, part: UlebPart) -> None:
        self._part = part
        self._numbers: list[int] = []  # what is left of the window, last one first
        self._ends = np.zeros(0, np.int64)
        self._start = self._next = 0  # bounds of the window

    def take(self) -> int:
        """The next number; InputError at the end."""
        if not self._numbers:
            self._refill()
        return self._numbers.pop()

    def take_at_most(self, largest: int) -> int:
        """The next number, which must fit."""
        number = self.take()
        if number > largest:
            self.fail(f"the number {number} is larger than {largest}")
        return number

    @property
    def at_end(self) -> bool:
        """Whether all bytes are used up."""
        return not self._numbers and self._next == len(self._part.data)

    def fail(self, what: str) -> NoReturn:
        """Raise InputError about the number that was taken last."""
        taken = len(self._ends) - len(self._numbers)
        offset = int(self._ends[taken - 2]) + 1 if taken > 1 else 0
        self._part.fail(what, self._start + offset)

    def _refill(self) -> None:
        self._start = self._next
        window = np.frombuffer(self._part.data[self._start : self._start + _WINDOW], np.uint8)
        self._ends = np.flatnonzero(window < 0x80)
        if not len(self._ends):
            self._part.fail("a number has no end", self._start)
        numbers, too_large = _decode(window, self._ends)
        if len(too_large):
            first = int(too_large[0])
            offset = int(self._ends[first - 1]) + 1 if first else 0
            self._part.fail("a number is larger than 64 bits", self._start + offset)
        self._numbers = numbers[::-1].tolist()
        self._next += int(self._ends[-1]) + 1
