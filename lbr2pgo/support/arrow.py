"""NumPy's integers as arrays of Arrow, and back, in the memory they lie in.

Arrow's own ways to and from NumPy load pandas wherever that is installed, which takes 0.2 s and
more of every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lbr2pgo.support.arrays import Bools
from lbr2pgo.support.intervals import offsets_of

INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
"""Arrow's and NumPy's names of types."""


def whole(column: Any) -> Any:
    """The one array of a column of a table."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def integers_of(array: Any, null: int = 0) -> Any:
    """(n,) integers of an array of these; in place of nulls another one."""
    if array.null_count == len(array):
        return np.full(len(array), null, str(array.type))
    validity, numbers = array.buffers()
    there = slice(array.offset, array.offset + len(array))
    found = np.frombuffer(numbers, str(array.type))[there]
    if not array.null_count:
        return found
    is_valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[there]
    return np.where(is_valid, found, found.dtype.type(null))


def of_integers(arrow: Any, numbers: Any, are_null: Bools | None = None) -> Any:
    """An array of (n,) integers; those that `are_null` (n,) are nulls."""
    validity = None
    if are_null is not None and are_null.any():
        validity = arrow.py_buffer(np.packbits(~are_null, bitorder="little"))
    data = arrow.py_buffer(np.ascontiguousarray(numbers))
    type_ = arrow.type_for_alias(numbers.dtype.name)
    return arrow.Array.from_buffers(type_, len(numbers), [validity, data])


def of_texts(arrow: Any, texts: Sequence[str]) -> Any:
    """An array of texts."""
    encoded = [text.encode() for text in texts]
    offsets = offsets_of([len(text) for text in encoded]).astype(np.int32)
    buffers = [None, arrow.py_buffer(offsets), arrow.py_buffer(b"".join(encoded))]
    return arrow.Array.from_buffers(arrow.string(), len(texts), buffers)
