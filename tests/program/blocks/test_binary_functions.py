from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.bolt import C_SOURCES, build
from builders.fixtures import Tool

from lbr2pgo.program.blocks.binary_functions import BinaryFunctions, discover
from lbr2pgo.program.program import Program

Link = Callable[..., BinaryFunctions]


@pytest.fixture
def assemble(tmp_path: Path, tool: Tool) -> Link:
    """Functions of a program linked from assembly, one object file a source."""

    def link(*sources: str, flags: tuple[str, ...] = ()) -> BinaryFunctions:
        objects = []
        for i, source in enumerate(sources):
            text, target = tmp_path / f"s{i}.s", tmp_path / f"s{i}.o"
            text.write_text(f'.file "s{i}.c"\n.text\n{source}\n')
            subprocess.run([tool("clang-22"), "-c", text, "-o", target], check=True)
            objects.append(target)
        program = tmp_path / "program"
        subprocess.run([tool("ld.lld-22"), *flags, *objects, "-o", program], check=True)
        opened = Program.open(program)
        return discover(opened.image, opened.symbols)

    return link


def function(name: str, body: str = "ret", scope: str = ".globl") -> str:
    return f"{scope} {name}\n.type {name},@function\n{name}:\n{body}\n.size {name},.-{name}\n"


def local(name: str, body: str = "ret") -> str:
    return function(name, body, ".local")


class TestNames:
    def test_local_names_are_numbered_by_address(self, assemble: Link) -> None:
        found = assemble(function("_start") + local("same"), local("same"))
        assert found.names == ("_start", "same/1", "same/2")

    def test_data_of_the_same_name_takes_a_number_too(self, assemble: Link) -> None:
        data = (
            '.section .rodata,"a"\n.local same\n.type same,@object\nsame: .long 1\n.size same,4\n'
        )
        found = assemble(function("_start") + local("same"), data)
        assert found.names == ("_start", "same/2")

    def test_of_aliases_the_local_one_comes_first(self, assemble: Link) -> None:
        found = assemble(function("_start") + function("shown") + ".set hidden, shown\n")
        assert found.names == ("_start", "hidden/1")

    def test_entries_of_the_linkage_table(self, tmp_path: Path, tool: Tool) -> None:
        library = build(
            tmp_path / "x.so",
            C_SOURCES,
            tool("clang-22"),
            "-O2",
            "-shared",
            "-fPIC",
            "-fuse-ld=lld",
        )
        program = Program.open(library)
        found = discover(program.image, program.symbols)
        names = [n for n, is_pseudo in zip(found.names, found.is_pseudo, strict=True) if is_pseudo]
        assert {"__BOLT_PSEUDO_.plt", "abort@PLT", "aliased@PLT"} <= set(names)
        assert "alias@PLT" not in names


class TestBorders:
    def test_padding_belongs_to_the_function_before_it(self, assemble: Link) -> None:
        found = assemble(function("_start", "nop\nret") + ".p2align 4\n" + function("next"))
        start = int(found.start[0])
        assert (int(found.size[0]), int(found.max_size[0])) == (2, 16)
        places = np.array([start - 1, start + 1, start + 15, start + 16], np.uint64)
        assert found.containing(places).tolist() == [-1, 0, 0, 1]

    def test_a_symbol_without_a_size_reaches_to_the_next(self, assemble: Link) -> None:
        found = assemble(".globl _start\n_start:\nnop\nnop\nret\n" + function("next"))
        assert found.names == ("_start", "next")
        assert int(found.size[0]) == 3

    def test_symbols_inside_are_secondary_entries(self, assemble: Link) -> None:
        body = "nop\n.globl inner\ninner:\nnop\n.type typed,@function\ntyped:\nret"
        found = assemble(function("_start", body))
        assert found.names == ("_start",)
        assert (found.secondary_entries - found.start[0]).tolist() == [1, 2]

    def test_a_sized_function_inside_is_an_entry_and_no_border(self, assemble: Link) -> None:
        body = "nop\n.type inner,@function\ninner: ret\n.size inner,1\nnop"
        found = assemble(function("_start", body))
        assert found.names == ("_start",)
        assert (found.secondary_entries - found.start[0]).tolist() == [1]
        assert not found.is_contradicted[0]

    def test_functions_that_only_the_unwinder_knows(self, assemble: Link) -> None:
        hidden = ".cfi_startproc\nnop\nret\n.cfi_endproc\n"
        found = assemble(function("_start") + ".p2align 4\n" + hidden)
        start = int(found.start[0]) + 16
        assert found.names == ("_start", f"__BOLT_FDE_FUNCat{start:x}")
        assert int(found.size[1]) == 2

    def test_a_size_that_the_unwinder_contradicts_is_the_larger(self, assemble: Link) -> None:
        source = (
            ".globl _start\n.type _start,@function\n_start:\n.cfi_startproc\nnop\nnop\nret\n"
            ".cfi_endproc\n.size _start,1\n"
        )
        assert assemble(source).size.tolist() == [3]

    def test_a_start_inside_an_unwind_entry_is_contradicted(self, assemble: Link) -> None:
        later = function("f", ".cfi_startproc\nret\n.cfi_endproc")
        found = assemble(".cfi_startproc\nnop\n" + function("_start") + ".cfi_endproc\n" + later)
        contradicted = dict(zip(found.names, found.is_contradicted.tolist(), strict=True))
        assert contradicted["_start"]
        assert not contradicted["f"]


def parents(found: BinaryFunctions) -> dict[str, str]:
    return {found.name(row): found.name(parent) for row, parent in enumerate(found.parent.tolist())}


class TestParents:
    def test_a_fragment_has_the_function_that_it_was_split_off_from(self, assemble: Link) -> None:
        found = assemble(function("_start") + local("f") + local("f.cold") + local("g.cold.1"))
        assert parents(found) == {
            "_start": "_start", "f/1": "f/1", "f.cold/1": "f/1", "g.cold.1/1": "g.cold.1/1",
        }  # fmt: skip

    def test_of_two_parents_the_one_of_the_same_file(self, assemble: Link) -> None:
        found = assemble(
            function("_start") + local("f"), local("f.cold"), local("f") + local("f.cold")
        )
        assert parents(found)["f.cold/2"] == "f/2"

    def test_of_two_parents_in_other_files_the_nearest(self, assemble: Link) -> None:
        far = local("f") + ".zero 64, 0x90\n"
        found = assemble(function("_start") + far, local("f"), local("f.cold"))
        assert parents(found)["f.cold/1"] == "f/2"


def test_without_functions_nothing_is_found(assemble: Link) -> None:
    found = assemble(function("_start"), flags=("--strip-all",))
    assert len(found) == 0
    assert found.containing(np.array([1], np.uint64)).tolist() == [-1]
