"""Damage of one function's DIEs or of one unit's lines spares what stands before it, and is told.

Entries of `.debug_info` have no length but by what they hold: behind damage of their structure,
nothing more can be read of the unit. All other units stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from builders.fixtures import ROOT, TESTBINS, Run, Tool, lbr2pgo
from builders.outputs import held
from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.profiles.llvm.sample_profile import FunctionSamples, SampleProfile
from lbr2pgo.profiles.registry import output

FLAGS = ("-O2", "-g", "-fuse-ld=lld")
CUT = "debug information: units cut off by"
NO_DECLARATION = b"\x7e"


@dataclass(frozen=True)
class Build:
    """A program, its recording, and its functions with code: (unit, name) in the file's order."""

    program: Path
    recording: Path
    functions: dict[tuple[int, str], DIE]
    info: int
    line: tuple[int, int]
    line_programs: list[int]
    """Where those of the units start in `.debug_line`."""


def build(program: Path, run: Run, *compile: object) -> Build:
    recording = program.with_suffix(".data")
    run(*compile, "-o", program)
    # The programs end with a checksum.
    run(*lbr2pgo("record", "--emulate", "-c", 97, "-o", recording, "--", program, 3), check=False)
    elf = ELFFile(program.open("rb"))
    dwarf = elf.get_dwarf_info()
    functions, programs = {}, []
    for unit, cu in enumerate(dwarf.iter_CUs()):
        programs.append(cu.get_top_DIE().attributes["DW_AT_stmt_list"].value)
        for die in cu.iter_DIEs():
            if die.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in die.attributes:
                functions[unit, name_of(die)] = die
    line = elf.get_section_by_name(".debug_line")
    info = elf.get_section_by_name(".debug_info")["sh_offset"]
    bounds = line["sh_offset"], line["sh_size"]
    return Build(program, recording, functions, info, bounds, programs)


def name_of(die: DIE) -> str:
    if "DW_AT_abstract_origin" in die.attributes:
        die = die.get_DIE_from_attribute("DW_AT_abstract_origin")
    return str(die.attributes["DW_AT_name"].value.decode())


@pytest.fixture(scope="module")
def one_unit(tmp_path_factory: pytest.TempPathFactory, tool: Tool, run: Run) -> Build:
    where = tmp_path_factory.mktemp("one") / "app"
    return build(where, run, tool("clang-22"), *FLAGS, TESTBINS / "src/interp.c")


@pytest.fixture(scope="module")
def two_units(tmp_path_factory: pytest.TempPathFactory, tool: Tool, run: Run) -> Build:
    where = tmp_path_factory.mktemp("two") / "app"
    sources = (ROOT / f"tests/programs/same_names_{part}.c" for part in ("main", "other"))
    return build(where, run, tool("clang-22"), "-O1", *FLAGS[1:], *sources)


Patch = tuple[int, bytes]
"""What to write, and where in `.debug_info`."""


def code_not_declared(die: DIE) -> Patch:
    return die.offset, NO_DECLARATION


def tree_that_ends(die: DIE) -> Patch:
    """A null entry closes what is around the function: the unit."""
    return die.offset, b"\0"


def inlined_not_declared(die: DIE) -> Patch:
    return next(die.iter_children()).offset, NO_DECLARATION


def zeros(die: DIE) -> Patch:
    return die.offset, bytes(die.size)


def ones(die: DIE) -> Patch:
    return die.offset, b"\xff" * die.size


STRUCTURE = (code_not_declared, tree_that_ends, inlined_not_declared, zeros, ones)


def no_such_address(die: DIE) -> Patch:
    return die.attributes["DW_AT_low_pc"].offset, b"\x7e"


def no_size(die: DIE) -> Patch:
    return die.attributes["DW_AT_high_pc"].offset, bytes(4)


VALUES = (no_such_address, no_size)
"""After which what is behind can be read."""


def converted(
    build: Build, folder: Path, *patches: tuple[int, bytes]
) -> tuple[dict[str, FunctionSamples], Conversion]:
    """Rows of each function by lines, of the program with these bytes at these places."""
    data, path = bytearray(build.program.read_bytes()), folder / f"app{len(patches)}"
    for at, patch in patches:
        data[at : at + len(patch)] = patch
    path.write_bytes(data)
    profile = path.with_suffix(".prof")
    made = (output("llvm", profile, contexts="off"),)
    done = convert(ConvertOptions((build.recording,), path, outputs=made))
    found = held(profile)
    assert isinstance(found, SampleProfile)
    return dict(found.functions), done


