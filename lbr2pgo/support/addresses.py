"""Addresses by what they count from; a type checker tells them apart, and nothing at run time.

A *run-time address* is what a process sees, an *image address* what the ELF file is linked for, a
*file offset* where the byte stands in the file. Arrays of each have an element type of their own,
which taking rows, sorting and joining keep. Adding and subtracting do not: who does that says what
comes out, with the functions below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NewType, cast

import numpy as np
import numpy.typing as npt

from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.intervals import interval_of
from lbr2pgo.support.tables import same_length, seal

RuntimeAddress = NewType("RuntimeAddress", int)
ImageAddress = NewType("ImageAddress", int)
FileOffset = NewType("FileOffset", int)

LAST_ADDRESS = (1 << 64) - 1
"""What damaged segments and mappings go on behind is cut here."""

SLOT_BITS = 48
"""Where several images count as one program, each has a slot: a number in the address bits from
this one on, which no file for user space is linked at. The program itself has slot 0."""
SLOT_SIZE = 1 << SLOT_BITS
_KERNEL_SLOT = LAST_ADDRESS >> SLOT_BITS
"""The kernel is linked at addresses that have these bits set: they are no slot."""

if TYPE_CHECKING:

    class _Runtime(np.uint64): ...

    class _Image(np.uint64): ...

    class _Offset(np.uint64): ...
else:
    _Runtime = _Image = _Offset = np.uint64

RuntimeAddresses = npt.NDArray[_Runtime]
ImageAddresses = npt.NDArray[_Image]
FileOffsets = npt.NDArray[_Offset]

Numbers = npt.NDArray[np.unsignedinteger[Any]]
"""What arithmetic with addresses gives."""


def runtime_addresses(numbers: Numbers) -> RuntimeAddresses:
    """These numbers (u64), which are run-time addresses."""
    return cast(RuntimeAddresses, numbers)


def image_addresses(numbers: Numbers) -> ImageAddresses:
    """These numbers (u64), which are image addresses."""
    return cast(ImageAddresses, numbers)


def file_offsets(numbers: Numbers) -> FileOffsets:
    """These numbers (u64), which are file offsets."""
    return cast(FileOffsets, numbers)


def slot_of(address: int) -> int:
    """The slot of an image address.

    >>> slot_of(0x1234), slot_of(0x2000000001234), slot_of(0xFFFFFFFF81000000)
    (0, 2, 0)
    """
    slot = address >> SLOT_BITS
    return 0 if slot == _KERNEL_SLOT else slot


def in_file(address: int) -> int:
    """An image address without its slot, as the file is linked for.

    >>> hex(in_file(0x2000000001234)), hex(in_file(0xFFFFFFFF81000000))
    ('0x1234', '0xffffffff81000000')
    """
    return address - slot_of(address) * SLOT_SIZE


def image_array(numbers: Iterable[int]) -> ImageAddresses:
    """Image addresses (n,) of numbers."""
    return image_addresses(np.array(list(numbers), dtype=np.uint64))


def are_of_kernel(addresses: U64 | ImageAddresses | RuntimeAddresses) -> Bools:
    """Which lie in the upper half, where x86-64 and AArch64 have the kernel.

    >>> are_of_kernel(np.array([0x401000, 0xFFFFFFFF81000000], np.uint64)).tolist()
    [False, True]
    """
    upper: Bools = (addresses >> np.uint64(63)).astype(np.bool_)
    return upper


@dataclass(frozen=True, slots=True)
class ByteRanges:
    """Half-open ranges of an image's bytes; columns of equal length.

    What execution passed, from the start of one instruction to that of another, is no such range
    but closed at both ends: `model.branch_counts.Runs`.
    """

    start: ImageAddresses
    end: ImageAddresses
    """First address behind each."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self)

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> ByteRanges:
        """From pairs of start and end."""
        start, end = image_addresses(np.array(list(pairs), dtype=np.uint64).reshape(-1, 2)).T
        return cls(start, end)

    def __len__(self) -> int:
        return len(self.start)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Start and end of each."""
        return zip(self.start.tolist(), self.end.tolist(), strict=True)

    def take(self, rows: I64) -> ByteRanges:
        """These rows."""
        return ByteRanges(self.start[rows], self.end[rows])

    def around(self, addresses: ImageAddresses) -> I64:
        """(m,): the range that holds each address, -1 where none does; they must be ordered."""
        return interval_of(self.start, self.end, addresses)
