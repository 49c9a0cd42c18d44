"""Opening ELF files, whole and broken."""

from __future__ import annotations

import os
import random
import struct
import zlib
from pathlib import Path

import pytest
from builders.fixtures import Corpus, Link, Run, Tool

from lbr2pgo.program.code.regions import build_functions, code_ranges
from lbr2pgo.program.dwarf.loader import has_dwarf
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.symbols import read_symbols
from lbr2pgo.support.errors import InputError

SOURCE = """
.globl _start
_start: ret
.data
.quad 0x1122334455667788
.bss
.zero 100
.section .debug_info,"",@progbits
.fill 1000, 1, 7
"""


@pytest.fixture(scope="module")
def elf(link: Link) -> Path:
    return link(SOURCE, "--build-id=0x00c0ffee")


def broken(elf: Path, tmp_path: Path, *patches: tuple[int, bytes]) -> Path:
    data = bytearray(elf.read_bytes())
    for offset, patch in patches:
        data[offset : offset + len(patch)] = patch
    target = tmp_path / "broken"
    target.write_bytes(data)
    return target


def test_identity(elf: Path) -> None:
    image = Image.open(elf)
    assert (image.path, image.machine, image.build_id) == (str(elf), "x86-64", "00c0ffee")
    assert not image.is_pie
    assert has_dwarf(image)
    assert not image.is_stripped
    assert image.health() == {}


def test_pie_and_machine(link: Link) -> None:
    assert Image.open(link("_start: ret\n", "-pie")).is_pie
    assert Image.open(link("_start: ret\n", machine="aarch64")).machine == "aarch64"
    assert Image.open(link("_start: ret\n", "--strip-all")).is_stripped


def test_layout_is_what_readelf_says(elf: Path, tool: Tool, run: Run) -> None:
    listed = run(tool("llvm-readelf-22"), "-lW", elf).stdout.splitlines()
    loads = [line.split() for line in listed if line.split()[:1] == ["LOAD"]]
    expected = [(int(x[2], 16), int(x[1], 16), int(x[4], 16), int(x[5], 16)) for x in loads]
    segments = Image.open(elf).layout.segments
    actual = [(s.address, s.file_offset, s.file_size, s.memory_size) for s in segments]
    assert actual == expected
    assert [s.executable for s in segments] == ["E" in x[6:8] for x in loads]


def test_read(elf: Path) -> None:
    image = Image.open(elf)
    data, bss = image.section(".data"), image.section(".bss")
    assert data is not None
    assert bss is not None
    assert image.read(data.address, 8) == bytes.fromhex("8877665544332211")
    assert image.read(data.address + 6, 1) == b"\x22"
    assert image.read(bss.address, bss.size + 10_000) == bytes(bss.size)
    assert image.read(0, 10) == image.read(bss.end + 0x10000, 10) == b""
    assert image.read(data.address, 0) == image.read(data.address, -5) == b""
    assert bytes(image.stored(bss.address + 50, 8)) == b""


def test_reading_ends_with_its_segment(elf: Path) -> None:
    image = Image.open(elf)
    code = next(s for s in image.layout.segments if s.executable)
    assert len(image.read(code.address, 1 << 40)) == code.memory_size


def test_sections(elf: Path) -> None:
    image = Image.open(elf)
    assert image.section_data(".debug_info") == bytes([7]) * 1000
    assert image.section_data(".bss") is None
    assert image.section_data(".nope") is image.section(".nope") is None


@pytest.mark.parametrize("method", ["zlib", "zstd"])
def test_compressed_sections(method: str, elf: Path, tmp_path: Path, tool: Tool, run: Run) -> None:
    packed = tmp_path / "packed"
    run(tool("llvm-objcopy-22"), f"--compress-debug-sections={method}", elf, packed)
    image = Image.open(packed)
    assert len(image.contents(image.section(".debug_info"))) < 200  # type: ignore[arg-type]
    assert image.section_data(".debug_info") == bytes([7]) * 1000


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (".zdebug_info", b"ZLIB" + (1000).to_bytes(8, "big") + zlib.compress(bytes(1000)), None),
        (".zdebug_info", b"ZLIB" + (1 << 60).to_bytes(8, "big") + zlib.compress(b"x"), "can't be"),
        (".zdebug_info", b"ZLIB" + (9).to_bytes(8, "big") + zlib.compress(b"x"), "to 1 bytes"),
        (".zdebug_info", b"ZLIB" + (9).to_bytes(8, "big") + b"nonsense", "does not unpack"),
        (".debug_info", struct.pack("<IIQQ", 9, 0, 4, 1) + b"x", "unknown way"),
        (".debug_info", struct.pack("<IIQQ", 2, 0, 4, 1) + b"nonsense", "does not unpack"),
        (".debug_info", b"short", "too short"),
    ],
)
def test_packed_by_hand(
    name: str, content: bytes, said: str | None, link: Link, tmp_path: Path, run: Run,
    tool: Tool,
) -> None:  # fmt: skip
    packed, target = tmp_path / "section", tmp_path / "program"
    packed.write_bytes(content)
    run(tool("llvm-objcopy-22"), f"--add-section={name}={packed}", link("_start: ret\n"), target)
    if name == ".debug_info":
        mark_compressed(target, name)
    image = Image.open(target)
    if said is None:
        assert image.section_data(".debug_info") == bytes(1000)
        return
    with pytest.raises(InputError, match=said) as caught:
        image.section_data(".debug_info")
    assert caught.value.where.startswith(f"{target}@0x")  # type: ignore[union-attr]


