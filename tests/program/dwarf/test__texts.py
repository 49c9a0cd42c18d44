"""Strings in a part of a section."""

from __future__ import annotations

import numpy as np
import pytest
from builders.dwarf import u8

from lbr2pgo.native.text_numbers import TextNumbers
from lbr2pgo.program.dwarf._texts import number_texts
from lbr2pgo.support.texts import Texts


def read(part: bytes, *starts: int, most: int = 1000) -> list[str]:
    known = TextNumbers()
    numbers, size = number_texts(u8(part), np.array(starts, np.int64), most, known)
    texts = Texts(*known.texts())
    found = [texts[number] for number in numbers.tolist()]
    assert size == sum(texts.lengths()[numbers])
    return found


def test_strings_end_at_their_zero() -> None:
    assert read(b"main\0\xff\0cut", 0, 2, 4, 5, 0) == ["main", "in", "", "\udcff", "main"]


def test_reading_ends_at_the_first_string_without_end() -> None:
    assert read(b"main\0cut", 5, 0) == []
    assert read(b"main\0cut", 0, 5) == ["main"]


def test_reading_ends_when_it_is_too_much() -> None:
    assert read(b"main\0", *range(4), most=6) == ["main", "ain"]


@pytest.mark.parametrize("start", [-1, 4, 1 << 62])
def test_what_is_outside_is_not_read(start: int) -> None:
    with pytest.raises(IndexError):
        read(b"abc\0", start)
