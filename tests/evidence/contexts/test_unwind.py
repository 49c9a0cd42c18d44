"""What is unwound is what was walked, and what llvm-profgen unwinds."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.binary_walks import LIBRARY, BinaryWalk, HybridPlan, Walked
from builders.c_programs import CProgram
from builders.evidence import program as toy
from builders.hybrid import Hybrid, batch_of, read_hybrid
from builders.unwound import Record, records, unwound

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.evidence.collector import Samples
from lbr2pgo.evidence.contexts.unwind import ContextTable
from lbr2pgo.evidence.sample_runs import KnownRuns
from lbr2pgo.model.context_counts import ContextCounts
from lbr2pgo.native.walk import StackKind
from lbr2pgo.program.code.instructions import InstructionTable
from lbr2pgo.program.program import Program
from lbr2pgo.support.threads import at_most

PROBED = ("noinline-cs-pseudoprobe", "invalid-range")


class Truth:
    """What a walk knows of its samples."""

    def __init__(self, program: Program) -> None:
        code = [(s.address, s.end) for s in program.image.sections if s.is_code]
        table = program.instructions_for(program.regions.start)
        self._code = code
        self._call = dict(zip(table.end.tolist(), table.address.tolist(), strict=True))

    def records(self, samples: Iterable[Walked]) -> Counter[Record]:
        found: Counter[Record] = Counter()
        for walked in samples:
            steps = [s for s in walked.steps if self._inside(s.source) or self._inside(s.target)]
            for newer, older in itertools.pairwise(steps):
                if self._inside(older.target):
                    callers = self._callers(older.after)
                    found[callers, "run", older.target, newer.source] += 1
            for step in steps:
                if self._inside(step.target):
                    inside = self._inside(step.source)
                    callers = self._callers(step.before) if inside else ()
                    found[callers, "branch", step.source if inside else 1, step.target] += 1
        return found

    def _inside(self, address: int) -> bool:
        return any(start <= address < end for start, end in self._code)

    def _callers(self, stack: list[int]) -> tuple[int, ...]:
        outside = [i for i, frame in enumerate(stack) if frame >= LIBRARY]
        return tuple(self._call[frame] for frame in stack[outside[-1] + 1 if outside else 0 :])


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> list[Path]:
    """Some random programs, the last one for RISC-V."""
    where = tmp_path_factory.mktemp("programs")
    compiler = tool("clang-22")
    found = [CProgram(seed).compile(where / f"p{seed}", compiler=compiler) for seed in range(6)]
    riscv = ("--target=riscv64-linux-gnu", "-fuse-ld=lld")
    return [*found, CProgram(1).compile(where / "riscv64", *riscv, compiler=compiler)]


def test_walks_are_unwound_to_where_they_went(programs: list[Path]) -> None:
    deepest = 0
    for seed, path in enumerate(programs):
        program = Program.open(path)
        walk = BinaryWalk(path, seed + 6).hybrid(2000, HybridPlan(most_frames=10**6))
        truth = Truth(program).records(walk)
        assert records(unwound(program, (w.sample for w in walk))) == truth
        deepest = max(deepest, *(len(callers) for callers, *_ in truth))
    assert deepest > 10


def test_samples_may_come_in_any_order_and_number(programs: list[Path]) -> None:
    program = Program.open(programs[0])
    samples = [w.sample for w in BinaryWalk(programs[0], 5).hybrid(2000)]
    whole = records(unwound(program, samples))
    aggregated = [replace(sample, count=3) for sample in samples[::-1]]
    assert records(unwound(program, aggregated)) == Counter({k: 3 * n for k, n in whole.items()})
    assert records(_in_batches(ContextTable(program), samples, 7)) == whole


def _in_batches(table: ContextTable, samples: Sequence[Hybrid], size: int) -> ContextCounts:
    spaces = AddressSpaces.fixed(table.code.program.image.layout)
    source = table.source(spaces)
    for at in range(0, len(samples), size):
        batch = batch_of(samples[at : at + size])
        kinds = np.full(len(batch), StackKind.CONSECUTIVE, np.uint8)
        numbers = np.zeros(len(batch), np.int64)
        source.add(Samples(batch, numbers, kinds, KnownRuns(spaces, InstructionTable.empty())))
        # As where a caller is looked for.
        table.code.leaving(np.arange(len(table.code.program.regions)))
    return table.counts()


def test_code_may_be_looked_at_between_samples(programs: list[Path]) -> None:
    """How many ends of straight lines lie before a place depends on all code that is known."""
    for path in programs:
        program = Program.open(path)
        samples = [w.sample for w in BinaryWalk(path, 5).hybrid(300)]
        whole = records(unwound(program, samples))
        for first in range(0, 60, 6):
            turned = [*samples[first:], *samples[:first]]
            assert records(_in_batches(ContextTable(program), turned, 1)) == whole


def test_the_number_of_threads_changes_nothing(programs: list[Path]) -> None:
    program = Program.open(programs[1])
    walk = BinaryWalk(programs[1], 3).hybrid(4000, HybridPlan(lost_callers=0.3))
    found = []
    for limit in (1, 2, 5):
        with at_most(limit):
            counts = unwound(program, (walked.sample for walked in walk))
        found.append((records(counts), counts.tallies))
    assert found[0] == found[1] == found[2]


def test_samples_without_a_call_stack_count_without_callers(programs: list[Path]) -> None:
    program = Program.open(programs[0])
    samples = [w.sample for w in BinaryWalk(programs[0], 5).hybrid(2000)]
    bare = [replace(sample, frames=()) for sample in samples]
    whole, found = (records(unwound(program, each)) for each in (samples, bare))
    assert sum(found.values()) == sum(whole.values())
    assert records(unwound(program, bare, as_llvm=True)) == Counter()


@pytest.mark.parametrize("name", PROBED)
def test_contexts_are_those_of_llvm_profgen(
    name: str, corpus: Callable[[str], Path], tool: Callable[[str], str],
    run: Callable[..., object], tmp_path: Path,
) -> None:  # fmt: skip
    """Of a program with pseudo probes it writes contexts by address."""
    binary = corpus(f"llvm-profgen/{PROBED[0]}.perfbin")
    recording = corpus(f"llvm-profgen/{name}.perfscript")
    raw = tmp_path / "raw"
    run(tool("llvm-profgen-22"), f"--binary={binary}", f"--perfscript={recording}",
        "--skip-symbolization", "--use-offset=0", f"--output={raw}")  # fmt: skip
    program = Program.open(binary)
    loaded = {"noinline-cs-pseudoprobe": 0x100000}.get(name, 0)
    samples = [shifted(sample, loaded) for sample in read_hybrid(recording)]
    assert records(unwound(program, samples, as_llvm=True)) == read_raw(raw.read_text())


def shifted(sample: Hybrid, by: int) -> Hybrid:
    entries = [(source - by, target - by) for source, target in sample.entries]
    return replace(sample, frames=[frame - by for frame in sample.frames], entries=entries)


def test_a_call_that_leads_astray_is_no_branch_of_its_context() -> None:
    samples = [
        Hybrid([0x1011], [(callee + 1, 0x1005), (0x1000, callee)]) for callee in (0x1040, 0x1050)
    ]
    called = [
        [to for _, what, from_, to in records(found) if (what, from_) == ("branch", 0x1000)]
        for found in (unwound(toy(), samples, as_llvm=as_llvm) for as_llvm in (False, True))
    ]
    assert called == [[0x1040], [0x1040, 0x1050]]


def read_raw(text: str) -> Counter[Record]:
    found: Counter[Record] = Counter()
    callers: tuple[int, ...] = ()
    for line in text.splitlines():
        if line.startswith("["):
            callers = tuple(int(x, 16) for x in line.strip("[]").split(" @ ") if x)
        elif row := re.fullmatch(r"\s+([0-9a-f]+)(->|-)([0-9a-f]+):(\d+)", line):
            what = "run" if row[2] == "-" else "branch"
            found[callers, what, int(row[1], 16), int(row[3], 16)] += int(row[4])
    return found
