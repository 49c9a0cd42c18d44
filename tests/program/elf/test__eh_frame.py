"""Unwind and exception tables, against a plain reader and against pyelftools."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Compiled, Corpus
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.elf._eh_frame import landing_pads, read_entries

MASK = (1 << 64) - 1
OMIT = 0xFF
ADDRESS = 0x7000
FIXED = {0x0: "Q", 0x2: "H", 0x3: "I", 0x4: "Q", 0xA: "h", 0xB: "i", 0xC: "q"}


class DamageError(Exception):
    """A table ends too early, or uses what is not known."""


@dataclass
class Cursor:
    """Reads numbers up to an end."""

    data: bytes
    at: int
    end: int

    def fixed(self, form: str) -> int:
        size = struct.calcsize("<" + form)
        if self.at + size > self.end:
            raise DamageError
        self.at += size
        (value,) = struct.unpack_from("<" + form, self.data, self.at - size)
        return int(value)

    def leb(self, *, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self.fixed("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if signed and value >> (shift - 1) & 1:
            value -= 1 << shift
        return value & MASK

    def pointer(self, encoding: int) -> int:
        here = ADDRESS + self.at
        form, base = encoding & 0x0F, encoding & 0x70
        if form in (0x1, 0x9):
            value = self.leb(signed=form == 0x9)
        elif form in FIXED:
            value = self.fixed(FIXED[form]) & MASK
        else:
            raise DamageError
        if base not in (0, 0x10):
            raise DamageError
        return (value + here) & MASK if base and value else value


@dataclass
class Common:
    pointers: int = 0
    lsda: int = OMIT
    is_augmented: bool = False


def expected_entries(data: bytes) -> tuple[list[tuple[int, int, int]], int, int]:
    """What `read_entries` gives, read in the plainest way."""
    rows: list[tuple[int, int, int]] = []
    commons: dict[int, Common] = {}
    damaged = at = 0
    while at + 4 <= len(data):
        cursor = Cursor(data, at, len(data))
        length = cursor.fixed("I")
        if length == 0:
            at += 4
            continue
        if length == 0xFFFFFFFF and at + 12 <= len(data):
            length = cursor.fixed("Q")
        elif length >= 0xFFFFFFF0:
            return rows, damaged, at
        if length > len(data) - cursor.at:
            return rows, damaged, at
        body, at = cursor.at, cursor.at + length
        cursor.end = at
        try:
            back = cursor.fixed("I")
            if back == 0:
                commons[body] = read_common(cursor)
            else:
                owner = commons.get(body - back + 4) or commons.get(body - back + 12)
                rows.append(read_entry(cursor, owner))
        except DamageError:
            damaged += 1
    return rows, damaged, len(data)


def read_common(cursor: Cursor) -> Common:
    version, letters = cursor.fixed("B"), ""
    while byte := cursor.fixed("B"):
        letters += chr(byte)
    if version >= 4:
        cursor.fixed("H")
    cursor.leb()
    cursor.leb()
    cursor.fixed("B") if version == 1 else cursor.leb()
    common = Common(is_augmented=letters.startswith("z"))
    if common.is_augmented:
        cursor.leb()
    for letter in letters[1:] if common.is_augmented else "":
        if letter == "R":
            common.pointers = cursor.fixed("B")
        elif letter == "L":
            common.lsda = cursor.fixed("B")
        elif letter == "P":
            cursor.pointer(cursor.fixed("B"))
    return common


def read_entry(cursor: Cursor, common: Common | None) -> tuple[int, int, int]:
    if common is None:
        raise DamageError
    start, size, lsda = cursor.pointer(common.pointers), cursor.pointer(common.pointers & 0xF), 0
    if common.is_augmented and cursor.leb() and common.lsda != OMIT:
        lsda = cursor.pointer(common.lsda)
    if start + size > MASK:
        raise DamageError
    return start, size, lsda


def expected_pads(data: bytes, start: int, size: int, lsda: int) -> list[int]:
    """What `landing_pads` gives for one function."""
    pads: list[int] = []
    cursor = Cursor(data, lsda - ADDRESS, len(data))
    try:
        encoding = cursor.fixed("B")
        base = start if encoding == OMIT else cursor.pointer(encoding)
        if cursor.fixed("B") != OMIT:
            cursor.leb()
        encoding = cursor.fixed("B")
        length = cursor.leb()
        end, sites = cursor.at + length, 0
        while cursor.at < min(end, len(data)) and sites < size:
            sites += 1
            cursor.pointer(encoding)
            cursor.pointer(encoding)
            pad = cursor.pointer(encoding)
            cursor.leb()
            if pad and not start <= (base + pad) & MASK <= start + size:
                return pads
            pads += [(base + pad) & MASK] if pad else []
    except DamageError:
        pass
    return pads


def entries_of(data: bytes) -> tuple[list[tuple[int, int, int]], int, int]:
    rows, damaged, end = read_entries(np.frombuffer(data, np.uint8), ADDRESS)
    return [tuple(row) for row in rows.tolist()], damaged, end


def pads_of(data: bytes, *functions: tuple[int, int, int]) -> list[int]:
    columns = np.array(functions, np.uint64).reshape(-1, 3).T
    starts, sizes, lsdas = map(np.ascontiguousarray, columns)
    return landing_pads(np.frombuffer(data, np.uint8), ADDRESS, starts, sizes, lsdas).tolist()


def leb(value: int) -> bytes:
    """A signed LEB128, which reads the same unsigned where the value is positive."""
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        is_last = value == (-1 if byte & 0x40 else 0)
        out.append(byte | (0 if is_last else 0x80))
        if is_last:
            return bytes(out)


def encoded(value: int, form: int) -> bytes:
    return leb(value) if form in (0x1, 0x9) else struct.pack("<" + FIXED[form], value)


def record(body: bytes, *, is_long: bool = False) -> bytes:
    head = struct.pack("<IQ", 0xFFFFFFFF, len(body)) if is_long else struct.pack("<I", len(body))
    return head + body


def common_entry(
    letters: bytes, values: bytes, *, version: int = 1, is_long: bool = False
) -> bytes:
    sizes = b"\x08\x00" if version >= 4 else b""
    augmentation = leb(len(values)) + values if letters[:1] == b"z" else b""
    body = bytes(4) + bytes([version]) + letters + b"\0" + sizes + b"\x01\x78\x10" + augmentation
    return record(body + bytes(3), is_long=is_long)


def entry(before: bytes, fields: bytes, common_at: int = 0, *, is_long: bool = False) -> bytes:
    """An entry that stands behind some bytes, at the start of which its common entry is."""
    body_at = len(before) + (12 if is_long else 4)
    return record(struct.pack("<I", body_at - common_at) + fields + bytes(2), is_long=is_long)


class TestEntries:
    @pytest.mark.parametrize("base", [0x00, 0x10])
    @pytest.mark.parametrize("form", [*FIXED, 0x1, 0x9])
    def test_every_encoding_of_pointers(self, form: int, base: int) -> None:
        data = common_entry(b"zRL", bytes([base | form, base | form]))
        fields = encoded(0x70, form) + encoded(0x21, form) + b"\x08" + encoded(0x35, form)
        start_at = ADDRESS + len(data) + 8
        lsda_at = start_at + len(encoded(0x70, form) + encoded(0x21, form)) + 1
        data += entry(data, fields)
        relative = bool(base)
        row = (0x70 + relative * start_at, 0x21, 0x35 + relative * lsda_at)
        assert entries_of(data) == ([row], 0, len(data))

    @pytest.mark.parametrize("form", [0x9, 0xA, 0xB, 0xC])
    def test_signed_forms_point_backwards(self, form: int) -> None:
        data = common_entry(b"zR", bytes([0x10 | form]))
        start_at = ADDRESS + len(data) + 8
        data += entry(data, encoded(-0x20, form) + encoded(4, form) + b"\0")
        assert entries_of(data)[0] == [(start_at - 0x20, 4, 0)]

    @pytest.mark.parametrize("encoding", [0x05, 0x0D, 0x20, 0x30, 0x40, 0x50])
    def test_entries_with_encodings_that_no_one_uses_are_counted(self, encoding: int) -> None:
        data = common_entry(b"zR", bytes([encoding]))
        data += entry(data, bytes(20))
        good_at = len(data)
        data += common_entry(b"zR", b"\x03")
        data += entry(data, struct.pack("<II", 8, 9), good_at)
        assert entries_of(data) == ([(8, 9, 0)], 1, len(data))

    def test_null_pointers_are_relative_to_nothing(self) -> None:
        data = common_entry(b"zRL", b"\x1b\x1b")
        data += entry(data, struct.pack("<ii", 0, 5) + b"\x04" + bytes(4))
        assert entries_of(data)[0] == [(0, 5, 0)]

    @pytest.mark.parametrize("is_long", [False, True])
    def test_lengths_of_both_sizes(self, is_long: bool) -> None:
        data = common_entry(b"zR", b"\x03", is_long=is_long)
        data += entry(data, struct.pack("<II", 8, 9), is_long=is_long)
        assert entries_of(data) == ([(8, 9, 0)], 0, len(data))

    @pytest.mark.parametrize("version", [1, 3, 4])
    def test_versions(self, version: int) -> None:
        data = common_entry(b"zR", b"\x03", version=version)
        data += entry(data, struct.pack("<II", 8, 9))
        assert entries_of(data)[0] == [(8, 9, 0)]

    def test_other_letters_are_passed_over(self) -> None:
        """A personality routine, signal frames, and return addresses that are signed (AArch64)."""
        data = common_entry(b"zPRSBLG", b"\x9b" + bytes(4) + b"\x03\x03")
        data += entry(data, struct.pack("<II", 8, 9) + b"\x04" + struct.pack("<I", 0x77))
        assert entries_of(data)[0] == [(8, 9, 0x77)]

    def test_common_entries_without_augmentation(self) -> None:
        data = common_entry(b"", b"")
        data += entry(data, struct.pack("<QQ", 8, 9))
        assert entries_of(data)[0] == [(8, 9, 0)]

    def test_terminators_do_not_end_the_section(self) -> None:
        """Linkers put several inputs behind one another."""
        data = common_entry(b"zR", b"\x03")
        data += entry(data, struct.pack("<II", 8, 9)) + bytes(4)
        data += entry(data, struct.pack("<II", 18, 9)) + bytes(4)
        assert entries_of(data) == ([(8, 9, 0), (18, 9, 0)], 0, len(data))

    def test_each_entry_has_its_own_common_one(self) -> None:
        data = common_entry(b"zR", b"\x03")
        second = len(data)
        data += common_entry(b"zR", b"\x02")
        data += entry(data, struct.pack("<II", 8, 9), 0)
        data += entry(data, struct.pack("<HH", 6, 7), second)
        data += entry(data, struct.pack("<II", 18, 9), 0)
        assert entries_of(data)[0] == [(8, 9, 0), (6, 7, 0), (18, 9, 0)]

    def test_an_entry_without_its_common_one_is_counted(self) -> None:
        data = common_entry(b"zR", b"\x03")
        data += entry(data, struct.pack("<II", 8, 9), 1)
        assert entries_of(data) == ([], 1, len(data))

    def test_code_past_the_last_address_is_counted(self) -> None:
        data = common_entry(b"zR", b"\x04")
        data += entry(data, struct.pack("<QQ", MASK - 8, 9))
        data += entry(data, struct.pack("<QQ", MASK - 8, 8))
        assert entries_of(data) == ([(MASK - 8, 8, 0)], 1, len(data))

    @pytest.mark.parametrize("length", [0x40, 0x7FFFFFFF, 0xFFFFFFEF, 0xFFFFFFF0, 0xFFFFFFFF])
    def test_reading_ends_at_an_entry_that_is_too_long(self, length: int) -> None:
        data = common_entry(b"zR", b"\x03")
        data += entry(data, struct.pack("<II", 8, 9))
        end = len(data)
        data += struct.pack("<I", length) + b"\xff" * 20
        assert entries_of(data) == ([(8, 9, 0)], 0, end)

    def test_every_cut(self) -> None:
        data = common_entry(b"zRL", b"\x1b\x1b") + bytes(4)
        data += entry(data, struct.pack("<ii", 8, 9) + b"\x04" + struct.pack("<i", 3))
        for size in range(len(data) + 1):
            assert entries_of(data[:size]) == expected_entries(data[:size])

    @given(st.data())
    def test_damage_reads_as_the_plain_reader_reads_it(self, draw: st.DataObject) -> None:
        data = common_entry(b"zPLR", b"\x9b" + bytes(4) + b"\x1b\x1b")
        for i in range(3):
            data += entry(data, struct.pack("<ii", 8 + i, 9) + b"\x04" + struct.pack("<i", 3))
        data += common_entry(b"zR", b"\x03", is_long=True)
        places = st.integers(0, len(data) - 1)
        values = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
        damaged = bytearray(data)
        for place, value in draw.draw(st.lists(st.tuples(places, values), max_size=5)):
            damaged[place] = value
        assert entries_of(bytes(damaged)) == expected_entries(bytes(damaged))

    @given(st.binary(max_size=200))
    def test_noise_reads_as_the_plain_reader_reads_it(self, data: bytes) -> None:
        assert entries_of(data) == expected_entries(data)


def by_pyelftools(path: Path) -> Iterator[tuple[int, int, int]]:
    from elftools.dwarf.callframe import FDE
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        for found in ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False).EH_CFI_entries():
            if isinstance(found, FDE):
                header = found.header
                yield header["initial_location"], header["address_range"], found.lsda_pointer or 0


def of_file(path: Path) -> list[tuple[int, int, int]]:
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".eh_frame")
        data, address = section.data(), section["sh_addr"]
    rows, damaged, end = read_entries(np.frombuffer(data, np.uint8), address)
    assert (damaged, end) == (0, len(data))
    return [tuple(row) for row in rows.tolist()]


THROWS = """
#include <stdexcept>
#include <string>
struct Held { std::string s; ~Held() { s.clear(); } };
int inner(int n) {
  Held h{std::string(n, 'x')};
  if (n > 3) throw std::runtime_error(h.s);
  return n;
}
int main(int n, char **) {
  try { return inner(n); } catch (const std::logic_error &) { return 1; } catch (...) { return 2; }
}
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++-22"])
def test_programs_read_as_pyelftools_reads_them(compiler: str, compiled: Compiled) -> None:
    path = compiled(compiler, THROWS, "-O1")
    found = of_file(path)
    assert found == list(by_pyelftools(path))
    assert any(lsda for _, _, lsda in found)


