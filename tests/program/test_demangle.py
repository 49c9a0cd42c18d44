from __future__ import annotations

import time

import pytest
from builders.recordings import TESTBINS

from lbr2pgo.program import demangle
from lbr2pgo.program.demangle import demangled, demangled_text
from lbr2pgo.program.program import Program


def test_names_of_a_program_read_as_cxxfilt_writes_them(tool, run) -> None:
    program = Program.open(TESTBINS / "x86-64" / "shapes.static")
    names = [name for name in program.symbols.names if name and "\n" not in name]
    shown = run(tool("c++filt"), "--no-verbose", input="\n".join(names)).stdout.splitlines()
    assert [demangled(name) for name in names] == shown
    assert sum(name != text for name, text in zip(names, shown, strict=True)) > 100


def test_without_the_usual_runtime_names_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "_ZN5shape4areaERKSt6vectorIdSaIdEE"
    usual = demangled(name)
    monkeypatch.setattr(demangle, "_RUNTIME", "libnone.so")
    demangle._demangler.cache_clear()
    demangled.cache_clear()
    try:
        assert demangle._demangler() is demangle._by_lief
        assert demangled(name) == usual != name
    finally:
        demangle._demangler.cache_clear()


@pytest.mark.parametrize(
    "name", ["", "main", "_Z", "_Z3fo", "_start", "[outside]", "x_Z3foov", "_Z3foov\x1b", "_Z1f\0v"]
)
def test_what_is_no_linkage_name_stays(name: str) -> None:
    assert demangled(name) == name


def bomb(levels: int) -> str:
    """A name whose every part holds the part before it twice."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    parts = "".join(f"S0_IS{digits[i]}_S{digits[i]}_E" for i in range(1, levels + 1))
    return f"_Z1f1a1tIS_S_E{parts}"


def test_a_name_that_would_fill_the_memory_stays() -> None:
    assert demangled(bomb(4)).startswith("f(a, t<a, a>, t<t<a, a>, t<a, a> >")
    start = time.process_time()
    assert demangled(bomb(30)) == bomb(30)
    assert demangled("_Z1f" + "P" * 10**6 + "i") == "_Z1f" + "P" * 10**6 + "i"
    assert time.process_time() - start < 1


def test_every_linkage_name_of_a_text() -> None:
    assert (
        demangled_text("main;_ZN1a1bEv;_Z1fi+0x12 [outside]") == "main;a::b();f(int)+0x12 [outside]"
    )
