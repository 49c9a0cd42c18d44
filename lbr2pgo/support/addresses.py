"""Addresses by what they count from; a type checker tells them apart, and nothing at run time.

A *run-time address* is what a process sees, an *image address* what the ELF file is linked for, a
*file offset* where the byte stands in the file. Arrays of each have an element type of their own,
which taking rows, sorting and joining keep. Adding and subtracting do not: who does that says what
comes out, with the functions below.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NewType, cast

import numpy as np
import numpy.typing as npt

RuntimeAddress = NewType("RuntimeAddress", int)
ImageAddress = NewType("ImageAddress", int)
FileOffset = NewType("FileOffset", int)

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


def image_array(numbers: Iterable[int]) -> ImageAddresses:
    """Image addresses (n,) of numbers."""
    return image_addresses(np.array(list(numbers), dtype=np.uint64))
