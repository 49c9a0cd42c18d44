"""ELF headers, judged by LIEF and by LLVM's readobj."""

from __future__ import annotations

import json
import struct
import warnings
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builders.elf import Function, elf
from builders.fixtures import ROOT, Corpus, Link, Run, Tool
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.elf.file import FileInMemory, StoredFile
from lbr2pgo.program.elf.headers import Headers, read_headers
from lbr2pgo.support.errors import InputError

if TYPE_CHECKING:
    import lief  # which takes a second to load

TESTBINS = [
    each for name in ("x86-64", "aarch64", "riscv64") for each in ROOT.glob(f"testbins/{name}/*")
]
CORPUS = [
    "sqlite/sq.zst", "bolt/openssl.zst", "autofdo/test.binary", "autofdo/propeller_sample_1.bin",
    "autofdo/test_kernel_module.ko.zst", "llvm-profgen/multi-load-segs.perfbin",
    "llvm-profgen/func-split.perfbin",
]  # fmt: skip

SEGMENT_FIELDS = ("address", "file_offset", "memory_size", "executable")
SECTION_FIELDS = ("address", "size", "file_offset", "type", "link", "entry_size")
Rows = list[tuple[Any, ...]]
_TYPE = 0xFFFFFFFF  # LIEF marks types of one architecture above that

# Where fields stand in the ELF header and in a section header (System V gABI).
PHOFF, SHOFF, PHENTSIZE, PHNUM, SHENTSIZE, SHNUM, SHSTRNDX = 32, 40, 54, 56, 58, 60, 62
SH_SIZE, SH_LINK, SH_INFO = 32, 40, 44


def headers(data: bytes) -> Headers:
    return read_headers(FileInMemory("program", data))


def segments(found: Headers) -> Rows:
    return [tuple(getattr(each, name) for name in SEGMENT_FIELDS) for each in found.segments]


def sections(found: Headers) -> Rows:
    return [tuple(getattr(each, name) for name in SECTION_FIELDS) for each in found.sections]


def names(found: Headers) -> list[str]:
    return [section.name for section in found.sections]


def by_lief(data: bytes) -> lief.ELF.Binary:
    import lief

    lief.logging.disable()
    config = lief.ELF.ParserConfig()
    for part in ("relocations", "overlay", "dyn_symbols", "symtab_symbols", "symbol_versions"):
        setattr(config, f"parse_{part}", False)
    with warnings.catch_warnings(action="ignore"):  # of types that it can't name
        return lief.ELF.parse(BytesIO(data), config)


def lief_segments(binary: lief.ELF.Binary) -> Rows:
    import lief

    with warnings.catch_warnings(action="ignore"):
        loads = [s for s in binary.segments if s.type == lief.ELF.Segment.TYPE.LOAD]
    rows = [
        (s.virtual_address, s.file_offset, min(s.virtual_size, (1 << 64) - 1 - s.virtual_address),
         bool(int(s.flags) & 1))
        for s in loads if s.virtual_size
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row[0])


def lief_sections(binary: lief.ELF.Binary) -> Rows:
    with warnings.catch_warnings(action="ignore"):
        return [
            (s.virtual_address, s.size, s.file_offset, int(s.type) & _TYPE, s.link, s.entry_size)
            for s in binary.sections
        ]


def lief_names(binary: lief.ELF.Binary) -> list[str]:
    every = (section.name for section in binary.sections)
    return [n if isinstance(n, str) else n.decode("utf-8", "replace") for n in every]


def lief_build_id(binary: lief.ELF.Binary) -> str | None:
    import lief

    kind = lief.ELF.Note.TYPE.GNU_BUILD_ID
    return next((bytes(n.description).hex() for n in binary.notes if n.type == kind), None)


def readobj(tool: Tool, run: Run, path: Path) -> dict[str, Any]:
    command = [tool("llvm-readobj-22"), "--elf-output-style=JSON", "-hlSn", path]
    (said,) = json.loads(run(*command).stdout)
    return said  # type: ignore[no-any-return]


