"""Units as text and from the command line; llvm-dwarfdump is the oracle of what they hold."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.recordings import PIE

from lbr2pgo.cli import main
from lbr2pgo.program.dwarf.compile_units import CompileUnit, units
from lbr2pgo.program.elf.file import FileInMemory, StoredFile
from lbr2pgo.program.elf.headers import read_headers
from lbr2pgo.support.errors import InputError

CALLEE = "int callee(int x) { return x * 3; }\n"
CALLER = "int callee(int); int main(int count, char **words) { return callee(count); }\n"


@pytest.fixture(scope="module")
def objects(tmp_path_factory, run, tool) -> Path:
    """A folder with a.o of GCC, in DWARF 4, and b.o of clang, split, in DWARF 5."""
    folder: Path = tmp_path_factory.mktemp("units")
    (folder / "a.c").write_text(CALLEE)
    (folder / "b.c").write_text(CALLER)
    run(tool("gcc"), "-g", "-gdwarf-4", "-O1", "-c", "a.c", cwd=folder)
    run(tool("clang-22"), "-g", "-gsplit-dwarf", "-O1", "-c", "b.c", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def linked(objects: Path, run, tool) -> Callable[..., Path]:
    def build(*flags: str) -> Path:
        program = objects / f"program{'-'.join(flags).replace('/', '')}"
        run(tool("clang-22"), "-fuse-ld=lld", *flags, "a.o", "b.o", "-o", program, cwd=objects)
        return program

    return build


def dwarfdumped(program: Path, run, tool) -> list[dict[str, str]]:
    """Attributes of each unit's first entry."""
    text = run(tool("llvm-dwarfdump-22"), "--debug-info", "--recurse-depth=0", program).stdout
    entries = re.split(r"^0x\w+: DW_TAG_\w+$", text, flags=re.MULTILINE)[1:]
    return [dict(re.findall(r'(DW_AT_\w+)\s+\("([^"]*)"\)', entry)) for entry in entries]


@pytest.mark.parametrize(
    "flags", [(), ("-Wl,--emit-relocs",), ("-Wl,--compress-debug-sections=zlib",)]
)
def test_units_are_those_of_llvm_dwarfdump(linked, flags, run, tool) -> None:
    program = linked(*flags)
    found = units(StoredFile(program))
    expected = dwarfdumped(program, run, tool)
    assert [unit.name for unit in found] == [unit.get("DW_AT_name", "") for unit in expected]
    assert [unit.producer for unit in found] == [
        unit.get("DW_AT_producer", "") for unit in expected
    ]
    assert [unit.directory for unit in found] == [unit["DW_AT_comp_dir"] for unit in expected]
    assert [unit.version for unit in found] == [4, 5]
    assert [unit.split_file for unit in found] == ["", "b.dwo"]


def test_compilers_stand_first_and_then_every_unit(linked, objects: Path, capsys) -> None:
    assert main(["dump", "units", "--binary", str(linked())]) == 0
    gnu, unnamed, first, second = capsys.readouterr().out.splitlines()
    assert gnu.startswith("1 by GNU C")
    assert unnamed == "1 by a compiler that does not say its name"  # the .dwo file does
    assert re.fullmatch(rf"0x0 a\.c: DWARF 4, .*C99, compiled in {objects}", first)
    assert second.endswith(f"[no name]: DWARF 5, compiled in {objects}, split off to b.dwo")


def test_what_was_split_off_is_found(linked, objects: Path, run, tool, capsys) -> None:
    program = linked()
    stripped = objects / "stripped"
    run(tool("llvm-objcopy-22"), "--only-keep-debug", program, "kept.debug", cwd=objects)
    run(tool("llvm-objcopy-22"), "--strip-all", "--add-gnu-debuglink=kept.debug", program,
        stripped, cwd=objects)  # fmt: skip
    assert units(StoredFile(stripped)) == []
    assert main(["dump", "units", "--binary", str(stripped)]) == 0
    assert "0x0 a.c: DWARF 4" in capsys.readouterr().out


def test_a_program_without_debug_info_is_told_what_to_do(linked, capsys) -> None:
    assert main(["dump", "units", "--binary", str(linked("-s"))]) == 2
    assert "build it with -g1 or -g" in capsys.readouterr().err


def test_a_way_of_packing_that_is_not_known_is_said() -> None:
    # gABI: Elf64_Chdr begins with the way of packing; 1 is zlib, 2 zstd.
    packed = bytearray(PIE.read_bytes())
    headers = read_headers(FileInMemory("packed", bytes(packed)))
    [info] = [section for section in headers.sections if section.name == ".debug_info"]
    struct.pack_into("<IIQQ", packed, info.file_offset, 99, 0, info.size, 1)
    at = section_header_at(packed, info.file_offset)
    packed[at + 8 : at + 16] = struct.pack("<Q", 1 << 11)  # SHF_COMPRESSED
    with pytest.raises(InputError, match="--decompress-debug-sections"):
        units(FileInMemory("packed", bytes(packed)))


def section_header_at(elf: bytes, file_offset: int) -> int:
    """Where the header of the section stands whose content is there."""
    [start] = struct.unpack_from("<Q", elf, 40)
    rows = range(start, len(elf), 64)
    return next(at for at in rows if struct.unpack_from("<Q", elf, at + 24) == (file_offset,))


def test_damage_is_an_error_of_the_file() -> None:
    chance = random.Random(1)
    whole = PIE.read_bytes()
    assert {outcome_of_damage(whole, chance) for _ in range(300)} == {"read", "refused"}


def outcome_of_damage(whole: bytes, chance: random.Random) -> str:
    damaged = bytearray(whole)
    for _ in range(chance.randrange(1, 400)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    try:
        found = units(FileInMemory("damaged", bytes(damaged)))
    except InputError:
        return "refused"
    assert all(isinstance(unit, CompileUnit) for unit in found)
    return "read"