def rows(function: FunctionSamples, around: object = ()) -> Iterator[tuple[object, int]]:
    """Counts of lines, with those inlined."""
    for line, count in function.body.items():
        yield (around, line), count
    for line, inlined in function.callsites.items():
        for name, callee in inlined.items():
            yield from rows(callee, (around, line, name))


def calls(function: FunctionSamples, around: object = ()) -> Iterator[object]:
    """Lines that call: they count calls, too, but none of what has lost its name."""
    for line in function.call_targets:
        yield around, line
    for line, inlined in function.callsites.items():
        for name, callee in inlined.items():
            yield from calls(callee, (around, line, name))


def same_rows(found: FunctionSamples, kept: FunctionSamples) -> bool:
    some, wanted, calling = dict(rows(found)), dict(rows(kept)), set(calls(kept))
    assert wanted.keys() - calling
    return some.keys() | calling == wanted.keys() | calling and all(
        some[at] == count for at, count in wanted.items() if at not in calling
    )


def test_the_programs_are_what_they_should_be(one_unit: Build, two_units: Build) -> None:
    assert len(one_unit.functions) == 5
    assert {unit for unit, _ in one_unit.functions} == {0}
    names = ["main", "leaf", "other", "leaf"]
    assert list(two_units.functions) == [*zip((0, 0, 1, 1), names, strict=True)]


@pytest.mark.parametrize("name", ["run", "next_token", "compile_expression"])
@pytest.mark.parametrize("damage", STRUCTURE)
def test_functions_before_it_keep_their_rows(
    damage: Callable[[DIE], Patch], name: str, one_unit: Build, tmp_path: Path
) -> None:
    die = one_unit.functions[0, name]
    kept, before = converted(one_unit, tmp_path)
    at, patch = damage(die)
    found, after = converted(one_unit, tmp_path, (one_unit.info + at, patch))
    spared = [n for (_, n), other in one_unit.functions.items() if other.offset < die.offset]
    assert spared[0] == "main"
    # What was inlined into main, its own tree tells; the names of that may stand behind.
    for other in set(spared[1:]) - {name}:
        assert same_rows(found[other], kept[other])
    assert CUT not in "\n".join(before.notes)
    assert CUT in "\n".join(after.notes)


@pytest.mark.parametrize("name", ["main", "run", "next_token", "compile_expression", "walk"])
@pytest.mark.parametrize("damage", VALUES)
def test_a_wrong_value_loses_one_function(
    damage: Callable[[DIE], Patch], name: str, one_unit: Build, tmp_path: Path
) -> None:
    kept, before = converted(one_unit, tmp_path)
    at, patch = damage(one_unit.functions[0, name])
    found, after = converted(one_unit, tmp_path, (one_unit.info + at, patch))
    for other in kept.keys() - {name}:
        assert same_rows(found[other], kept[other])
    assert found.get(name) != kept[name]
    lost = {key for key, count in after.tallies.items() if count > before.tallies.get(key, 0)}
    assert any("/" in key for key in lost), lost


@pytest.mark.parametrize(("unit", "name"), [(0, "leaf"), (1, "other"), (1, "leaf")])
@pytest.mark.parametrize("damage", STRUCTURE)
def test_other_units_keep_their_rows(
    damage: Callable[[DIE], Patch], unit: int, name: str, two_units: Build, tmp_path: Path
) -> None:
    die = two_units.functions[unit, name]
    if damage is inlined_not_declared and not die.has_children:
        pytest.skip("nothing is in it")
    at, patch = damage(die)
    kept, _ = converted(two_units, tmp_path)
    found, after = converted(two_units, tmp_path, (two_units.info + at, patch))
    other = ("other", "main")[unit]
    assert same_rows(found[other], kept[other])
    assert CUT in "\n".join(after.notes)


@pytest.mark.parametrize("unit", [0, 1])
def test_other_units_keep_their_rows_where_lines_are_damaged(
    unit: int, two_units: Build, tmp_path: Path
) -> None:
    start, size = two_units.line
    bounds = [*two_units.line_programs, size]
    middle = (bounds[unit] + 2 * bounds[unit + 1]) // 3
    patch = start + middle, b"\0" * (bounds[unit + 1] - middle)
    kept, _ = converted(two_units, tmp_path)
    found, after = converted(two_units, tmp_path, patch)
    lost, other = ("main", "other")[:: 1 - 2 * unit]
    assert same_rows(found[other], kept[other])
    assert found.get(lost) != kept[lost]
    assert "debug information: line tables cut off by damage: 1" in after.notes