def agree_with_readobj(found: Headers, said: dict[str, Any]) -> None:
    rows = [row["Section"] for row in said["Sections"]]
    assert names(found) == [row["Name"]["Name"] for row in rows]
    keys = ("Address", "Size", "Offset", "Link", "EntrySize")
    assert [row[:3] + row[4:] for row in sections(found)] == [
        tuple(row[key] for key in keys) for row in rows
    ]
    assert [row[3] for row in sections(found)] == [row["Type"]["Value"] for row in rows]
    flags = [row["Flags"]["Value"] for row in rows]
    assert [(s.is_alloc, s.is_code, s.is_compressed) for s in found.sections] == [
        (bool(flag & 2), flag & 6 == 6, bool(flag & 0x800)) for flag in flags
    ]
    loads = [row["ProgramHeader"] for row in said["ProgramHeaders"]]
    loads = [row for row in loads if row["Type"]["Value"] == 1]
    assert segments(found) == [
        (row["VirtualAddress"], row["Offset"], row["MemSize"], bool(row["Flags"]["Value"] & 1))
        for row in loads
    ]
    assert [s.file_size for s in found.segments] == [row["FileSize"] for row in loads]
    notes = [note for table in said["NoteSections"] for note in table["NoteSection"]["Notes"]]
    stated = [note["Build ID"] for note in notes if "Build ID" in note]
    assert found.build_id == (stated[0] if stated else None)