@pytest.mark.parametrize("name", ["sqlite/sq.zst", "bolt/openssl.zst", "autofdo/test.binary"])
def test_the_corpus_reads_as_pyelftools_reads_it(name: str, corpus: Corpus) -> None:
    assert of_file(corpus(name)) == list(by_pyelftools(corpus(name)))


def site(pad: int, form: int = 0x1, action: int = 0) -> bytes:
    return encoded(1, form) + encoded(1, form) + encoded(pad, form) + leb(action)


def table(sites: bytes, form: int = 0x1, head: bytes = b"\xff\xff") -> bytes:
    return head + bytes([form]) + leb(len(sites)) + sites


class TestLandingPads:
    @pytest.mark.parametrize("form", [*FIXED, 0x1, 0x9])
    def test_every_form(self, form: int) -> None:
        data = table(site(4, form) + site(0, form) + site(9, form), form)
        assert pads_of(data, (0x100, 16, ADDRESS)) == [0x104, 0x109]

    def test_are_relative_to_a_base_if_there_is_one(self) -> None:
        data = table(site(4), head=b"\x03" + struct.pack("<I", 0x200) + b"\x9b\x05")
        assert pads_of(data, (0x200, 16, ADDRESS)) == [0x204]

    def test_end_with_the_first_outside_the_function(self) -> None:
        data = table(site(4) + site(40) + site(5))
        assert pads_of(data, (0x100, 16, ADDRESS)) == [0x104]

    def test_may_stand_at_the_end_of_the_function(self) -> None:
        assert pads_of(table(site(16)), (0x100, 16, ADDRESS)) == [0x110]
        assert pads_of(table(site(17)), (0x100, 16, ADDRESS)) == []

    def test_of_several_functions(self) -> None:
        first = table(site(4))
        data = first + table(site(5))
        functions = (0x100, 16, ADDRESS), (0x200, 16, ADDRESS + len(first))
        assert pads_of(data, *functions) == [0x104, 0x205]

    def test_are_not_more_than_the_function_has_bytes(self) -> None:
        data = table(site(1) * 100)
        assert pads_of(data, (0x100, 16, ADDRESS)) == [0x101] * 16

    @pytest.mark.parametrize("lsda", [0, ADDRESS - 1, ADDRESS + 100, MASK])
    def test_outside_the_section_there_are_none(self, lsda: int) -> None:
        assert pads_of(table(site(1)), (0x100, 16, lsda)) == []

    @given(st.binary(max_size=60), st.integers(0, 70))
    def test_noise_reads_as_the_plain_reader_reads_it(self, data: bytes, at: int) -> None:
        function = (0x100, 0x60, ADDRESS + at)
        assert pads_of(data, function) == expected_pads(data, *function)

    @given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 255)), max_size=3))
    def test_damage_reads_as_the_plain_reader_reads_it(self, damage: list[tuple[int, int]]) -> None:
        data = bytearray(table(site(4) + site(0) + site(9, action=300) + site(2)))
        for place, value in damage:
            data[place % len(data)] = value
        function = (0x100, 16, ADDRESS)
        assert pads_of(bytes(data), function) == expected_pads(bytes(data), *function)
