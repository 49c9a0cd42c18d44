"""Functions from symbols: fragments, aliases, gaps, and symbols that make no sense."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import Compiled, Corpus, Link, Run, Tool
from builders.symbols import Row, symbol_table
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.code.regions import Functions, build_functions, code_ranges
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.symbols import STT_NOTYPE, read_symbols
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ByteRanges

CODE = [(100, 1000)]


def build(*rows: Row, code: list[tuple[int, int]] = CODE) -> Functions:
    return build_functions(symbol_table(*rows), ByteRanges.of(code))


def spans(functions: Functions) -> list[tuple[str, int, int]]:
    return list(zip(functions.name, functions.start.tolist(), functions.end.tolist(), strict=True))


def parents(functions: Functions) -> dict[str, str]:
    return {
        functions.name[i]: functions.name[p]
        for i, p in enumerate(functions.parent.tolist())
        if i != p
    }


def test_sizes_and_their_absence() -> None:
    functions = build(Row("a", 100, 50), Row("b", 200), Row("c", 300, 10), Row("d", 400))
    assert spans(functions) == [("a", 100, 150), ("b", 200, 300), ("c", 300, 310), ("d", 400, 1000)]


def test_aliases_are_one_function_named_by_the_best() -> None:
    functions = build(Row("x", 100, 50, local=True), Row("y", 100, 60), Row("z", 100, 0, weak=True))
    assert spans(functions) == [("y", 100, 160)]
    assert functions.aliases(0) == ("x", "y", "z")
    assert functions.by_name("z") == functions.by_name("x") == 0
    assert functions.by_name("w") is None


def test_symbols_inside_a_function_are_entries() -> None:
    functions = build(Row("f", 100, 50), Row("inner", 110, 10), Row("label", 120), Row("g", 150, 1))
    assert spans(functions) == [("f", 100, 150), ("g", 150, 151)]
    assert functions.entry.tolist() == [110, 120]
    assert functions.by_name("label") == 0
    assert functions.entries(np.array([0, 1])).tolist() == [100, 150, 110, 120]
    assert functions.entries(np.array([1])).tolist() == [150]


def test_the_later_of_two_that_overlap_wins() -> None:
    functions = build(Row("a", 100, 50), Row("b", 120, 50), Row("c", 160, 5))
    assert spans(functions) == [("a", 100, 120), ("b", 120, 170)]
    assert functions.entry.tolist() == [160]
    assert functions.health == {"functions that overlap the next": 1}


def test_a_size_past_the_section_is_no_size() -> None:
    functions = build(Row("a", 100, 2**64 - 1), Row("b", 500, 501), Row("c", 600, 400))
    assert spans(functions) == [("a", 100, 500), ("b", 500, 600), ("c", 600, 1000)]
    assert functions.health == {"functions longer than their section": 2}


def test_symbols_outside_the_code_are_no_functions() -> None:
    rows = (Row("low", 50, 10), Row("end", 1000), Row("f", 999, 1))
    assert spans(build(*rows)) == [("f", 999, 1000)]
    assert spans(build(*rows, code=[])) == []


def test_untyped_global_symbols_fill_in() -> None:
    functions = build(
        Row("f", 100, 50), Row("in_f", 110, kind=STT_NOTYPE), Row("asm", 200, kind=STT_NOTYPE),
        Row("here", 210, kind=STT_NOTYPE, local=True), Row("g", 300, 1),
    )  # fmt: skip
    assert spans(functions) == [("f", 100, 150), ("asm", 200, 300), ("g", 300, 301)]
    assert functions.entry.tolist() == []


def test_containing() -> None:
    functions = build(Row("a", 100, 50), Row("b", 200, 10))
    addresses = np.array([0, 99, 100, 149, 150, 200, 209, 210, 2**64 - 1], np.uint64)
    assert functions.containing(addresses).tolist() == [-1, -1, 0, 0, -1, 1, 1, -1, -1]
    assert build().containing(addresses).tolist() == [-1] * 9


def test_gaps() -> None:
    functions = build(Row("a", 100, 50), Row("b", 200, 10), code=[(90, 220), (300, 310)])
    assert spans(functions.with_gaps(ByteRanges.of([(90, 220), (300, 310)]))) == [
        ("", 90, 100), ("a", 100, 150), ("", 150, 200), ("b", 200, 210), ("", 210, 220),
        ("", 300, 310),
    ]  # fmt: skip


def test_functions_at_both_ends_of_the_code_leave_no_gap() -> None:
    whole = build(Row("a", 100, 400), Row("b", 500, 500)).with_gaps(ByteRanges.of(CODE))
    assert spans(whole) == [("a", 100, 500), ("b", 500, 1000)]


def test_cuts_part_gaps_and_nothing_else() -> None:
    functions = build(Row("a", 100, 50), code=[(100, 200), (300, 310)])
    cuts = np.array([90, 100, 120, 150, 160, 170, 200, 250, 300, 305, 310], np.uint64)
    assert spans(functions.with_gaps(ByteRanges.of([(100, 200), (300, 310)]), cuts)) == [
        ("a", 100, 150), ("", 150, 160), ("", 160, 170), ("", 170, 200), ("", 300, 305),
        ("", 305, 310),
    ]  # fmt: skip
    assert spans(build(code=[]).with_gaps(ByteRanges.of([]), cuts)) == []


@given(
    st.lists(st.tuples(st.integers(0, 120), st.integers(0, 50)), max_size=12),
    st.lists(st.integers(0, 130), min_size=4, max_size=4, unique=True),
)
def test_functions_and_gaps_cover_the_code_once(
    symbols: list[tuple[int, int]], bounds: list[int]
) -> None:
    a, b, c, d = sorted(bounds)
    code = [(a, b), (c, d)]
    rows = (Row(f"f{i}", start, size) for i, (start, size) in enumerate(symbols))
    functions = build(*rows, code=code)
    whole = functions.with_gaps(ByteRanges.of(code))
    covered = [x for _, start, end in spans(whole) for x in range(start, end)]
    assert covered == [*range(a, b), *range(c, d)]
    starts = {start for start, _ in symbols if a <= start < b or c <= start < d}
    assert starts == {*functions.start.tolist(), *functions.entry.tolist()}


@pytest.mark.parametrize(
    ("fragment", "parent"),
    [
        ("f.cold", "f"),
        ("f.cold.1", "f"),
        ("f.part.0", "f"),
        ("f.part.0.cold", "f"),
        ("f.constprop.0.cold", "f.constprop.0"),
        ("f.llvm.123.cold", "f.llvm.123"),
        ("f.__part.2", "f"),
        ("f.warm", "f"),
        ("f.eh", "f"),
        ("f.colder", None),
        ("f.cold.x", None),
        (".cold", None),
        ("missing.cold", None),
    ],
)
def test_fragments_by_name(fragment: str, parent: str | None) -> None:
    functions = build(
        Row("f", 100, 10), Row("f.constprop.0", 110, 10), Row("f.llvm.123", 120, 10),
        Row("f.part.0", 130, 10), Row("other", 140, 10), Row(fragment, 150, 10),
    )  # fmt: skip
    expected = {"f.part.0": "f", fragment: parent} if parent else {"f.part.0": "f"}
    assert parents(functions) == expected


def test_fragments_stay_in_their_file() -> None:
    functions = build(
        Row("f", 100, 10, local=True, file="a.c"), Row("f.cold", 200, 10, local=True, file="b.c"),
        Row("f", 300, 10, local=True, file="b.c"), Row("f.cold", 400, 10, local=True, file="a.c"),
        Row("f.cold", 500, 10, local=True),
    )  # fmt: skip
    assert functions.parent.tolist() == [0, 2, 2, 0, 4]
    assert functions.families(np.array([3])).tolist() == [0, 3]
    assert functions.families(np.array([], np.int64)).tolist() == []


def test_a_global_parent_is_better_than_a_local_one() -> None:
    rows = [Row("f", 100, 10, local=True, file="a.c"), Row("f", 200, 10),
            Row("f.cold", 300, 10, local=True, file="c.c")]  # fmt: skip
    assert build(*rows).parent.tolist() == [0, 1, 1]


SPLIT = """
#include <stdio.h>
#include <stdlib.h>
static int __attribute__((noinline)) work(int x) {
  if (__builtin_expect(x > 100, 0)) { puts("much"); if (x > 200) abort(); return x * 3; }
  return x + 1;
}
int main(int argc, char **argv) { return work(argc) + work(argc * 2); }
"""


def test_gcc_splits_cold_code(compiled: Compiled) -> None:
    flags = ("-O2", "-freorder-blocks-and-partition", "-fno-ipa-ra", "-fno-ipa-cp")
    program = Program.open(compiled("gcc", SPLIT, *flags))
    functions = program.functions
    (fragment,) = [i for i, name in enumerate(functions.name) if name == "work.cold"]
    assert functions.name[int(functions.parent[fragment])] == "work"
    cfg = program.cfg(int(program.regions.containing(functions.start[[fragment]])[0]))
    assert program.regions.name[cfg.function] == "work"
    cold = set(np.flatnonzero(cfg.block_of(cfg.block_start) >= 0).tolist())
    assert cold == set(range(len(cfg)))
    in_cold = program.functions.containing(cfg.block_start) == fragment
    assert in_cold.any()
    assert not in_cold.all()
    crossing = in_cold[cfg.edge_source] != in_cold[cfg.edge_target]
    assert crossing.any()


def test_openssl_fragments(corpus: Corpus) -> None:
    functions = Program.open(corpus("bolt/openssl.zst")).functions
    split = parents(functions)
    assert len(split) > 100
    assert split["SSL_do_handshake.cold"] == "SSL_do_handshake"


def test_all_function_symbols_of_nm_are_found(corpus: Corpus, tool: Tool, run: Run) -> None:
    binary = corpus("sqlite/sq.zst")
    listed = run(tool("llvm-nm-22"), "--defined-only", "--format=posix", binary).stdout
    names = {line.split()[0] for line in listed.splitlines() if line.split()[1] in "tT"}
    functions = Program.open(binary).functions
    assert len(names) > 1000
    assert {name for name in names if functions.by_name(name) is None} == set()


def test_code_ranges_of_sections_and_of_segments(link: Link, tmp_path: Path) -> None:
    binary = link('.section .a,"ax"\nnop\n.section .b,"ax"\n_start: ret\n')
    image = Image.open(binary)
    names = (".a", ".b")
    assert list(code_ranges(image).pairs()) == sorted(
        (s.address, s.end) for s in image.sections if s.name in names
    )
    data = bytearray(binary.read_bytes())
    data[40:48], data[58:64] = bytes(8), bytes(6)
    (tmp_path / "bare").write_bytes(data)
    bare = Image.open(tmp_path / "bare")
    segment = next(s for s in bare.layout.segments if s.executable)
    whole = (segment.address, segment.address + segment.file_size)
    assert list(code_ranges(bare).pairs()) == [whole]
    assert len(build_functions(read_symbols(bare), code_ranges(bare))) == 0
