"""`Program`: what is decoded for which addresses, in programs of every layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Compiled, Corpus, Link, Run, Tool
from builders.objdump import disassembly

from lbr2pgo.program.code.cfg import EdgeKind, FunctionCFG
from lbr2pgo.program.code.decode import decode
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.support.errors import InputError


def u64(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


ASSEMBLY = """
.globl _start, two
.type _start, @function
.type two, @function
_start: nop
 ret
.size _start, 2
unnamed: nop
 jmp unnamed
two: ret
.size two, 1
.section .far, "ax"
 nop
"""


def test_only_what_holds_an_address_is_decoded(link: Link) -> None:
    program = Program.open(link(ASSEMBLY))
    start, two = program.functions.start.tolist()
    table = program.instructions_for(u64(two, two, 0, 2**64 - 1))
    assert table.address.tolist() == [two]
    assert len(program.instructions_for(u64())) == 0
    assert program.instructions_for(u64(start + 1)).address.tolist() == [start, start + 1]


def test_what_is_decoded_once_joins_what_is_kept(link: Link) -> None:
    program = Program.open(link(ASSEMBLY))
    start, two = program.functions.start.tolist()
    kept = program.instructions_for(u64(two))
    assert program.instructions_once(u64(start, two)).address.tolist() == [start, start + 1, two]
    assert program.instructions_once(u64(two)) is kept
    assert program.instructions_for(u64(two)) is kept


def test_what_is_asked_for_beside_what_is_known_is_not_kept(link: Link) -> None:
    program = Program.open(link(ASSEMBLY))
    start, two = program.functions.start.tolist()
    kept = program.instructions_for(u64(two))
    assert program.instructions_with(u64(start)).address.tolist() == [start, start + 1, two]
    assert program.instructions_with(u64()) is kept
    assert program.instructions_for(u64(two)) is kept


def test_code_without_a_symbol_is_not_lost(link: Link) -> None:
    program = Program.open(link(ASSEMBLY, "-e", "_start"))
    far = program.image.section(".far")
    assert far is not None
    gap = int(program.functions.end[0])
    table = program.instructions_for(u64(gap + 1, far.address))
    assert sorted(table.address.tolist()) == sorted([gap, gap + 1, far.address])
    cfg = program.cfg(int(program.regions.containing(u64(gap))[0]))
    assert cfg.edge_kind.tolist() == [EdgeKind.JUMP]
    assert program.regions.name[cfg.function] == ""


def test_a_kernels_addresses(link: Link) -> None:
    """They lie in the upper half, where signed numbers are negative."""
    loop = "again: dec %eax\n jne again\n ret\n"
    source = f".globl _start\n.type _start, @function\n_start: nop\n{loop}.size _start, .-_start\n"
    program = Program.open(link(source, "-Ttext=0xffffffff81000000"))
    start = 0xFFFFFFFF81000000
    assert program.functions.start.tolist() == [start]
    assert program.image.read(start, 1) == b"\x90"
    cfg = program.cfg(0)
    assert cfg.block_start.tolist() == [start, start + 1, start + 5]
    assert cfg.loops == [frozenset({1})]
    assert program.functions.containing(u64(start - 1, start, start + 5, start + 6)).tolist() == [
        -1, 0, 0, -1,
    ]  # fmt: skip


def test_a_fragment_brings_its_parent(link: Link) -> None:
    program = Program.open(link(ASSEMBLY.replace("two", "_start.cold")))
    start, cold = program.functions.start.tolist()
    table = program.instructions_for(u64(cold))
    assert table.address.tolist() == [start, start + 1, cold]


def test_a_stripped_program_decodes_from_its_sections(
    link: Link, tmp_path: Path, tool: Tool, run: Run
) -> None:
    binary = link(ASSEMBLY)
    run(tool("llvm-objcopy-22"), "--strip-all", binary, tmp_path / "stripped")
    program = Program.open(tmp_path / "stripped")
    assert len(program.functions) == 0
    text = program.image.section(".text")
    assert text is not None
    table = program.instructions_for(u64(text.address))
    assert (int(table.address[0]), int(table.end[-1])) == (text.address, text.end)


def test_a_stripped_program_has_its_unwind_table(
    compiled: Compiled, tmp_path: Path, tool: Tool, run: Run
) -> None:
    binary = compiled("gcc", SOURCE, "-O2")
    run(tool("llvm-objcopy-22"), "--strip-all", binary, tmp_path / "stripped")
    whole, stripped = Program.open(binary), Program.open(tmp_path / "stripped")
    for name in ("main", "by_switch", "by_goto", "via", "tail"):
        start = whole.functions.start[[whole.functions.by_name(name)]]
        known, found = whole.instructions_for(start), stripped.instructions_for(start)
        assert np.isin(known.address, found.address).all()
        assert start[0] in stripped.regions.start
        cfg = stripped.cfg(int(stripped.regions.containing(start)[0]))
        assert cfg.block_start.tolist() == whole.cfg(function(whole, name)).block_start.tolist()


def test_health_gathers_what_was_mended(link: Link) -> None:
    program = Program.open(link(ASSEMBLY.replace(".size two, 1", ".size two, 100")))
    assert program.health() == {"functions longer than their section": 1}


def test_what_can_not_be_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        Program.open(tmp_path / "missing")


SOURCE = r"""
#include <stdio.h>
#include <string.h>
int sum;
__attribute__((noinline)) int tail(int x) { sum += x; return sum ^ x; }
__attribute__((noinline)) int by_switch(int x) {
  switch (x % 9) {
    case 0: return tail(1); case 1: sum ^= 5; break; case 2: sum += x * 7; break;
    case 3: return tail(x - 4); case 4: sum -= 2; break; case 5: sum *= 3; break;
    case 6: sum |= 1; break; case 7: sum = ~sum; break; default: sum /= 3;
  }
  return sum;
}
__attribute__((noinline)) int by_goto(const unsigned char *p) {
  static void *const to[] = {&&add, &&sub, &&mul, &&end};
  int acc = 1;
  goto *to[*p++ & 3];
add: acc += 3; goto *to[*p++ & 3];
sub: acc -= 5; goto *to[*p++ & 3];
mul: acc *= 7; goto *to[*p++ & 3];
end: return acc;
}
__attribute__((noinline)) int via(int (*f)(int), int x) { return f(x + 1); }
int main(int argc, char **argv) {
  int total = 0;
  for (int i = 0; i < argc * 30; i++)
    total += by_switch(i) + by_goto((const unsigned char *)"\1\2\0\3") + via(tail, i);
  return printf("%d %d\n", total, (int)strlen(argv[0])) < 0;
}
"""
BUILDS = [
    ("gcc", "-O2"),
    ("gcc", "-O2", "-fno-plt", "-fcf-protection=full", "-foptimize-sibling-calls"),
    ("gcc", "-O0"),
    ("gcc", "-O2", "-static", "-no-pie"),
    ("gcc", "-O2", "-static-pie"),
    ("clang-22", "-O2", "-fPIE", "-pie"),
    ("clang-22", "-O2", "-no-pie", "-fuse-ld=lld"),
    ("clang-22", "-O2", "-fuse-ld=lld", "-Wl,-z,separate-loadable-segments", "-Wl,--emit-relocs"),
    ("clang-22", "-O3", "-march=x86-64-v4", "-mbranches-within-32B-boundaries"),
    ("aarch64-linux-gnu-gcc", "-O2"),
]


def function(program: Program, name: str) -> int:
    found = program.regions.by_name(name)
    assert found is not None
    return found


@pytest.mark.parametrize("flags", BUILDS, ids=" ".join)
def test_compilers_programs_decode_as_objdump_says(
    flags: tuple[str, ...], compiled: Compiled, tool: Tool
) -> None:
    tool("llvm-objdump-22")
    compiler, *rest = flags
    binary = compiled(compiler, SOURCE, *rest)
    program = Program.open(binary)
    for name in ("main", "by_switch", "by_goto", "via", "tail"):
        symbol = program.symbols.by_name(name)
        assert symbol is not None
        cfg = program.cfg(function(program, name))
        start, end = int(program.symbols.start[symbol]), int(program.symbols.end[symbol])
        listed = [x for x in disassembly(binary, f"--disassemble-symbols={name}")
                  if start <= x.address < end]  # fmt: skip
        table = program.instructions_for(u64(start))
        rows = table.index_of(u64(*(x.address for x in listed)))
        assert (rows >= 0).all()
        assert table.kind[rows].tolist() == [x.kind for x in listed]
        assert cfg.block_of(u64(*(x.address for x in listed))).min() == 0


@pytest.mark.parametrize("flags", BUILDS[:2] + BUILDS[5:7], ids=" ".join)
def test_tail_calls_and_indirect_jumps_of_compilers(
    flags: tuple[str, ...], compiled: Compiled
) -> None:
    compiler, *rest = flags
    program = Program.open(compiled(compiler, SOURCE, *rest))
    tail = int(program.symbols.start[program.symbols.by_name("tail")])
    switch = program.cfg(function(program, "by_switch"))
    assert tail in switch.exits.target[switch.exits.has_target].tolist()
    via = program.cfg(function(program, "via"))
    assert via.exits.kind.tolist() == [Kind.INDIRECT_JUMP]
    assert via.exits.has_target.tolist() == [False]


def recorded_edges(cfg: FunctionCFG) -> int:
    return int((cfg.edge_kind == EdgeKind.INDIRECT).sum())


def test_a_jump_table_is_seen_through_its_recorded_targets(compiled: Compiled) -> None:
    program = Program.open(compiled("clang-22", SOURCE, "-O1", "-fno-pie", "-no-pie"))
    region = function(program, "by_switch")
    silent = program.cfg(region)
    jumps = silent.exits.address[~silent.exits.has_target].tolist()
    assert len(jumps) == 1
    dead_ends = set(silent.block_start.tolist()) - {
        int(silent.block_start[i]) for i in [*silent.edge_target, *silent.entries]
    }
    assert len(dead_ends) >= 5
    seen = program.cfg(region, {jumps[0]: sorted(dead_ends)})
    assert recorded_edges(seen) == len(dead_ends)
    assert len(seen.exits) < len(silent.exits)


def test_several_load_segments(corpus: Corpus) -> None:
    program = Program.open(corpus("llvm-profgen/multi-load-segs.perfbin"))
    region = function(program, "main")
    cfg = program.cfg(region)
    cold = program.functions.by_name("main.cold.0")
    assert cold is not None
    assert cfg.block_of(program.functions.start[[cold]]).min() >= 0
    assert len(cfg.entries) == 2


def test_nothing_is_decoded_twice(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program.open(link(ASSEMBLY))
    start, two = program.functions.start.tolist()
    decoded: list[int] = []
    monkeypatch.setattr(
        "lbr2pgo.program.program.decode",
        lambda image, ranges: decoded.extend(ranges.start.tolist()) or decode(image, ranges),
    )
    for asked in (u64(start), u64(start + 1), u64(two), u64(start, two), u64(two)):
        table = program.instructions_for(asked)
        assert set(program.functions.start[program.functions.containing(asked)].tolist()) == set(
            program.functions.start[program.functions.containing(table.address)].tolist()
        )
        program.cfg(int(program.regions.containing(asked)[0]))
    assert decoded == [start, two]