def mark_compressed(binary: Path, name: str) -> None:
    """Set SHF_COMPRESSED."""
    data = bytearray(binary.read_bytes())
    number = [s.name for s in Image.open(binary).sections].index(name)
    table = int.from_bytes(data[40:48], "little")
    data[table + 64 * number + 8 : table + 64 * number + 16] = (0x800).to_bytes(8, "little")
    binary.write_bytes(data)


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ((0, b"GIF8"), "not an ELF file"),
        ((4, b"\1"), "32-bit"),
        ((5, b"\2"), "big-endian"),
        ((16, b"\1"), "not linked yet"),
        ((16, b"\4"), "core dump"),
        ((16, b"\x63"), "type 99"),
        ((18, b"\x28"), "machine number 40"),
        ((32, b"\xff" * 8), "is cut: the program headers"),
        ((40, b"\xff" * 8), "is cut: the section headers"),
        ((40, b"\xff\xff\xff\x7f"), "is cut: the section headers"),
        ((56, b"\xfe\xff"), "is cut: the program headers"),
        ((60, b"\xfe\xff"), "is cut: the section headers"),
        ((56, b"\0\0"), "nothing of the file"),
    ],
)
def test_unusable_files(patch: tuple[int, bytes], said: str, elf: Path, tmp_path: Path) -> None:
    file = broken(elf, tmp_path, patch)
    with pytest.raises(InputError, match=said) as caught:
        Image.open(file)
    assert caught.value.where == str(file)
    assert caught.value.cure


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    for name in ("missing", ".", "pipe", "empty"):
        with pytest.raises(InputError):
            Image.open(tmp_path / name)


def test_every_cut_is_said_or_harmless(elf: Path, tmp_path: Path) -> None:
    data = elf.read_bytes()
    for size in [*range(0, 0x200, 7), *range(0x200, len(data), 97), len(data) - 1]:
        (tmp_path / "cut").write_bytes(data[:size])
        with pytest.raises(InputError):
            Image.open(tmp_path / "cut")


def test_a_file_without_section_table(elf: Path, tmp_path: Path) -> None:
    image = Image.open(broken(elf, tmp_path, (40, bytes(8)), (58, bytes(6))))
    assert image.sections == ()
    assert image.is_stripped
    assert not has_dwarf(image)
    assert image.read(int(code_ranges(image).start[0]), 1) == b"\xc3"


def test_a_section_outside_the_file(elf: Path, tmp_path: Path) -> None:
    number = [s.name for s in Image.open(elf).sections].index(".debug_info")
    table = int.from_bytes(elf.read_bytes()[40:48], "little")
    file = broken(elf, tmp_path, (table + 64 * number + 24, b"\xff" * 7))
    image = Image.open(file)
    assert image.section_data(".debug_info") is None
    assert image.health() == {"sections past the end of the file": 1}


def test_damage_anywhere_is_no_crash(elf: Path, tmp_path: Path) -> None:
    chance = random.Random(1)
    size = elf.stat().st_size
    table = int.from_bytes(elf.read_bytes()[40:48], "little")
    opened = 0
    for _ in range(400):
        spans = ((0, 0x200), (table, size), (0, size))
        places = [chance.randrange(*chance.choice(spans)) for _ in range(3)]
        file = broken(
            elf, tmp_path, *((p, chance.randbytes(chance.choice((1, 4)))) for p in places)
        )
        try:
            image = Image.open(file)
            build_functions(read_symbols(image), code_ranges(image))
            image.section_data(".debug_info")
        except InputError:
            continue
        opened += 1
    assert 0 < opened < 400


def test_corpus_identities(corpus: Corpus) -> None:
    sqlite = Image.open(corpus("sqlite/sq.zst"))
    assert sqlite.build_id == "deee02bb878e00621548ad5c733cae56831368b7"
    assert sqlite.is_pie
    split = Image.open(corpus("llvm-profgen/multi-load-segs.perfbin"))
    assert [s.executable for s in split.layout.segments] == [False, True, False, False, True]
    assert not has_dwarf(Image.open(corpus("bolt/openssl.zst")))
