"""Names of functions where DWARF and symbols may differ."""

from __future__ import annotations

import pytest
from builders.recordings import STATIC

from lbr2pgo.profiles.llvm.probe_functions import (
    ProbedFunctions,
    function_names,
    probed_functions,
)
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program


@pytest.fixture(scope="module")
def program() -> Program:
    return Program.open(STATIC)


def around(program: Program, name: str) -> ProbedFunctions:
    """The functions around the one of a symbol."""
    row = program.symbols.by_name(name)
    assert row is not None
    start = program.symbols.start[[row]]
    return probed_functions(DebugInfo.open(program.image), program.symbols, start)


def test_what_only_symbols_know_has_all_of_their_names(program: Program) -> None:
    found = around(program, "malloc")
    assert found.functions.names == ("__malloc",)
    assert (found.is_known.tolist(), found.is_renamed.tolist()) == ([False], [True])
    assert sorted(found.other_names) == ["__libc_malloc", "malloc"]
    assert found.is_odd.tolist() == [True]


def test_what_dwarf_and_symbols_call_alike_is_not_odd(program: Program) -> None:
    found = around(program, "walk")
    assert "walk" in found.functions.names
    assert not found.is_odd.any()
    assert found.other_names == ()


def test_all_functions_are_those_of_dwarf_and_of_symbols(program: Program) -> None:
    names = function_names(DebugInfo.open(program.image), program.symbols)
    assert {"walk", "main", "malloc", "__malloc"} <= names
    assert "" not in names
