"""Strings of DWARF sections, by their places."""

from __future__ import annotations

import numpy as np
import pytest
from builders.dwarf import u8

from lbr2pgo.native.dwarf_texts import Texts

SECTIONS = 5


def texts(*sections: bytes) -> Texts:
    return Texts(*map(u8, [*sections, *[b""] * (SECTIONS - len(sections))]))


def decode(found: Texts, *offsets: int, section: int = 0) -> list[str | None]:
    return found.decode(np.array(offsets, np.int64) * SECTIONS + section)


def test_strings_end_at_their_zero() -> None:
    long = b"x" * 5000
    found = texts(b"main\0" + long + b"\0\xff\0cut")
    assert decode(found, 0, 2, 4, 5, 5006) == ["main", "in", "", long.decode(), "\udcff"]
    assert decode(found, 5008, 5011, 1 << 58) == [None] * 3
    assert found.decode(np.array([-1])) == [None]


def test_each_section_has_strings_of_its_own() -> None:
    found = texts(*(b"%d\0" % i for i in range(SECTIONS)))
    assert [decode(found, 0, section=i) for i in range(SECTIONS)] == [
        [str(i)] for i in range(SECTIONS)
    ]
    with pytest.raises(ValueError, match="2 sections of strings"):
        Texts(u8(b""), u8(b""))  # type: ignore[call-arg]


@pytest.mark.parametrize("end", [b"", b"\0"])
def test_strings_that_hold_each_other_are_bounded(end: bytes) -> None:
    size = 20_000
    found = decode(texts(b"a" * size + end), *range(size))
    decoded = sum(len(text or "") for text in found)
    assert decoded < 20 * size
    assert bool(decoded) == bool(end)
    assert decode(texts(b"a" * size + end), size - 1) == ["a" if end else None]
