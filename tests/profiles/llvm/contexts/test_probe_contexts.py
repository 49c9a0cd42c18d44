"""Contexts by pseudo probe, judged by llvm-profgen."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.context_profiles import (
    FULL,
    PREINLINED,
    as_text,
    full,
    inlined,
    probe_contexts,
    without_was_inlined,
)
from builders.fixtures import Corpus, Tool, Walk
from builders.llvm_profiles import profgen_of_contexts

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model.compat import LLVM_PROFGEN, Compat
from lbr2pgo.profiles.llvm import text
from lbr2pgo.profiles.llvm.contexts.keys import ContextShape
from lbr2pgo.profiles.llvm.contexts.nesting import nested
from lbr2pgo.profiles.llvm.contexts.probe_contexts import ProbeContexts
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.profiles.llvm.lacks import Lack
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.support.tables import taken

BINARY = "noinline-cs-pseudoprobe"
CASES = (BINARY, "recursion-compression-pseudoprobe", "invalid-range")
MAKE: dict[tuple[str, ...], Callable[[ProbeContexts], object]] = {
    FULL: full,
    PREINLINED: inlined,
    (): lambda contexts: nested(inlined(contexts)),
}
SHAPES = {
    "with recursion": (ContextShape(longest_repeat=0), ("--compress-recursion=0",)),
    "short rounds": (ContextShape(longest_repeat=1), ("--compress-recursion=1",)),
    "two callers": (ContextShape(depth=2), ("--csprof-max-context-depth=2",)),
}
SEEDS = [*range(6), 8, 20]
"""8: `_start` has no debug information; 20: calls that stand in several blocks of one line."""


@pytest.mark.parametrize("name", CASES)
def test_recorded_contexts_are_those_of_llvm_profgen(
    name: str, corpus: Corpus, tool: Tool, tmp_path: Path
) -> None:
    binary = corpus(f"llvm-profgen/{BINARY if name == 'invalid-range' else name}.perfbin")
    recording = corpus(f"llvm-profgen/{name}.perfscript")
    contexts = probe_contexts(binary, recording)
    for options, make in MAKE.items():
        expected = profgen_of_contexts(tool, tmp_path, recording, binary, *options)
        assert as_text(make(contexts)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_contexts_are_those_of_llvm_profgen(
    seed: int, probed_walk: Walk, tool: Tool, tmp_path: Path
) -> None:
    binary, recording = probed_walk(seed)
    contexts = probe_contexts(binary, recording)
    for options, make in MAKE.items():
        expected = profgen_of_contexts(tool, tmp_path, recording, binary, *options)
        assert as_text(make(contexts)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [1, 9])
def test_shorter_contexts_are_those_of_llvm_profgen(
    seed: int, shape: str, probed_walk: Walk, tool: Tool, tmp_path: Path
) -> None:
    binary, recording = probed_walk(seed)
    chosen, options = SHAPES[shape]
    expected = profgen_of_contexts(tool, tmp_path, recording, binary, *FULL, *options)
    found = as_text(full(probe_contexts(binary, recording), chosen))
    assert without_was_inlined(found) == without_was_inlined(expected)


def test_a_program_without_probes_has_no_contexts(corpus: Corpus) -> None:
    paths = (corpus(f"llvm-profgen/noinline-cs-noprobe.perf{kind}") for kind in ("bin", "script"))
    contexts = probe_contexts(*paths)
    assert len(contexts.profile()) == 0
    assert contexts.lost().is_nowhere.all()


def test_runs_without_probes_and_hidden_callers_are_told(probed_walk: Walk) -> None:
    contexts = probe_contexts(*probed_walk(1), as_llvm=False)
    lost = contexts.lost()
    assert 0 < lost.is_cut.sum() < len(lost.cut) / 2
    assert lost.is_nowhere.sum() < len(lost.nowhere) / 2
    # The C library's start is all that has no probes.
    assert {*lost.cut.tolist()} == {Lack.NOTHING, Lack.SOURCE}
    assert np.array_equal(lost.call > 0, lost.is_cut)


def test_a_call_that_lost_its_probe_is_not_one_of_code_without_probes(probed_walk: Walk) -> None:
    contexts = probe_contexts(*probed_walk(1), as_llvm=False)
    table, before = contexts._table, contexts.lost()
    called = np.isin(table.address, contexts._counts.callers.call[1:])
    contexts._table = taken(table, ~(table.is_call & called))
    after = contexts.lost()
    assert after.is_cut.sum() > before.is_cut.sum()
    assert (after.cut == Lack.PLACE).sum() == after.is_cut.sum() - before.is_cut.sum()


@pytest.mark.parametrize("seed", range(4))
def test_no_sample_is_lost_where_contexts_are_merged(seed: int, probed_walk: Walk) -> None:
    contexts = probe_contexts(*probed_walk(seed), as_llvm=False)
    whole, left = contexts.profile(), inlined(contexts, as_llvm=False)
    for profile in (whole, left):
        assert (profile.table.contexts.total[~profile.has_samples] == 0).all()
    assert left.table.contexts.total.sum() == whole.table.contexts.total.sum()


KEYWORDS = "clang++-22 -O2 -g1 -fdebug-info-for-profiling -fpseudo-probe-for-profiling"


def test_what_was_inlined_into_code_without_probes_of_its_own_stays_there(
    built: Callable[..., Path], tool: Tool, tmp_path: Path
) -> None:
    """`equals`, inlined into `operator==`, of which few probes are left."""
    tool("qemu-x86_64")
    program, recording, out = built(KEYWORDS, "keywords.cpp"), tmp_path / "data", tmp_path / "prof"
    record_software(
        RecordOptions(
            output=recording, command=(str(program),), period=211, emulate=True, call_graph=True
        )
    )
    alone: list[int] = []
    for compat in (Compat(), Compat(frozenset({LLVM_PROFGEN}))):
        wanted = LlvmOutput(out, contexts="nested")
        convert(ConvertOptions((recording,), program, outputs=(wanted,), compat=compat))
        functions = text.read(out).functions.values()
        total = {str(each.name): each.total for each in functions}
        alone.append(total.get("_Z6equals4TextS_", 0))
        assert total["main"] > 10_000
    assert alone[0] == 0
    assert alone[1] > 100_000


ENTERED_ONCE = """
inline __attribute__((always_inline)) long walk(long n) {
  long s = n;
  for (long i = 0; i < n; i++)
    s ^= s & 5 ? s << 1 : s + i;
  return s;
}
__attribute__((noinline)) long enter(long n) { return walk(n); }
int main(void) { return enter(100000) == 1; }
"""


def test_a_function_without_a_sample_is_not_called_cold_for_what_was_inlined_into_it(
    tool: Tool, tmp_path: Path
) -> None:
    tool("qemu-x86_64")
    source, program = tmp_path / "entered.c", tmp_path / "entered"
    recording, out = tmp_path / "data", tmp_path / "prof"
    source.write_text(ENTERED_ONCE)
    flags = "-O2", "-g1", "-fdebug-info-for-profiling", "-fpseudo-probe-for-profiling"
    subprocess.run([tool("clang-22"), *flags, source, "-o", program], check=True)
    record_software(
        RecordOptions(
            output=recording, command=(str(program),), period=211, emulate=True, call_graph=True
        )
    )
    convert(ConvertOptions((recording,), program, outputs=(LlvmOutput(out, contexts="nested"),)))
    assert [str(each.name) for each in text.read(out).functions.values()] == ["walk"]


def test_what_was_inlined_stands_in_one_function_at_last(probed_walk: Walk) -> None:
    tree = probe_contexts(*probed_walk(1))._table.tree
    parent = tree.parent.tolist()

    def outermost(node: int) -> int:
        return node if parent[node] < 0 else outermost(parent[node])

    found = tree.outermost().tolist()
    assert found == [outermost(node) for node in range(len(parent))]
    assert max(parent) >= 0


def test_the_random_programs_have_what_they_are_for(
    probed_walk: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tail calls that left callers out, and inlined functions of which only probes are left."""
    seeds = (1, 8, 9)
    whole = [as_text(full(probe_contexts(*probed_walk(seed)))) for seed in seeds]
    assert re.search(r"!Attributes: 1\n", "".join(whole))
    monkeypatch.setattr(
        "lbr2pgo.profiles.llvm.contexts.tail_calls.TailCalls.missing", lambda *_: ()
    )
    without = [as_text(full(probe_contexts(*probed_walk(seed)))) for seed in seeds]
    assert without != whole


