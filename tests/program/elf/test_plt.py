"""Entries of linkage tables, named as objdump names them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.recordings import TESTBINS

from lbr2pgo.program.code.named_functions import find_function
from lbr2pgo.program.program import Program

_SECTIONS = (".plt", ".plt.sec", ".plt.got", ".iplt")
_SOURCE = """
#include <stdlib.h>
#include <string.h>
int main(int n, char **v) {
  void (*volatile leave)(int) = exit;
  if (memcmp(v[0], "x", n)) leave(strlen(v[0]));
  return atexit(abort);
}
"""


def test_stubs_are_named_as_objdump_names_them(path_of_program: Path, tool, run) -> None:
    program = Program.open(path_of_program)
    objdump = tool("objdump" if program.image.machine == "x86-64" else "llvm-objdump-22")
    words = (f"--section={name}" for name in _SECTIONS)
    said = run(objdump, "-d", *words, path_of_program).stdout
    expected = {int(at, 16): name for at, name in re.findall(r"(?m)^([0-9a-f]+) <(.*@plt)>:", said)}
    assert expected
    stubs = program.regions.stubs
    assert {at: name for at, name in stubs.items() if name.endswith("@plt")} == expected


SHAPES = [f"{machine}/shapes.pie" for machine in ("x86-64", "aarch64", "riscv64")]


@pytest.fixture(params=[*SHAPES, "ibt", "lazy", "bti"])
def path_of_program(request, tmp_path: Path, tool, run: Callable[..., object]) -> Path:
    """A committed program, or one that has its stubs in other sections."""
    if "/" in request.param:
        return TESTBINS / request.param
    words = {
        "ibt": ("clang-22", "-fuse-ld=lld-22", "-fcf-protection=full", "-Wl,-z,force-ibt"),
        "lazy": ("gcc", "-Wl,-z,lazy"),
        "bti": ("aarch64-linux-gnu-gcc", "-mbranch-protection=bti", "-Wl,-z,force-bti"),
    }[request.param]
    source, path = tmp_path / "main.c", tmp_path / "main"
    source.write_text(_SOURCE)
    run(tool(words[0]), *words[1:], "-O1", "-w", source, "-o", path)
    return path


def test_where_the_loader_calls_a_function_the_stub_has_its_name() -> None:
    stubs = Program.open(TESTBINS / "x86-64" / "interp.static").regions.stubs
    assert stubs[0x2A06E0] == "memcmp@plt"


def test_a_symbol_without_a_size_does_not_reach_over_the_stubs_behind_it() -> None:
    regions = Program.open(TESTBINS / "x86-64" / "interp.static").regions
    row = regions.by_name("strcmp")
    assert row is not None
    assert (regions.start[row], regions.end[row]) == (0x2A0630, 0x2A0640)
    assert regions.label(row + 1) == "strlen_ifunc@plt"


def test_a_stub_is_found_by_its_name() -> None:
    program = Program.open(TESTBINS / "x86-64" / "shapes.pie")
    row = find_function(program, "memmove@plt")
    assert (program.regions.start[row], program.regions.end[row]) == (0x36D0, 0x36E0)
    assert program.regions.is_stub[row]
    assert not program.regions.is_stub[find_function(program, "main")]
