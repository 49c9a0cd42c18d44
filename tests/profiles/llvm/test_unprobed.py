"""Programs that are recorded: what of them lacks probes, and what is advised."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import ROOT, Tool

from lbr2pgo.conversion import Conversion, ConvertOptions, convert
from lbr2pgo.model import waterfall
from lbr2pgo.profiles.llvm.lacks import COMPILE_WITH_PROBES, Lack
from lbr2pgo.profiles.llvm.unprobed import lacks
from lbr2pgo.profiles.registry import output, steps, waterfall_rows
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.support.addresses import image_array

INTERP = ROOT / "testbins/src/interp.c"
FLAGS = "-O2 -fdebug-info-for-profiling"
PROBED = f"{FLAGS} -fpseudo-probe-for-profiling"
MAIN = """
long scan(long n, long (*visit)(long));
long fill(long n);
__attribute__((noinline)) static long twice(long n) {
  for (int i = 0; i < 9; i++)
    n += n & 5 ? 3 : i;
  return n;
}
int main(void) { return (scan(20000, twice) + fill(2000)) == 7; }
"""
SCAN = """
long scan(long n, long (*visit)(long)) {
  long s = 0;
  for (long i = 0; i < n; i++)
    s += visit(i) & 3 ? 1 : i & 7;
  return s + 1;
}
long fill(long n) {
  long s = n;
  while (n--)
    s ^= s & 3 ? n : s << 1;
  return s;
}
"""
SORT = """
#include <stdlib.h>
static int values[2000];
static int order(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return x < y ? -1 : x > y;
}
int main(void) {
  for (int i = 0; i < 2000; i++)
    values[i] = i * 7919 % 2003;
  qsort(values, 2000, sizeof(int), order);
  return values[0];
}
"""


def converted(program: Path, where: Path, *words: str, contexts: str = "nested") -> Conversion:
    """The recorded program's profile; the waterfall must add up."""
    recording = where / "data"
    record_software(
        RecordOptions(
            output=recording, command=(str(program), *words), period=101, emulate=True,
            call_graph=True,
        )
    )  # fmt: skip
    made = (output("llvm", where / "out", contexts=contexts),)
    done = convert(ConvertOptions((recording,), program, outputs=made))
    waterfall.check(done.tallies, steps())
    return done


def cures(done: Conversion) -> set[str]:
    """All that the waterfall advises."""
    return {reason.cure for row in waterfall_rows(done.tallies) for reason, _ in row.losses}


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Path:
    """A program of two files, of which one has no probes: two functions, and calls from these."""
    where = tmp_path_factory.mktemp("half")
    for name, text, flags in ("main", MAIN, PROBED), ("scan", SCAN, FLAGS):
        (where / f"{name}.c").write_text(text)
        words = (*flags.split(), "-g", "-c", f"{name}.c", "-o", f"{name}.o")
        subprocess.run([tool("clang-22"), *words], cwd=where, check=True)
    program = where / "half"
    objects = (where / "main.o", where / "scan.o")
    subprocess.run([tool("clang-22"), "-static", *objects, "-o", program], check=True)
    return program


@pytest.mark.parametrize("contexts", ["nested", "off"])
@pytest.mark.parametrize("link", ["-static", "-pie"])
def test_where_all_code_of_its_own_has_probes_none_is_to_be_compiled(
    link: str, contexts: str, built: Callable[..., Path], tool: Tool, tmp_path: Path
) -> None:
    tool("qemu-x86_64")
    program = built(f"clang-22 {PROBED} {link}", INTERP)
    done = converted(program, tmp_path, "2", contexts=contexts)
    assert COMPILE_WITH_PROBES not in cures(done)
    assert not any("without pseudo probes" in note for note in done.notes)
    if contexts == "nested":
        assert done.tallies["context_runs"] > 100_000
        # What the C library calls within itself, as `atoi` does.
        assert done.tallies["context_runs"] - done.tallies["context_callers"] < 100
        assert done.tallies["context_located/no_probe"] > 0


@pytest.mark.parametrize("contexts", ["nested", "off"])
def test_a_file_without_probes_is_named(
    contexts: str, half: Path, tool: Tool, tmp_path: Path
) -> None:
    tool("qemu-x86_64")
    done = converted(half, tmp_path, contexts=contexts)
    assert COMPILE_WITH_PROBES in cures(done)
    assert (
        "2 functions of files compiled without pseudo probes ran, hottest first: scan (scan.c), "
        "fill (scan.c)"
    ) in done.notes
    if contexts == "nested":
        assert done.tallies["context_callers/no_caller_probes"] > 1000
        assert done.tallies["context_callers/no_caller_source"] == 0


def test_callers_of_the_c_library_are_lost_but_for_its_start(
    compiled: Callable[..., Path], tool: Tool, tmp_path: Path
) -> None:
    tool("qemu-x86_64")
    program = compiled("clang-22", SORT, "-g", *PROBED.split(), "-static")
    done = converted(program, tmp_path)
    lost = waterfall.losses_of(done.tallies, "context_callers")
    assert lost.keys() == {"no_caller_source"}
    assert lost["no_caller_source"] > 1000
    assert done.tallies["context_callers"] > 1000
    assert COMPILE_WITH_PROBES not in cures(done)


def test_start_code_is_not_told_from_ones_own_without_debug_information(
    compiled: Callable[..., Path], tool: Tool, tmp_path: Path
) -> None:
    tool("qemu-x86_64")
    flags = ("-O2", "-fpseudo-probe-for-profiling", "-static")
    program = compiled("clang-22", INTERP.read_text(), *flags)
    done = converted(program, tmp_path, "2")
    assert done.tallies["context_callers"] == 0
    assert done.tallies["context_located/no_probe"] > 0


def test_an_assembler_makes_no_probes(half: Path, tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "hand.s").write_text(".globl by_hand\nby_hand:\n  nop\n  ret\n")
    for name, text in ("hand.c", ""), ("main.c", "void by_hand(void);int main(void){by_hand();}"):
        (tmp_path / name).write_text(text)
    words = ("-g", *PROBED.split(), "hand.s", "main.c", "-o", "program")
    subprocess.run([tool("clang-22"), *words], cwd=tmp_path, check=True)
    asked = {
        tmp_path / "program": {"by_hand": Lack.SOURCE, "_start": Lack.SOURCE, "main": Lack.PLACE},
        half: {"scan": Lack.PROBES, "twice": Lack.PLACE, "qsort": Lack.SOURCE},
    }
    for path, expected in asked.items():
        program = Program.open(path)
        at = {name: program.address_of(name) for name in expected}
        known = {name: address for name, address in at.items() if address is not None}
        found = lacks(
            image_array(known.values()), np.zeros(len(known), np.bool_),
            DebugInfo.open(program.image), program.probes,
        )  # fmt: skip
        assert dict(zip(known, found.tolist(), strict=True)) == {n: expected[n] for n in known}
        assert len(known) > 1
