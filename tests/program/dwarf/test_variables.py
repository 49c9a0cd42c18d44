"""Fields at every byte of the variables of real programs, beside a plain walk over pyelftools."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.fixtures import Tool

from lbr2pgo.program.dwarf.data_types import PADDING, DataField
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.dwarf.variables import StaticVariables
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.program import Program

SOURCE = """
typedef struct { int x, y; } point;
struct cell { char tag; long value; union { int i; float f; } either; };
struct entry {
    const char *key; struct cell cells[3][2]; point at; unsigned low : 3, high : 9;
    struct { short deep; }; void (*call)(int); long behind;
};
volatile struct entry entries[20];
volatile int counter, matrix[4][8];
const volatile point origin = {1, 2};
static volatile point *const volatile near = 0;
volatile char *names[7];
enum colour { RED } volatile shade;
#ifdef __cplusplus
struct Base { virtual ~Base(); long of_base; static int shared; };
Base::~Base() {}
int Base::shared = 3;
struct Other { int of_other[2]; };
struct Derived : Base, private Other { char own; int &reference; Derived(); };
Derived::Derived() : own(1), reference(shared) {}
Derived derived;
namespace inner { volatile point hidden; }
template <class T> struct Box { T held; static volatile T kept; };
template <class T> volatile T Box<T>::kept;
template struct Box<point>;
volatile Box<long> box;
#endif
_Thread_local_ int of_thread;
int main() {
    static volatile point local;
    local.x++; entries[1].at.y++; of_thread++; counter += shade;
#ifdef __cplusplus
    inner::hidden.x++; box.held++; Box<long>::kept++;
    derived.own++;
#endif
    return (int)(long)near + counter + matrix[1][2] + origin.y + names[2][0];
}
"""
COMPILERS = {
    "clang, DWARF 5": ("clang-22", "-gdwarf-5"),
    "clang, DWARF 4": ("clang-22", "-gdwarf-4"),
    "clang, 64-bit": ("clang-22", "-gdwarf-5", "-gdwarf64"),
    "clang, merged variables": ("clang-22", "-gdwarf-5", "-mllvm", "-global-merge-on-external"),
    "gcc, DWARF 5": ("gcc", "-gdwarf-5"),
    "gcc, DWARF 2": ("gcc", "-gdwarf-2", "-gstrict-dwarf"),
}


def build(
    directory: Path, compiler: str, *flags: str, language: str = "c", source: str = SOURCE
) -> Path:
    file = directory / f"program.{language}"
    file.write_text(source.replace("_Thread_local_", "__thread"))
    command = [compiler, "-x", {"c": "c", "cc": "c++"}[language], "-O1", *flags, file.name]
    subprocess.run([*command, "-o", "program", "-lstdc++"], cwd=directory, check=True)
    return directory / "program"


def fields(program: Path, name: str, size: int | None = None) -> list[DataField | None]:
    """Those of each byte of a variable."""
    found = Program.open(program)
    row = found.symbols.by_name(name)
    assert row is not None
    start = int(found.symbols.start[row])
    return fields_at(program, start, int(found.symbols.size[row]) if size is None else size)


def static_variables(program: Path) -> StaticVariables:
    return DebugInfo.open(Image.open(program)).static_variables()


def fields_at(program: Path, start: int, size: int) -> list[DataField | None]:
    number, known = static_variables(program).fields(
        np.arange(start, start + size, dtype=np.uint64)
    )
    return [known[at] if at >= 0 else None for at in number.tolist()]


@pytest.mark.parametrize("language", ["c", "cc"])
@pytest.mark.parametrize("flags", COMPILERS.values(), ids=COMPILERS)
def test_every_byte_is_in_the_field_that_a_plain_walk_finds(
    flags: tuple[str, ...], language: str, tmp_path: Path, tool: Tool
) -> None:
    compiler, *others = flags
    program = build(tmp_path, tool(compiler), *others, language=language)
    expected = plain_variables(program)
    assert len(expected) >= 6
    for address, (kind, size) in expected.items():
        wanted = [plain_field(kind, at) for at in range(size)]
        assert fields_at(program, address, size) == wanted
        assert address + size in expected or fields_at(program, address + size, 1) == [None]
    assert sorted(expected) == static_variables(program).address.tolist()
    told = {field.field for field in fields(program, "entries") if field}
    assert {"key", "cells[][].value", "cells[][].either", "at.y", "deep", "behind"} <= told
    assert f"cells[][].{PADDING}" in told


def plain_variables(program: Path) -> dict[int, tuple[Any, int]]:
    """Type and size of each variable whose location is an address, or one and a distance."""
    from elftools.elf.elffile import ELFFile

    dwarf = ELFFile(program.open("rb")).get_dwarf_info(relocate_dwarf_sections=False)
    found: dict[int, tuple[Any, int]] = {}
    for unit in dwarf.iter_CUs():
        for die in unit.iter_DIEs():
            location = die.attributes.get("DW_AT_location")
            if die.tag != "DW_TAG_variable" or not isinstance(location and location.value, list):
                continue
            address = plain_address(unit, dwarf, bytes(location.value))
            kind = plain_type(die)
            if address is not None and kind is not None and plain_size(kind) > 0:
                found.setdefault(address, (kind, plain_size(kind)))
    return found


def plain_address(unit: Any, dwarf: Any, location: bytes) -> int | None:
    if location[:1] == b"\x03":
        address, rest = int.from_bytes(location[1:9], "little"), location[9:]
    elif location[:1] == b"\xa1" and location[1] < 128:
        address, rest = dwarf.get_addr(unit, location[1]), location[2:]
    else:
        return None
    if not rest:
        return address
    return address + rest[1] if rest[0] == 0x23 and len(rest) == 2 and rest[1] < 128 else None


def plain_type(die: Any) -> Any:
    while "DW_AT_type" not in die.attributes:
        way = next((a for a in ("DW_AT_specification", "DW_AT_abstract_origin")
                    if a in die.attributes), None)  # fmt: skip
        if way is None:
            return None
        die = die.get_DIE_from_attribute(way)
    return die.get_DIE_from_attribute("DW_AT_type")


QUALIFIERS = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type")
POINTERS = {"DW_TAG_pointer_type": " *", "DW_TAG_reference_type": " &"}


def bare(kind: Any) -> Any:
    while kind is not None and kind.tag in QUALIFIERS:
        kind = plain_type(kind)
    return kind


def plain_size(kind: Any) -> int:
    kind = bare(kind)
    if "DW_AT_byte_size" in kind.attributes:
        return int(kind.attributes["DW_AT_byte_size"].value)
    if kind.tag in POINTERS:
        return 8
    assert kind.tag == "DW_TAG_array_type"
    size = plain_size(plain_type(kind))
    for dimension in kind.iter_children():
        stated = dimension.attributes
        size *= (
            stated["DW_AT_count"].value
            if "DW_AT_count" in stated
            else stated["DW_AT_upper_bound"].value + 1
        )
    return size


def plain_name(kind: Any) -> str:
    if kind is None:
        return "void"
    if "DW_AT_name" in kind.attributes:
        return str(kind.attributes["DW_AT_name"].value.decode())
    if kind.tag in POINTERS:
        return plain_name(plain_type(kind)) + POINTERS[kind.tag]
    return plain_name(plain_type(kind)) if kind.tag in QUALIFIERS else "(anonymous)"


def plain_field(kind: Any, offset: int) -> DataField:
    while bare(kind).tag == "DW_TAG_array_type":
        kind = plain_type(bare(kind))
    name, steps = plain_name(kind), plain_steps(kind, offset % plain_size(kind))
    return DataField(name, steps.removeprefix("."))


def plain_steps(kind: Any, offset: int) -> str:
    kind = bare(kind)
    if kind.tag == "DW_TAG_array_type":
        dimensions, element = len([*kind.iter_children()]), plain_type(kind)
        return "[]" * dimensions + plain_steps(element, offset % plain_size(element))
    if kind.tag not in ("DW_TAG_structure_type", "DW_TAG_class_type"):
        return ""
    held = f".{PADDING}"
    for child in kind.iter_children():
        place = plain_place(child.attributes)
        if place is None or not place <= offset < place + plain_size(plain_type(child)):
            continue
        is_named = child.tag == "DW_TAG_member" and "DW_AT_name" in child.attributes
        own = f".{child.attributes['DW_AT_name'].value.decode()}" if is_named else ""
        held = own + plain_steps(plain_type(child), offset - place)
    return held


def plain_place(stated: Any) -> int | None:
    if "DW_AT_data_bit_offset" in stated:
        return int(stated["DW_AT_data_bit_offset"].value) // 8
    place = stated.get("DW_AT_data_member_location")
    if place is None:
        return None
    return int(place.value[1]) if isinstance(place.value, list) else int(place.value)


@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("compiler", ["clang-22", "gcc"])
def test_split_debug_information_tells_the_same(
    compiler: str, version: str, tmp_path: Path, tool: Tool
) -> None:
    told = []
    for name, more in (("whole", ()), ("split", ("-gsplit-dwarf",))):
        (tmp_path / name).mkdir()
        program = build(tmp_path / name, tool(compiler), f"-gdwarf-{version}", *more)
        told.append([fields(program, each) for each in ("entries", "matrix", "origin")])
    assert told[0] == told[1]
    assert None not in told[1][0]


def test_types_in_units_of_their_own_are_found(tmp_path: Path, tool: Tool) -> None:
    told = []
    for more in ((), ("-fdebug-types-section",)):
        program = build(tmp_path, tool("clang++-22"), "-gdwarf-5", *more, language="cc")
        told.append([fields(program, each) for each in ("entries", "derived", "box", "shade")])
    assert told[0] == told[1]
    assert {field.field for field in told[1][1] if field} >= {"of_base", "of_other[]", "own"}


def test_what_dwz_moved_to_another_file_is_found(tmp_path: Path, tool: Tool) -> None:
    """Both programs have the types; what is left in one refers to the shared file."""
    programs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        programs.append(build(tmp_path / name, tool("gcc"), "-gdwarf-4"))
    before = fields(programs[0], "entries")
    shared = tmp_path / "one" / "shared.debug"
    command = [tool("dwz"), "-m", shared, "-M", "shared.debug", *programs]
    subprocess.run(command, check=True)
    assert shared.stat().st_size > 0
    assert fields(programs[0], "entries") == before


def test_a_package_tells_the_same(tmp_path: Path, tool: Tool) -> None:
    program = build(tmp_path, tool("clang-22"), "-gdwarf-5", "-gsplit-dwarf")
    before = fields(program, "entries")
    subprocess.run([tool("llvm-dwp-22"), "-e", program, "-o", f"{program}.dwp"], check=True)
    for file in tmp_path.glob("*.dwo"):
        file.unlink()
    assert fields(program, "entries") == before


def test_without_debug_information_of_types_nothing_is_known(tmp_path: Path, tool: Tool) -> None:
    lines = build(tmp_path, tool("clang-22"), "-g1")
    assert set(fields(lines, "entries")) == {None}
    bare_program = build(tmp_path, tool("clang-22"))
    assert set(fields(bare_program, "entries")) == {None}


def test_a_type_that_is_only_declared_has_no_size(tmp_path: Path, tool: Tool) -> None:
    source = "extern struct unknown *known; struct unknown *known; int main() { return !known; }"
    program = build(tmp_path, tool("clang-22"), "-g", source=source)
    assert set(fields(program, "known")) == {DataField("unknown *", "")}
