"""Strings and numbers of DWARF sections, read from Python."""

from __future__ import annotations

import numpy as np

from lbr2pgo.program.dwarf.container import StringSection, numbers_at, runs


def u8(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def test_strings_end_at_their_zero() -> None:
    long = b"x" * 5000
    section = StringSection(u8(b"main\0" + long + b"\0\xff\0cut"))
    assert section.text(0) == "main"
    assert section.text(2) == "in"
    assert section.text(4) == ""
    assert section.text(5) == long.decode()
    assert section.text(5006) == "\udcff"
    for nowhere in (5008, 5011, 1 << 60, -1):
        assert section.text(nowhere) is None


def test_strings_without_end_are_bounded() -> None:
    size = 20_000
    section = StringSection(u8(b"a" * size))
    assert {section.text(offset) for offset in range(size)} == {None}
    section = StringSection(u8(b"a" * (size - 1) + b"\0"))
    decoded = sum(len(section.text(offset) or "") for offset in range(size))
    assert size < decoded < 20 * size


def test_numbers_outside_of_a_section_are_told() -> None:
    data = u8(bytes(range(8)))
    positions = np.array([0, 4, 5, 8, -1, 1 << 62, -(1 << 63)])
    values, inside = numbers_at(data, positions, 4)
    assert inside.tolist() == [True, True, False, False, False, False, False]
    assert values[:2].tolist() == [0x03020100, 0x07060504]


def test_runs_of_nothing() -> None:
    assert list(runs(np.zeros(0, np.int64))) == []
    assert list(runs(np.array([-1]))) == [(-1, 0, 1)]
