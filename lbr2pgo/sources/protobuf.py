"""Fields of a Protocol Buffers message, as they lie in its bytes.

A message is a row of fields: a number (field << 3 | wire type), then the value. Values are numbers
of seven bits a byte, or bytes with their length before them: texts, messages, packed numbers.

Source: protobuf.dev, Encoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_LONGEST = 10
"""Bytes of a number of 64 bits."""
_ALL_BITS = (1 << 64) - 1
"""More are dropped, as protobuf.dev says."""


class MessageError(ValueError):
    """What is wrong in a file, and at which of its bytes."""

    def __init__(self, what: str, at: int) -> None:
        super().__init__(what)
        self.at = at


class Message(NamedTuple):
    """Some bytes of a file: a message, or a text or packed numbers in one."""

    whole: memoryview
    start: int
    end: int

    @classmethod
    def of(cls, content: bytes) -> Message:
        """All of them."""
        return cls(memoryview(content), 0, len(content))

    @property
    def content(self) -> bytes:
        """The bytes."""
        return bytes(self.whole[self.start : self.end])

    @property
    def text(self) -> str:
        """Them as UTF-8; what is none is replaced."""
        return self.content.decode("utf-8", "replace")


Field = tuple[int, int | Message]
"""Its number, and its value."""


class Opening(NamedTuple):
    """How a field begins."""

    field: int
    has_bytes: bool
    begin: int
    """Of its bytes."""
    past: int


def fields_of(message: Message) -> Iterator[Field]:
    """The fields, in their order; raises MessageError where the message is cut off or none."""
    whole, at, end = message
    while at < end:
        first = at
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
            raise MessageError("no field begins here", first)
        if length > end - at:
            raise MessageError("a field is cut off", first)
        content = Message(whole, at, at + length)
        at += length
        yield key >> 3, content if kind == _BYTES else int.from_bytes(content.content, "little")


def numbers_in(message: Message) -> dict[int, int]:
    """The numbers of a message, the last of each field."""
    return {field: number for field, number in fields_of(message) if isinstance(number, int)}


def numbers_of(value: int | Message) -> Iterator[int]:
    """Those of a repeated field, which may be packed."""
    if isinstance(value, int):
        yield value
        return
    at = value.start
    while at < value.end:
        number, at = _number(value, at)
        yield number


def opening_of(message: Message, at: int) -> Opening:
    """How the field there begins, whole or not; raises MessageError where none does."""
    key, at = _number(message, at)
    has_bytes = key & 7 == _BYTES
    size, begin = _number(message, at) if has_bytes else (0, at)
    return Opening(key >> 3, has_bytes, begin, begin + size)


def entry(table: Sequence[T], number: int, what: str, named_in: Message) -> T:
    """An entry of a table of a file; raises MessageError where this is shorter."""
    if number >= len(table):
        short = f"{what} {number} is named here, and the file has {len(table)}"
        raise MessageError(short, named_in.start)
    return table[number]


def _number(message: Message, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    whole, first, end, number = message.whole, at, message.end, 0
    for place in range(_LONGEST):
        if at >= end:
            raise MessageError("a number is cut off", first)
        byte = whole[at]
        at += 1
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number & _ALL_BITS, at
    raise MessageError("a number has no end", first)
