"""Fields of a Protocol Buffers message, as they lie in its bytes.

A message is a row of fields: a number (field << 3 | wire type), then the value. Values are numbers
of seven bits a byte, or bytes with their length before them: texts, messages, packed numbers.

Source: protobuf.dev, Encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_LONGEST = 10
"""Bytes of a number of 64 bits."""
_ALL_BITS = (1 << 64) - 1
"""More are dropped, as protobuf.dev says."""

Field = tuple[int, int | memoryview]
"""Its number, and its value."""


class Opening(NamedTuple):
    """How a field begins."""

    field: int
    has_bytes: bool
    begin: int
    """Of its bytes."""
    past: int


def fields_of(message: memoryview) -> Iterator[Field]:
    """The fields, in their order; raises ValueError where the message is cut off or none."""
    at, size = 0, len(message)
    while at < size:
        key, at = _number(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _number(message, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = _number(message, at)
        elif kind in (_FIXED_64, _FIXED_32):
            length = 8 if kind == _FIXED_64 else 4
        else:
            raise ValueError(f"no field begins at byte {at}")
        if length > size - at:
            raise ValueError(f"a field at byte {at} is cut off")
        content = message[at : at + length]
        at += length
        yield key >> 3, content if kind == _BYTES else int.from_bytes(content, "little")


def numbers_in(message: memoryview) -> dict[int, int]:
    """The numbers of a message, the last of each field."""
    return {field: number for field, number in fields_of(message) if isinstance(number, int)}


def numbers_of(value: int | memoryview) -> Iterator[int]:
    """Those of a repeated field, which may be packed."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        number, at = _number(value, at)
        yield number


def opening_of(message: memoryview, at: int) -> Opening:
    """How the field there begins, whole or not; raises ValueError where none does."""
    key, at = _number(message, at)
    has_bytes = key & 7 == _BYTES
    size, begin = _number(message, at) if has_bytes else (0, at)
    return Opening(key >> 3, has_bytes, begin, begin + size)


def _number(message: memoryview, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    number = 0
    for place in range(_LONGEST):
        if at >= len(message):
            raise ValueError("a number is cut off")
        byte = message[at]
        at += 1
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number & _ALL_BITS, at
    raise ValueError(f"a number before byte {at} has no end")
