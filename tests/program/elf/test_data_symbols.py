"""Where data is, in ELF files that compilers made."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from builders.fixtures import Tool

from lbr2pgo.program.elf.data_symbols import data_sections, data_symbols
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import placed_addresses

SOURCE = """
int one[4] = {1}, zeroed[100];
const long constant[8] = {1};
extern int alias[4] __attribute__((alias("one")));
__thread int of_thread[64];
asm(".data; .globl outer, inner; .type outer,@object; .type inner,@object;"
    "outer: .zero 16; inner: .zero 16; .size inner, 16; .zero 32; .size outer, 64;");
int main(void) { return one[0] + zeroed[1] + constant[2] + of_thread[3]; }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Program:
    directory = tmp_path_factory.mktemp("data")
    (directory / "a.c").write_text(SOURCE)
    subprocess.run([tool("clang-22"), "-O1", "a.c", "-o", "a"], cwd=directory, check=True)
    return Program.open(directory / "a")


def found(program: Program, *addresses: int) -> list[str | None]:
    symbols = data_symbols(program.symbols)
    rows = symbols.containing(placed_addresses(np.array(addresses, np.uint64)))
    return [None if r < 0 else program.symbols.names[int(symbols.row[r])] for r in rows.tolist()]


def test_each_byte_of_an_object_is_its(program: Program) -> None:
    for name, size in (("zeroed", 400), ("constant", 64), ("inner", 16)):
        start = program.address_of(name)
        assert start is not None
        assert found(program, start - 1, start, start + size - 1, start + size)[1:3] == [name] * 2
        assert name not in found(program, start - 1, start + size)


def test_names_of_one_place_are_one_object(program: Program) -> None:
    start = program.address_of("alias")
    assert start == program.address_of("one")
    assert found(program, int(start or 0) + 15)[0] in ("one", "alias")
    symbols = data_symbols(program.symbols)
    assert (np.diff(symbols.start.astype(np.int64)) > 0).all()
    assert (symbols.end[:-1] <= symbols.start[1:]).all()


def test_an_object_ends_where_one_inside_it_begins(program: Program) -> None:
    outer = program.address_of("outer")
    assert outer is not None
    assert found(program, outer + 15, outer + 16, outer + 32) == ["outer", "inner", None]


def test_functions_are_no_data(program: Program) -> None:
    start = program.address_of("main")
    assert start is not None
    assert found(program, start) == [None]


def test_sections_that_are_loaded(program: Program) -> None:
    sections = data_sections(program.image)
    names = {".data", ".bss", ".rodata", ".text"}
    assert names <= set(sections.names)
    assert ".tbss" not in sections.names
    for name in sorted(names):
        section = program.image.section(name)
        assert section is not None
        ends = placed_addresses(np.array([section.address, section.end - 1], np.uint64))
        assert [sections.names[i] for i in sections.containing(ends).tolist()] == [name] * 2
