"""Addresses by what they count from; a type checker tells them apart, and nothing at run time.

Where several images count as one program, each has a *slot*: a number that its image addresses get
in front, which makes *placed addresses* of them. The program itself has slot 0, so an image address
may stand wherever a placed one may, and never the other way round. What was counted is placed; it
may be looked up in tables of one file, which hold nothing of others. What reads a file's bytes
takes image addresses, and `shown` is how people see both.

Arrays of each have an element type of their own, which taking rows, sorting and joining keep.
Adding and subtracting do not: who does that says what comes out, with the functions below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.intervals import interval_of
from lbr2pgo.support.tables import Tabular, table

if TYPE_CHECKING:

    class RuntimeAddress(int):
        """What a process sees."""

    class PlacedAddress(int):
        """An image address with the slot of its image in front."""

    class ImageAddress(PlacedAddress):
        """What an ELF file is linked for."""

    class FileOffset(int):
        """Where a byte stands in a file."""

    class _Runtime(np.uint64): ...

    class _Placed(np.uint64): ...

    class _Image(_Placed): ...

    class _Offset(np.uint64): ...
else:
    RuntimeAddress = PlacedAddress = ImageAddress = FileOffset = int
    _Runtime = _Placed = _Image = _Offset = np.uint64

RuntimeAddresses = npt.NDArray[_Runtime]
PlacedAddresses = npt.NDArray[_Placed]
ImageAddresses = npt.NDArray[_Image]
FileOffsets = npt.NDArray[_Offset]

Numbers = npt.NDArray[np.unsignedinteger[Any]]
"""What arithmetic with addresses gives."""

LAST_ADDRESS = (1 << 64) - 1
"""What damaged segments and mappings go on behind is cut here."""

SLOT_BITS = 48
"""A slot stands in the address bits from this one on, which no file for user space is linked at."""
SLOT_SIZE = 1 << SLOT_BITS
_KERNEL_SLOT = LAST_ADDRESS >> SLOT_BITS
"""The kernel is linked at addresses that have these bits set: they are no slot."""


def runtime_addresses(numbers: Numbers) -> RuntimeAddresses:
    """These numbers (u64), which are run-time addresses."""
    return cast(RuntimeAddresses, numbers)


def image_addresses(numbers: Numbers) -> ImageAddresses:
    """These numbers (u64), which are image addresses."""
    return cast(ImageAddresses, numbers)


def placed_addresses(numbers: Numbers) -> PlacedAddresses:
    """These numbers (u64), which are placed addresses."""
    return cast(PlacedAddresses, numbers)


def file_offsets(numbers: Numbers) -> FileOffsets:
    """These numbers (u64), which are file offsets."""
    return cast(FileOffsets, numbers)


def placed(addresses: ImageAddresses, slot: int) -> PlacedAddresses:
    """Addresses of one file (n,) among those of a program that has it in this slot."""
    return placed_addresses(addresses + np.uint64(slot * SLOT_SIZE))


def unplaced(addresses: PlacedAddresses, slot: int) -> ImageAddresses:
    """The other way: what addresses (n,) that all have this slot are in their file."""
    return image_addresses(addresses - np.uint64(slot * SLOT_SIZE))


def slot_of(address: PlacedAddress) -> int:
    """The slot of a placed address.

    >>> slot_of(0x1234), slot_of(0x2000000001234), slot_of(0xFFFFFFFF81000000)
    (0, 2, 0)
    """
    slot = address >> SLOT_BITS
    return 0 if slot == _KERNEL_SLOT else slot


def in_file(address: PlacedAddress) -> ImageAddress:
    """A placed address without its slot, as the file is linked for.

    >>> hex(in_file(0x2000000001234)), hex(in_file(0xFFFFFFFF81000000))
    ('0x1234', '0xffffffff81000000')
    """
    return ImageAddress(address - slot_of(address) * SLOT_SIZE)


def shown(address: PlacedAddress) -> str:
    """A placed address as people and other programs have it.

    >>> shown(0x2000000001234)
    '0x1234'
    """
    return f"{in_file(address):#x}"


def image_array(numbers: Iterable[int]) -> ImageAddresses:
    """Image addresses (n,) of numbers."""
    return image_addresses(np.array(list(numbers), dtype=np.uint64))


def placed_array(numbers: Iterable[int]) -> PlacedAddresses:
    """Placed addresses (n,) of numbers."""
    return image_array(numbers)


def are_of_kernel(addresses: U64 | ImageAddresses | RuntimeAddresses) -> Bools:
    """Which lie in the upper half, where x86-64 and AArch64 have the kernel.

    >>> are_of_kernel(np.array([0x401000, 0xFFFFFFFF81000000], np.uint64)).tolist()
    [False, True]
    """
    upper: Bools = (addresses >> np.uint64(63)).astype(np.bool_)
    return upper


@table
class ByteRanges(Tabular):
    """Half-open ranges of an image's bytes; columns of equal length.

    What execution passed, from the start of one instruction to that of another, is no such range
    but closed at both ends: `model.branch_counts.Runs`.
    """

    start: PlacedAddresses
    end: PlacedAddresses
    """First address behind each."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> ByteRanges:
        """From pairs of start and end."""
        start, end = image_addresses(np.array(list(pairs), dtype=np.uint64).reshape(-1, 2)).T
        return cls(start, end)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Start and end of each."""
        return zip(self.start.tolist(), self.end.tolist(), strict=True)

    def take(self, rows: I64) -> ByteRanges:
        """These rows."""
        return ByteRanges(self.start[rows], self.end[rows])

    def around(self, addresses: PlacedAddresses) -> I64:
        """(m,): the range that holds each address, -1 where none does; they must be ordered."""
        return interval_of(self.start, self.end, addresses)
