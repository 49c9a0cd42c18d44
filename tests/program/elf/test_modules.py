"""Kernel modules, laid out and relocated as their kernel does it."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from builders import kernels
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.elf.file import StoredFile
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.layout import MODULE
from lbr2pgo.program.elf.modules import BASE, linked
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import image_array
from lbr2pgo.support.errors import InputError


@pytest.fixture(scope="module", params=[(), ("-gz=zlib",)], ids=["plain", "packed"])
def ko(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kernels.module(tmp_path_factory.mktemp("module") / "toy.ko", *request.param)


def test_a_table_of_sections_behind_the_end_of_the_file(ko: Path, tmp_path: Path) -> None:
    damaged = bytearray(ko.read_bytes())
    damaged[40:48] = (len(damaged) + 1).to_bytes(8, "little")  # e_shoff
    path = tmp_path / "damaged.ko"
    path.write_bytes(damaged)
    file = StoredFile(str(path))
    assert linked(file) is file


def test_code_that_stays_comes_first_in_the_order_of_the_file(ko: Path) -> None:
    program = Program.open(ko)
    assert program.image.layout.anchors == {MODULE: BASE}
    code = [s for s in program.image.sections if s.is_code and s.size]
    staying = [s for s in code if not s.name.startswith(".init")]
    assert staying[0].address == BASE
    assert [s.address for s in staying] == sorted(s.address for s in staying)
    (first,) = (s for s in code if s.name == ".init.text")
    assert first.address >= max(s.end for s in staying)
    executable = [s.address for s in program.image.layout.segments if s.executable]
    assert executable == [s.address for s in staying]


def test_branches_between_sections_lead_to_their_functions(ko: Path) -> None:
    program = Program.open(ko)
    slow = program.address_of("slow")
    table = program.branches
    assert slow in table.target[table.has_target].tolist()


def test_lines_are_those_that_llvm_symbolizer_finds(ko: Path, tool, run) -> None:
    own, lines = lines_of(ko)
    text = Program.open(ko).image.section(".text")
    assert text is not None
    offsets = [hex(a - text.address) for a in own]
    told = run(tool("llvm-symbolizer-22"), f"--obj={ko}", "--output-style=GNU", "-s", *offsets)
    expected = [line.split(" ")[0].rsplit(":", 1)[1] for line in told.stdout.splitlines()[1::2]]
    assert len(expected) == len(own) > 5
    assert [str(line) for line in lines] == expected


def lines_of(path: Path) -> tuple[list[int], list[int]]:
    """Addresses of the instructions of `count`, and their lines."""
    program = Program.open(path)
    start = program.address_of("count")
    assert start is not None
    table = program.instructions_for(image_array([start]))
    row = program.functions.containing(image_array([start]))[0]
    own = [a for a in table.address.tolist() if start <= a < int(program.functions.end[row])]
    frames = DebugInfo.open(program.image).frames(image_array(own))
    return own, [int(frames.line[frames.offsets[i]]) for i in range(len(own))]


def test_debug_information_that_was_split_off_is_found(ko: Path, run, tmp_path: Path) -> None:
    target, debug = tmp_path / "toy.ko", tmp_path / "toy.ko.debug"
    run("objcopy", "--only-keep-debug", ko, debug)
    run("objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}", ko, target)
    assert lines_of(target) == lines_of(ko)


def test_other_files_stay_as_they_are(tmp_path: Path) -> None:
    kernel = StoredFile(kernels.kernel(tmp_path / "vmlinux"))
    assert linked(kernel) is kernel
    plain = kernels.compiled(tmp_path / "plain.o", "-c", "-Dmodinfo=1")
    content = plain.read_bytes().replace(b".modinfo", b".nothing")
    plain.write_bytes(content)
    with pytest.raises(InputError, match="an object file that is not linked yet"):
        Image.open(plain)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return kernels.module(tmp_path_factory.mktemp("module") / "toy.ko").read_bytes()


@given(st.data())
def test_damage_is_an_error_or_changes_what_is_read(content: bytes, data: st.DataObject) -> None:
    """Never anything else: section headers, symbols and relocations are not believed."""
    damaged = bytearray(content)
    table = struct.unpack_from("<Q", content, 40)[0]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(table, len(content) - 8) | st.integers(64, len(content) - 8))
        value = data.draw(st.sampled_from([0, 1, 2**31, 2**63, 2**64 - 1]) | st.integers(0, 999))
        damaged[at : at + 8] = struct.pack("<Q", value)
    with suppress(InputError):
        Program(Image.parse(bytes(damaged), "toy.ko")).symbols  # noqa: B018