@pytest.mark.parametrize("path", TESTBINS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_test_programs_read_as_llvm_and_lief_read_them(path: Path, tool: Tool, run: Run) -> None:
    same_as_both(path, tool, run)


@pytest.mark.parametrize("name", CORPUS)
def test_the_corpus_reads_as_llvm_and_lief_read_it(
    name: str, corpus: Corpus, tool: Tool, run: Run
) -> None:
    same_as_both(corpus(name), tool, run)


def same_as_both(path: Path, tool: Tool, run: Run) -> None:
    found = read_headers(StoredFile(path))
    assert not any(found.health.values())
    agree_with_readobj(found, readobj(tool, run, path))
    binary = by_lief(path.read_bytes())
    assert segments(found) == lief_segments(binary)
    assert sections(found) == lief_sections(binary)
    assert names(found) == lief_names(binary)
    assert found.build_id == lief_build_id(binary)


@pytest.fixture(scope="module")
def program(link: Link) -> bytes:
    source = ".globl _start\n_start: ret\n.data\n.quad 1\n.bss\n.zero 100\n"
    return link(source, "--build-id=0x00c0ffee").read_bytes()


def patched(data: bytes, *patches: tuple[int, str, int]) -> bytes:
    """With numbers put at places, as `struct` writes them."""
    changed = bytearray(data)
    for place, form, number in patches:
        struct.pack_into("<" + form, changed, place, number)
    return bytes(changed)


def number(data: bytes, place: int, form: str) -> int:
    (found,) = struct.unpack_from("<" + form, data, place)
    return int(found)


WHOLE = elf(b"\xc3" * 16, 0x40_0000, [Function("f", 0x40_0000, 16)])
MACHINE = range(18, 20)
HEADER_PLACES = [
    *(place for place in range(64 + 56) if place not in MACHINE),  # LIEF knows not all machines
    *range(number(WHOLE, SHOFF, "Q"), len(WHOLE)),
]
DAMAGE = st.lists(
    st.tuples(
        st.sampled_from(HEADER_PLACES), st.sampled_from([0, 1, 2, 0x7F, 0xFF]) | st.integers(0, 255)
    ),
    min_size=1,
    max_size=6,
)


@given(DAMAGE)
def test_damaged_headers_read_as_lief_reads_them_or_are_refused(
    damage: list[tuple[int, int]],
) -> None:
    data = patched(WHOLE, *((place, "B", byte) for place, byte in damage))
    try:
        found = headers(data)
    except InputError:
        return
    binary = by_lief(data)
    assert segments(found) == lief_segments(binary)
    if number(data, SHNUM, "H") and number(data, SHSTRNDX, "H") != 0xFFFF:
        assert sections(found) == lief_sections(binary)
        if not found.health["section names outside the string table"]:
            assert names(found) == lief_names(binary)


class TestLargeCounts:
    """What does not fit into the ELF header is in the first section header."""

    def test_are_read_from_the_first_section_header(
        self, program: bytes, tmp_path: Path, tool: Tool, run: Run
    ) -> None:
        first = number(program, SHOFF, "Q")
        escaped = patched(
            program,
            (first + SH_SIZE, "Q", number(program, SHNUM, "H")), (SHNUM, "H", 0),
            (first + SH_LINK, "I", number(program, SHSTRNDX, "H")), (SHSTRNDX, "H", 0xFFFF),
            (first + SH_INFO, "I", number(program, PHNUM, "H")), (PHNUM, "H", 0xFFFF),
        )  # fmt: skip
        plain, found = headers(program), headers(escaped)
        assert (found.segments, found.build_id) == (plain.segments, plain.build_id)
        assert found.sections[1:] == plain.sections[1:]
        (tmp_path / "escaped").write_bytes(escaped)
        agree_with_readobj(found, readobj(tool, run, tmp_path / "escaped"))

    def test_seventy_thousand_sections(self, tmp_path: Path, tool: Tool, run: Run) -> None:
        source, target = tmp_path / "many.s", tmp_path / "many.o"
        source.write_text("".join(f'.section s{i},"a",@progbits\n' for i in range(70_000)))
        run(tool("llvm-mc-22"), "--filetype=obj", source, "-o", target)
        found = read_headers(StoredFile(target))
        assert [n for n in names(found) if n[:1] == "s"] == [f"s{i}" for i in range(70_000)]
        assert not any(found.health.values())

    @pytest.mark.parametrize("count", [1 << 40, (1 << 64) - 1])
    def test_more_than_the_file_holds_is_a_cut(self, count: int, program: bytes) -> None:
        first = number(program, SHOFF, "Q")
        with pytest.raises(InputError, match="cut: the section headers"):
            headers(patched(program, (SHNUM, "H", 0), (first + SH_SIZE, "Q", count)))

    def test_more_than_any_program_has_is_refused(self, program: bytes, tmp_path: Path) -> None:
        """A sparse file has room for more section headers than memory has."""
        first = number(program, SHOFF, "Q")
        path = tmp_path / "sparse"
        path.write_bytes(patched(program, (SHNUM, "H", 0), (first + SH_SIZE, "Q", 40_000_000)))
        with path.open("r+b") as file:
            file.truncate(3 << 30)
        with pytest.raises(InputError, match="40,000,000 section headers"):
            read_headers(StoredFile(path))

    def test_a_table_that_says_it_is_empty_is_counted(self, program: bytes) -> None:
        found = headers(patched(program, (SHNUM, "H", 0)))
        assert found.sections == ()
        assert reasons(found) == {"section tables that say nothing of where or how long they are"}


def reasons(found: Headers) -> set[str]:
    return {reason for reason, count in found.health.items() if count}


@pytest.mark.parametrize(("place", "what"), [(PHENTSIZE, "program"), (SHENTSIZE, "section")])
def test_headers_of_another_size_are_refused(place: int, what: str, program: bytes) -> None:
    with pytest.raises(InputError, match=f"its {what} headers are 40 bytes long"):
        headers(patched(program, (place, "H", 40)))


def test_a_table_without_a_place_is_none(program: bytes) -> None:
    found = headers(patched(program, (PHOFF, "Q", 0), (SHOFF, "Q", 0)))
    assert (found.segments, found.sections) == ((), ())
    assert reasons(found) == {"section tables that say nothing of where or how long they are"}


class TestSegments:
    """Of `WHOLE`, whose only program header is the first."""

    OFFSET, ADDRESS, FILE_SIZE, MEMORY_SIZE = 64 + 8, 64 + 16, 64 + 32, 64 + 40

    def test_that_overlap_are_counted(self) -> None:
        program_header = WHOLE[64 : 64 + 56]
        data = patched(WHOLE, (PHOFF, "Q", len(WHOLE)), (PHNUM, "H", 2)) + 2 * program_header
        found = headers(data)
        assert len(found.segments) == 2
        assert reasons(found) == {"load segments that overlap"}

    def test_that_are_cut_hold_what_is_there(self) -> None:
        data = patched(WHOLE, (self.OFFSET, "Q", len(WHOLE) - 4))
        found = headers(data)
        assert [s.file_size for s in found.segments] == [4]
        assert reasons(found) == {"load segments past the end of the file"}

    def test_past_the_last_address_end_there(self) -> None:
        data = patched(WHOLE, (self.ADDRESS, "Q", (1 << 64) - 8))
        found = headers(data)
        assert [s.memory_size for s in found.segments] == [7]
        assert reasons(found) == {"load segments past the last address"}

    def test_without_memory_are_none(self) -> None:
        assert headers(patched(WHOLE, (self.MEMORY_SIZE, "Q", 0))).segments == ()

    def test_come_by_address(self) -> None:
        program_header = WHOLE[64 : 64 + 56]
        lower = patched(program_header, (16, "Q", 0x1000))
        data = patched(WHOLE, (PHOFF, "Q", len(WHOLE)), (PHNUM, "H", 2)) + program_header + lower
        assert [s.address for s in headers(data).segments] == [0x1000, 0x40_0000]


class TestSections:
    NUMBER_OF_TEXT = 1

    def place(self, field: int) -> int:
        return number(WHOLE, SHOFF, "Q") + 64 * self.NUMBER_OF_TEXT + field

    def test_past_the_end_of_the_file_are_counted(self) -> None:
        found = headers(patched(WHOLE, (self.place(SH_SIZE), "Q", len(WHOLE))))
        assert reasons(found) == {"sections past the end of the file"}

    def test_past_the_last_address_end_there(self) -> None:
        found = headers(patched(WHOLE, (self.place(16), "Q", (1 << 64) - 4)))
        assert found.sections[self.NUMBER_OF_TEXT].end == (1 << 64) - 1
        assert reasons(found) == {"sections past the last address"}

    @pytest.mark.parametrize("name", [34, 1000, 0xFFFFFFFF])
    def test_whose_name_is_nowhere_are_counted(self, name: int) -> None:
        found = headers(patched(WHOLE, (self.place(0), "I", name)))
        assert names(found)[self.NUMBER_OF_TEXT] == ""
        assert reasons(found) == {"section names outside the string table"}

    @pytest.mark.parametrize("index", [5, 0xFFF0])
    def test_without_a_table_of_names_have_none(self, index: int) -> None:
        found = headers(patched(WHOLE, (SHSTRNDX, "H", index)))
        assert names(found) == [""] * 5
        assert found.health["section names outside the string table"] == 4

    def test_whose_names_overlap_to_exhaust_memory_are_refused(self) -> None:
        count, longest = 60_000, 1 << 20
        row = struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
        table_at = len(WHOLE) + 64 * count
        text = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, table_at, longest, 0, 0, 0, 0)
        data = patched(
            WHOLE, (SHOFF, "Q", len(WHOLE)), (SHNUM, "H", count), (SHSTRNDX, "H", count - 1)
        )
        data += row * (count - 1) + text + b"y" * longest
        with pytest.raises(InputError, match="sections' names overlap"):
            headers(data)


