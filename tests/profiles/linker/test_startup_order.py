"""Orders for a start, with the linker that reads them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from builders.fixtures import Run, Tool

import lbr2pgo
from lbr2pgo.program.program import Program

SOURCE = """
__attribute__((noinline)) int often(int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s = s * 31 + (s >> 3 & 1 ? i : n);
  return s;
}
__attribute__((noinline)) int last(int n) { return n & 4 ? n + 3 : n - 1; }
__attribute__((noinline)) int never(int n) { return n & 4 ? n + 5 : n - 2; }
__attribute__((noinline)) int second(int n) { return n & 4 ? n + 7 : n - 3; }
__attribute__((noinline)) int first(int n) { return n & 4 ? n + 9 : n - 4; }
int main(int argc, char **argv) {
  int s = first(argc) + second(argc) + often(100 * 1000) + last(argc);
  return argc > 5 ? never(s) : s == 77;
}
"""


@pytest.fixture
def built(tmp_path: Path, tool: Tool, run: Run) -> tuple[Path, Path]:
    """The program, and a recording of its start."""
    tool("qemu-x86_64")
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text(SOURCE)
    run(tool("clang-22"), "-O1", "-ffunction-sections", "-fuse-ld=lld", source, "-o", program)
    recording = tmp_path / "perf.data"
    lbr2pgo.record([str(program)], output=recording, startup=20)
    return program, recording


def test_the_linker_puts_functions_as_they_first_ran(
    built: tuple[Path, Path], tmp_path: Path, tool: Tool, run: Run
) -> None:
    program, recording = built
    order, linked = tmp_path / "order", tmp_path / "q"
    lbr2pgo.convert(recording, program, startup_order=order)
    flags = ["-O1", "-ffunction-sections", "-fuse-ld=lld"]
    linker = f"-Wl,--symbol-ordering-file={order},--no-warn-symbol-ordering"
    run(tool("clang-22"), *flags, linker, program.with_suffix(".c"), "-o", linked)
    opened = Program.open(linked)
    places = {
        name: opened.address_of(name) for name in ("often", "main", "first", "second", "last")
    }
    assert sorted(places, key=places.__getitem__) == ["often", "main", "first", "second", "last"]


def test_only_what_ran_in_time_is_early(built: tuple[Path, Path], tmp_path: Path) -> None:
    program, recording = built
    orders = []
    for within in (0, 60_000):
        order = tmp_path / f"{within}"
        made = lbr2pgo.convert(recording, program, startup_order=order, startup_within=within)
        orders.append((order.read_text().splitlines(), made.tallies["functions_early"]))
    (late, at_once), (early, all_of_them) = orders
    assert at_once < all_of_them
    assert set(late) == set(early)
    assert early.index("first") < early.index("second") < early.index("last")


def test_a_stale_order_is_told(built: tuple[Path, Path], tmp_path: Path) -> None:
    program, recording = built
    order = tmp_path / "order"
    lbr2pgo.convert(recording, program, startup_order=order)
    order.write_text(order.read_text().replace("second", "gone"))
    stale = lbr2pgo.check(order, program).quality.stale
    assert stale is not None
    assert 0 < stale.share < 0.5
    assert stale.missing == ("gone",)


NAMES = [f"f{number}" for number in range(60)]
TWO_WAYS = "\n".join((
    "#include <stdlib.h>",
    *(
        f"__attribute__((noinline)) int {name}(int x) {{\n"
        '  __asm__ volatile(".rept 200; nop; .endr"); return x & 8 ? x : -x; }'
        for name in NAMES
    ),
    f"static int (*const all[])(int) = {{{', '.join(NAMES)}}};",
    "int main(int argc, char **argv) {",
    "  int s = argc;",
    "  for (int i = atoi(argv[1]); i < 60; i += 2) s += all[i](s);",
    "  return s == 7;",
    "}",
))  # fmt: skip
"""Each of two workloads wants every other function."""


def test_functions_of_one_workload_stand_together(tmp_path: Path, tool: Tool, run: Run) -> None:
    tool("qemu-x86_64")
    source, program, order = tmp_path / "p.c", tmp_path / "p", tmp_path / "order"
    source.write_text(TWO_WAYS)
    run(tool("gcc"), "-O1", source, "-o", program)
    recordings = [tmp_path / f"{way}.data" for way in (0, 1)]
    for way, recording in enumerate(recordings):
        lbr2pgo.record([str(program), str(way)], output=recording, startup=20)
    lbr2pgo.convert(recordings, program, startup_order=order, startup_weights=[1, 1])
    names = [n for n in order.read_text().splitlines() if n[0] == "f" and n[1:].isdecimal()]
    turns = "".join(str(int(name[1:]) % 2) for name in names)
    assert len(turns) == 60
    assert turns in ("0" * 30 + "1" * 30, "1" * 30 + "0" * 30)
    words = ("--startup-weights", "1,1,1")
    done = run(
        sys.executable, "-m", "lbr2pgo", "convert", *recordings, "--binary", program,
        "--startup-order", order, *words, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "3 weights can't be those of 2 recordings" in done.stderr
    assert "Give one for each, in their order: 3,1." in done.stderr


def test_bolt_puts_functions_in_the_same_order(
    built: tuple[Path, Path], tmp_path: Path, tool: Tool, run: Run
) -> None:
    program, recording = built
    order, relocatable, moved = tmp_path / "order", tmp_path / "q", tmp_path / "q.bolt"
    lbr2pgo.convert(recording, program, startup_order=order)
    flags = ("-O1", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--emit-relocs")
    run(tool("clang-22"), *flags, program.with_suffix(".c"), "-o", relocatable)
    by = ("--reorder-functions=user", f"--function-order={order}")
    run(tool("llvm-bolt-22"), relocatable, "-o", moved, *by)
    opened = Program.open(moved)
    names = [name for name in order.read_text().splitlines() if opened.address_of(name)]
    assert {"often", "main", "first", "second", "last"} <= set(names)
    assert sorted(names, key=opened.address_of) == names