def test_a_function_that_was_inlined_into_an_unknown_one_has_no_callers(
    probed_walk: Walk,
) -> None:
    contexts = probe_contexts(*probed_walk(9))
    tree = contexts._table.tree
    inner = np.flatnonzero((tree.parent >= 0) & (tree.parent[tree.parent] >= 0))
    assert len(inner)
    unknown = tree.site.copy()
    unknown[inner] = 0
    contexts._table = replace(contexts._table, tree=replace(tree, site=unknown))
    names = {contexts._table.tree.name(row) for row in inner.tolist()}
    alone = {line[1:].split("]")[0] for line in as_text(full(contexts)).splitlines()}
    assert names & alone


def test_descriptors_of_one_name_leave_the_others_their_checksums(
    corpus: Corpus, tmp_path: Path
) -> None:
    name = "recursion-compression-pseudoprobe"
    binary, recording = (
        corpus(f"llvm-profgen/{name}.{kind}") for kind in ("perfbin", "perfscript")
    )
    damaged = tmp_path / binary.name
    damaged.write_bytes(binary.read_bytes().replace(b"\x02fb", b"\x02fa"))
    expected, found = (checksums(probe_contexts(path, recording)) for path in (binary, damaged))
    assert found["main"] == expected["main"] != expected["fb"]


def checksums(contexts: ProbeContexts) -> dict[str, int]:
    table = contexts.profile().table
    assert table.checksum is not None
    names = [table.names[row] for row in table.contexts.name.tolist()]
    return dict(zip(names, table.checksum.tolist(), strict=True))