class TestBuildId:
    """In notes that stand behind `WHOLE`, in a PT_NOTE segment or an SHT_NOTE section."""

    @staticmethod
    def note(name: bytes, kind: int, description: bytes, align: int = 4) -> bytes:
        note = struct.pack("<III", len(name), len(description), kind) + name
        note += bytes(-len(note) % align) + description
        return note + bytes(-len(note) % align)

    @staticmethod
    def of(notes: bytes, align: int = 4) -> str | None:
        segment = struct.pack(
            "<IIQQQQQQ", 4, 4, len(WHOLE) + 112, 0, 0, len(notes), len(notes), align
        )
        data = patched(WHOLE, (PHOFF, "Q", len(WHOLE)), (PHNUM, "H", 2))
        return headers(data + WHOLE[64 : 64 + 56] + segment + notes).build_id

    def test_is_the_first_note_of_its_kind(self) -> None:
        others = self.note(b"GNU\0", 1, b"1234") + self.note(b"Go\0\0", 3, b"go")
        own = self.note(b"GNU\0", 3, b"\xab\xcd") + self.note(b"GNU\0", 3, b"later")
        assert self.of(others + own) == "abcd"

    @pytest.mark.parametrize("align", [4, 8])
    def test_stands_behind_padding(self, align: int) -> None:
        property_note = self.note(b"GNU\0", 5, b"12345678", align)
        own = self.note(b"GNU\0", 3, b"\x01\x02\x03", align)
        assert self.of(property_note + own, align) == "010203"

    def test_is_absent_where_it_is_cut_or_empty(self) -> None:
        assert self.of(self.note(b"GNU\0", 3, b"12345678")[:-1]) is None
        assert self.of(self.note(b"GNU\0", 3, b"")) is None
        assert self.of(b"") is None
        assert self.of(struct.pack("<III", 0xFFFFFFFF, 0xFFFFFFFF, 3)) is None

    def test_is_found_in_a_section_where_no_segment_has_it(self) -> None:
        note = self.note(b"GNU\0", 3, b"\x0a\x0b")
        text = number(WHOLE, SHOFF, "Q") + 64
        data = patched(
            WHOLE, (text + 4, "I", 7), (text + 24, "Q", len(WHOLE)), (text + SH_SIZE, "Q", 18)
        )
        assert headers(data + note).build_id == "0a0b"
