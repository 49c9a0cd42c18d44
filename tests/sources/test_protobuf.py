"""Messages of Protocol Buffers, by hand and by a plain writer."""

from __future__ import annotations

import pytest
from builders.protobuf import field, number
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.sources.protobuf import (
    Message,
    MessageError,
    entry,
    fields_of,
    numbers_in,
    numbers_of,
    opening_of,
)


def read(message: bytes) -> list[tuple[int, int | bytes]]:
    pairs = fields_of(Message.of(message))
    return [(key, value if isinstance(value, int) else value.content) for key, value in pairs]


def test_fields_of_every_wire_type() -> None:
    message = bytes.fromhex("0896 01 1207 74657374696e67 1d 01000000 21 0200000000000000")
    assert read(message) == [(1, 150), (2, b"testing"), (3, 1), (4, 2)]


@given(st.lists(st.tuples(st.integers(1, 1 << 28), st.integers(0, (1 << 64) - 1) | st.binary())))
def test_what_was_written_is_read(fields: list[tuple[int, int | bytes]]) -> None:
    assert read(b"".join(field(key, value) for key, value in fields)) == fields


def test_the_numbers_of_a_message() -> None:
    assert numbers_in(Message.of(field(1, 5) + field(2, b"x") + field(1, 7))) == {1: 7}


def test_how_a_field_begins_that_may_be_cut_off() -> None:
    assert opening_of(Message.of(b"\0" + field(3, b"text")[:3]), 1) == (3, True, 3, 7)
    assert opening_of(Message.of(field(4, 300)), 0) == (4, False, 1, 1)


def test_numbers_are_of_64_bits() -> None:
    assert read(bytes.fromhex("08" + "ff" * 9 + "7f")) == [(1, (1 << 64) - 1)]


def test_packed_numbers() -> None:
    assert list(numbers_of(7)) == [7]
    assert list(numbers_of(Message.of(number(3) + number(300)))) == [3, 300]


@pytest.mark.parametrize(
    ("message", "why", "at"),
    [
        ("08", "a number is cut off", 1),
        ("0805 08ff", "a number is cut off", 3),
        ("08" + "ff" * 10, "has no end", 1),
        ("0805 0a05ab", "is cut off", 2),
        ("0dab", "is cut off", 0),
        ("0805 0b", "no field begins", 2),
    ],
)
def test_what_is_no_message(message: str, why: str, at: int) -> None:
    with pytest.raises(MessageError, match=why) as caught:
        read(bytes.fromhex(message))
    assert caught.value.at == at


def test_places_are_those_of_the_whole_file() -> None:
    (_, inner), *_ = fields_of(Message.of(field(3, field(1, b"text") + b"\x0b")))
    assert isinstance(inner, Message)
    assert (inner.start, inner.end) == (2, 9)
    with pytest.raises(MessageError, match="no field begins") as caught:
        list(fields_of(inner))
    assert caught.value.at == 8


def test_entries_that_a_table_lacks() -> None:
    assert entry("ab", 1, "letter", Message.of(b"")) == "b"
    with pytest.raises(MessageError, match="letter 2 is named here, and the file has 2"):
        entry("ab", 2, "letter", Message.of(b""))
