"""The types of arrays that are handed about, by what they hold."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Records = npt.NDArray[Any]
"""Of a structured type."""
U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

Element = TypeVar("Element", bound=np.generic)
Numbers = npt.NDArray[np.integer[Any]]


def alike(*columns: Numbers) -> list[Any]:
    """The same numbers in one type, for loops: without a sign if some have none, else with one.

    >>> [each.dtype.name for each in alike(np.array([1], np.int32), np.array([2], np.uint64))]
    ['uint64', 'uint64']
    """
    kind = np.uint64 if any(column.dtype == np.uint64 for column in columns) else np.int64
    return [np.ascontiguousarray(column, kind) for column in columns]


def extended(column: npt.NDArray[Element], size: int, filled: int) -> npt.NDArray[Element]:
    """A column of so many rows, of which the new ones hold one number.

    >>> extended(np.array([4, 5]), 4, -1)
    array([ 4,  5, -1, -1])
    """
    return np.concatenate([column, np.full(size - len(column), filled, column.dtype)])
