"""Functions that never ran, of real programs: what their sources say."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.fixtures import Run, Tool

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.llvm import extbinary
from lbr2pgo.profiles.registry import output
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software

LIBRARY = """\
#define ALONE __attribute__((noinline, visibility("default")))
volatile int sink;
ALONE int deepest(int n) { sink = n; return n - 2; }
ALONE int deeper(int n) { sink = n; return deepest(n) * 3; }
ALONE int deep(int n) { sink = n; return deeper(n) - 3; }
ALONE int seldom(int n) { sink = n; return deep(n) * 5; }
ALONE int last(int n) { sink = n; return n * 7; }
ALONE int pointed(int n) { sink = n; return n + 11; }
ALONE int unused(int n) { sink = n; return n ^ 13; }
int (*pointer)(int) = pointed;
ALONE int hot(int n) {
    if (sink > 1000000)
        return seldom(n) + pointer(n) + 1;
    if (sink > 2000000)
        return last(n);
    sink = n & 1023;
    return n + 1;
}
"""
MAIN = """\
int hot(int);
int main(void) {
    int sum = 0;
    for (int i = 0; i < 20000; i++)
        sum = hot(sum);
    return sum == 20000 ? 0 : 1;
}
"""
NEVER_REACHED = {"deeper", "deepest", "pointed", "unused"}


@pytest.mark.parametrize("flags", ["-g -fdebug-info-for-profiling", "-fpseudo-probe-for-profiling"])
@pytest.mark.parametrize("is_library", [False, True], ids=["program", "library"])
def test_what_ran_and_what_it_leads_to_in_two_calls_is_not_listed(
    is_library: bool, flags: str, tmp_path: Path, tool: Tool, run: Run
) -> None:
    """A library calls its own functions by its linkage table: others may replace them."""
    tool("qemu-x86_64")
    (tmp_path / "library.c").write_text(LIBRARY)
    (tmp_path / "main.c").write_text(MAIN)
    program, library = tmp_path / "program", tmp_path / "library.so"
    clang = tool("clang-22"), "-O2", *flags.split()
    built = tmp_path / "library.c"
    if is_library:
        run(*clang, "-fPIC", "-shared", built, "-o", library)
        built = library
    run(*clang, tmp_path / "main.c", built, "-o", program)
    recording = tmp_path / "perf.data"
    asked = RecordOptions(command=(str(program),), period=101, emulate=True, output=recording)
    record_software(asked)

    listed = {}
    for name in ("symbol_list", "cold_symbols"):
        out = output("llvm", tmp_path / name, form="extbinary", **{name: True})
        binary = library if is_library else program
        convert(ConvertOptions((recording,), binary, outputs=(out,)))
        listed[name] = extbinary.read(tmp_path / name).symbols or frozenset()
    ours = NEVER_REACHED | {"deep", "seldom", "last", "hot"}
    assert listed["symbol_list"] & ours == ours
    assert listed["cold_symbols"] & ours == NEVER_REACHED
    assert "main" not in listed["cold_symbols"]
