"""Strings of sections, read a part at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.dwarf import u8

from lbr2pgo.program.dwarf import section as module
from lbr2pgo.program.dwarf._texts import TEXT_SECTIONS
from lbr2pgo.program.dwarf.section import ABSENT, DebugTexts, SectionInMemory, StoredSection
from lbr2pgo.program.elf.file import StoredFile


def texts(*sections: bytes) -> DebugTexts:
    parts = [SectionInMemory(u8(section)) for section in sections]
    return DebugTexts([*parts, *[ABSENT] * (TEXT_SECTIONS - len(sections))])


def decode(found: DebugTexts, *offsets: int, section: int = 0) -> list[str | None]:
    return found.decode(np.array(offsets, np.int64) * TEXT_SECTIONS + section)


def test_strings_are_given_in_the_order_in_which_they_are_asked_for() -> None:
    found = texts(b"main\0other\0")
    assert decode(found, 5, 0, 7, 0) == ["other", "main", "her", "main"]
    assert decode(found) == []
    assert decode(found, 12, 1 << 58) == [None, None]
    assert found.decode(np.array([-1, 0])) == [None, "main"]


def test_each_section_has_strings_of_its_own() -> None:
    found = texts(*(b"%d\0" % i for i in range(TEXT_SECTIONS)))
    places = np.arange(TEXT_SECTIONS)[::-1].copy()
    assert found.decode(places) == [str(i) for i in places]


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
def test_parts_in_which_strings_are_read_do_not_matter(
    most: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "_LEAST", min(most, 4096))
    monkeypatch.setattr(module, "_MOST", most)
    monkeypatch.setattr(module, "_MANY", most)
    words = [b"a" * (i % 50) for i in range(400)]
    data = b"\0".join(words) + b"\0cut"
    offsets = np.cumsum([0, *(len(word) + 1 for word in words)])
    expected = [*(word.decode() for word in words), None]
    path = tmp_path / "file"
    path.write_bytes(b"before" + data + b"behind\0")
    stored = StoredSection(StoredFile(path), len("before"), len(data))
    for section in (SectionInMemory(u8(data)), stored):
        assert decode(DebugTexts([section]), *offsets.tolist()) == expected


@pytest.mark.parametrize("end", [b"", b"\0"])
def test_strings_that_hold_each_other_are_bounded(end: bytes) -> None:
    size = 20_000
    found = decode(texts(b"a" * size + end), *range(size))
    assert sum(len(text or "") for text in found) < 20 * size
    assert decode(texts(b"a" * size + end), size - 1) == ["a" if end else None]


def test_a_stored_section_ends_where_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    section = StoredSection(StoredFile(path), 2, 5)
    assert section.read(0, 99).tobytes() == b"23456"
    assert section.read(3, 4).tobytes() == b"5"
    assert section.read(5, 9).tobytes() == section.read(9, 12).tobytes() == b""
