"""Fall-throughs judged one by one, and random walks: what is replayed is what was walked."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.compat import AS_LLVM_PROFGEN
from builders.elf import Function, elf
from builders.recordings import TESTBINS
from builders.sources import MemorySource, Sample, mapping
from builders.walks import RandomProgram, Truth, sample_at, walk
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.counting.address_spaces import pieces_of
from lbr2pgo.counting.count import count
from lbr2pgo.model import waterfall
from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.branch_counts import (
    BRANCH,
    END,
    FROM,
    TO,
    BranchCounts,
    Branches,
    Runs,
    aggregate,
)
from lbr2pgo.model.count_sums import merge
from lbr2pgo.profiles.counts import saved_counts
from lbr2pgo.program.code.cfg import EdgeKind
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.block_counts import count_blocks
from lbr2pgo.replay.replay import Flow, ReplayOptions, Verdict, judge, replay
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import StackSource

STRICT, AS_LLVM = ReplayOptions(strict=True), ReplayOptions(compat=AS_LLVM_PROFGEN)
# Address, size, kind, target.
LISTING = [
    (0x100, 4, Kind.OTHER, None),
    (0x104, 2, Kind.COND, 0x100),
    (0x106, 5, Kind.CALL, 0x900),
    (0x10B, 5, Kind.OTHER, None),
    (0x110, 2, Kind.INDIRECT_JUMP, None),
    (0x112, 2, Kind.OTHER, None),
    (0x114, 2, Kind.JUMP, 0x116),  # to the next instruction
    (0x116, 2, Kind.OTHER, None),
    (0x118, 2, Kind.JUMP, 0x100),
    (0x11A, 1, Kind.OTHER, None),
    (0x11B, 1, Kind.RET, None),
    (0x11C, 1, Kind.OTHER, None),
    (0x11D, 2, Kind.TRAP, None),
    (0x11F, 1, Kind.OTHER, None),
    # 0x120…0x12f are no code
    (0x130, 3, Kind.SYSCALL, None),
    (0x133, 3, Kind.INDIRECT_CALL, None),
    (0x136, 1, Kind.OTHER, None),
]


def table(rows: list[tuple[int, int, Kind, int | None]]) -> InstructionTable:
    return InstructionTable(
        address=np.array([row[0] for row in rows], np.uint64),
        size=np.array([row[1] for row in rows], np.uint8),
        kind=np.array([row[2] for row in rows], np.uint8),
        target=np.array([row[3] or 0 for row in rows], np.uint64),
        has_target=np.array([row[3] is not None for row in rows], bool),
    )


CASES = [
    (0x100, 0x100, "VALID", "VALID"),
    (0x100, 0x104, "VALID", "VALID"),
    (0x100, 0x106, "VALID", "VALID"),
    (0x104, 0x101, "BACKWARDS", "BACKWARDS"),
    (0x101, 0x104, "NOT_AN_INSTRUCTION", "NOT_AN_INSTRUCTION"),
    (0x100, 0x105, "NOT_AN_INSTRUCTION", "NOT_AN_INSTRUCTION"),
    (0x0FF, 0x104, "NOT_AN_INSTRUCTION", "NOT_AN_INSTRUCTION"),
    (0x130, 0x139, "NOT_AN_INSTRUCTION", "NOT_AN_INSTRUCTION"),
    (0x128, 0x130, "NOT_AN_INSTRUCTION", "NOT_AN_INSTRUCTION"),
    (0x100, 0x10B, "suspicious", "CROSSES_CALL"),
    (0x10B, 0x110, "VALID", "VALID"),
    (0x10B, 0x112, "suspicious", "VALID"),
    (0x112, 0x116, "VALID", "CROSSES_JUMP"),
    (0x116, 0x118, "VALID", "VALID"),
    (0x116, 0x11A, "CROSSES_JUMP", "CROSSES_JUMP"),
    (0x11A, 0x11B, "VALID", "VALID"),
    (0x11A, 0x11C, "CROSSES_JUMP", "CROSSES_JUMP"),
    (0x11C, 0x11D, "VALID", "VALID"),
    (0x11C, 0x11F, "CROSSES_JUMP", "VALID"),
    (0x11F, 0x130, "CROSSES_GAP", "VALID"),
    (0x11C, 0x130, "CROSSES_GAP", "VALID"),
    (0x130, 0x133, "VALID", "VALID"),
    (0x130, 0x136, "suspicious", "CROSSES_CALL"),
    (0x100, 0x118, "suspicious", "CROSSES_JUMP"),
    (0x106, 0x11A, "CROSSES_JUMP", "CROSSES_JUMP"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]:x}-{case[1]:x}")
def test_each_verdict(case: tuple[int, int, str, str]) -> None:
    start, end, ours, llvm = case
    runs = Runs(*(np.array([value], np.uint64) for value in (start, end, 7)))

    def verdict(options: ReplayOptions | None) -> str:
        judged = judge(runs, table(LISTING), options)
        if judged.is_suspicious[0]:
            assert judged.valid[0]
            return "suspicious"
        return Verdict(int(judged.verdict[0])).name

    assert verdict(None) == ours
    assert verdict(STRICT) == ours.replace("suspicious", "CROSSES_CALL")
    assert verdict(AS_LLVM) == llvm


def test_verdicts_do_not_depend_on_the_other_runs() -> None:
    starts, ends = (np.array([case[i] for case in CASES], np.uint64) for i in (0, 1))
    judged = judge(Runs(starts, ends, np.ones(len(CASES), np.uint64)), table(LISTING))
    names = [Verdict(number).name for number in judged.verdict.tolist()]
    assert names == [case[2].replace("suspicious", "VALID") for case in CASES]


def test_without_instructions_nothing_is_valid() -> None:
    runs = Runs(*(np.array([1], np.uint64) for _ in range(3)))
    assert judge(runs, table([])).verdict.tolist() == [Verdict.NOT_AN_INSTRUCTION]


CODE = bytes.fromhex(
    "90"  # 2000 nop
    "7406"  # 2001 je 2009
    "90"  # 2003 nop
    "e8f7ffffff"  # 2004 call 2000
    "ffe0"  # 2009 jmp *%rax
    "c3"  # 200b ret
    "90c3"  # 200c code without a symbol
)
BASE = 0x2000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = tmp_path_factory.mktemp("replay") / "program"
    path.write_bytes(elf(CODE, BASE, [Function("f", BASE, 0xC)]))
    return Program.open(path)


Trace = tuple[int | None, int | None, int | None, int, int]


def flow_of(program: Program, *traces: Trace, options: ReplayOptions | None = None) -> Flow:
    """Replay of traces (offsets in the code; None: unknown), with count and mispredictions."""
    columns = [
        np.array([BASE + t[i] if t[i] is not None else 0 for t in traces], np.uint64)
        for i in range(3)
    ]
    known = [
        sum(bit for bit, part in zip((FROM, TO, END), t, strict=False) if part is not None) | BRANCH
        for t in traces
    ]
    counted, missed = (np.array([t[i] for t in traces], np.uint64) for i in (3, 4))
    flow = replay(aggregate(*columns, np.array(known, np.uint8), counted, missed), program, options)
    waterfall.check(flow.tallies)
    return flow


def by_offset(flow: Flow, values: np.ndarray) -> dict[int, int]:
    return {
        int(a) - BASE: int(v) for a, v in zip(flow.instructions.address, values, strict=True) if v
    }


def test_counts_on_the_code(program: Program) -> None:
    flow = flow_of(
        program, (4, 0, 1, 10, 2), (4, 0, 4, 5, 0), (1, 9, 9, 8, 1), (None, 0, 1, 3, 0),
        (0xB, None, None, 4, 0), (9, 0xB, 0xB, 6, 0), (9, 3, None, 1, 1),
    )  # fmt: skip
    assert by_offset(flow, flow.executed) == {0: 18, 1: 18, 3: 5, 4: 5, 9: 8, 0xB: 6}
    assert by_offset(flow, flow.ended) == {1: 13, 4: 5, 9: 8, 0xB: 6}
    assert by_offset(flow, flow.taken) == {1: 8, 4: 15, 9: 7, 0xB: 4}
    assert by_offset(flow, flow.mispredicted) == {1: 1, 4: 2, 9: 1}
    assert by_offset(flow, flow.not_taken) == {1: 5}
    assert flow.indirect_targets() == {BASE + 9: [BASE + 3, BASE + 0xB]}


def test_branches_in_parts_leave_the_sums_as_they_are(program: Program) -> None:
    flow = flow_of(program, (4, 0, 1, 10, 2), (4, 0, 4, 5, 0), (1, 9, 9, 8, 1))
    kept = flow.taken
    half = np.arange(len(flow.branches)).repeat(2)
    parts = Branches(*(getattr(flow.branches, name)[half] for name in (
        "from_", "to", "known", "file", "count", "mispredicted", "prediction_unknown"
    )))  # fmt: skip
    parted = flow.with_branches(parts, half)
    assert parted.branch_from.tolist() == flow.branch_from.repeat(2).tolist()
    assert parted.taken is kept
    assert by_offset(parted, parted.executed) == by_offset(flow, flow.executed)


def test_what_can_not_be_true_is_tallied_and_counts_nowhere(program: Program) -> None:
    flow = flow_of(program, (4, 0, 1, 1, 0), (9, 0, 0xB, 10, 0), (9, 0xB, 0xC, 100, 0),
                   (9, 2, 4, 1000, 0))  # fmt: skip
    assert by_offset(flow, flow.executed) == {0: 11, 1: 11, 3: 10, 4: 10, 9: 10, 0xB: 10}
    assert waterfall.losses_of(flow.tallies, "runs_valid") == {
        "crosses_jump": 100, "not_an_instruction": 1000,
    }  # fmt: skip
    assert flow.tallies["runs_suspicious"] == 10
    strict = flow_of(program, (9, 0, 0xB, 10, 0), options=STRICT)
    assert waterfall.losses_of(strict.tallies, "runs_valid") == {"crosses_call": 10}
    assert by_offset(strict, strict.executed) == {}
    assert by_offset(strict, strict.taken) == {9: 10}, "the branch itself was seen"


def test_code_that_no_symbol_names_is_replayed_but_in_no_function(program: Program) -> None:
    flow = flow_of(program, (9, 0xC, 0xD, 5, 0), (9, 0, 1, 2, 0))
    assert by_offset(flow, flow.executed) == {0: 2, 1: 2, 0xC: 5, 0xD: 5}
    assert flow.tallies["runs_in_function/no_function"] == 5
    assert flow.tallies["runs_in_function"] == 2


def test_stubs_and_code_of_stripped_programs_are_lost_for_their_own_reasons(
    tmp_path: Path, tool, run
) -> None:
    binary, stripped = TESTBINS / "x86-64" / "shapes.pie", tmp_path / "stripped"
    run(tool("llvm-strip-22"), "--strip-all", binary, "-o", stripped)
    in_stub, in_main = 0x36D0 - BASE, 0x2410 - BASE
    for path, unnamed in ((binary, {}), (stripped, {"no_symbols": 5})):
        runs = (0, in_stub, in_stub, 3, 0), (0, in_main, in_main, 5, 0)
        flow = flow_of(Program.open(path), *runs)
        losses = waterfall.losses_of(flow.tallies, "runs_in_function")
        assert losses == {"linkage_table": 3, **unnamed}


def test_a_branch_into_an_instruction_has_no_place_and_none_comes_out_of_one(
    program: Program,
) -> None:
    flow = flow_of(program, (9, 2, None, 5, 0), (2, 0, None, 1, 0))
    assert (flow.branches.from_ - np.uint64(BASE)).tolist() == [9]
    assert flow.branch_to.tolist() == [-1]
    assert flow.tallies["branches_in_image/astray"] == 1
    assert by_offset(flow, flow.taken) == {9: 5}


def test_nothing_counted_is_nothing_replayed(program: Program) -> None:
    flow = flow_of(program)
    assert len(flow.instructions) == 0
    assert flow.tallies["runs_in_image"] == 0
    assert flow.indirect_targets() == {}


class Simulation:
    """A random program, walked by two processes, sampled through a ring."""

    def __init__(self, seed: int, depth: int, spacing: str, where: Path) -> None:
        chooser = random.Random(seed)
        self.source = RandomProgram(seed)
        path = where / f"{seed}.elf"
        path.write_bytes(self.source.elf())
        self.program = Program.open(path)
        self.truth, self.samples = Truth(), []
        self.walks = [walk(self.source, 150, seed + pid) for pid in (1, 2)]
        self.maps = []
        for pid, walked in enumerate(self.walks, 1):
            bias = pid * 0x123000
            times = list(range(depth - 1, len(walked.branches), depth))
            if spacing == "random":
                times = [chooser.randrange(len(walked.branches)) for _ in range(20)]
            self.samples += sample_at(walked, times, depth, bias=bias, pid=pid, truth=self.truth)
            if spacing == "each once" and (rest := len(walked.branches) % depth):
                last = len(walked.branches) - 1
                self.samples += sample_at(walked, [last], rest, bias=bias, pid=pid,
                                          truth=self.truth)  # fmt: skip
            layout = self.program.image.layout
            self.maps.append(mapping(pid, bias, layout=layout))
        self.chooser = chooser

    def counts(self, **changes: int) -> BranchCounts:
        source = MemorySource(self.samples, self.maps, **changes)  # type: ignore[arg-type]
        return count(source, self.program.image.layout).counts


def known_branches(flow: Flow) -> dict[tuple[int | None, int | None], int]:
    b = flow.branches
    return {
        (int(b.from_[i]) if b.known[i] & FROM else None, int(b.to[i]) if b.known[i] & TO else None):
        int(b.count[i])
        for i in range(len(b))
    }  # fmt: skip


def by_address(flow: Flow, values: np.ndarray) -> Counter[int]:
    found = zip(flow.instructions.address.tolist(), values.tolist(), strict=True)
    return Counter({address: value for address, value in found if value})


depths = st.integers(1, 64)
spacings = st.sampled_from(["each once", "random"])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), depth=depths, spacing=spacings)
def test_what_is_replayed_is_what_was_walked(
    seed: int, depth: int, spacing: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    simulation = Simulation(seed, depth, spacing, tmp_path_factory.mktemp("walk"))
    truth = simulation.truth
    flow = replay(simulation.counts(), simulation.program)
    waterfall.check(flow.tallies)
    assert flow.judged.valid.all()
    assert flow.tallies["runs_suspicious"] == 0
    assert known_branches(flow) == dict(truth.branches)
    assert by_address(flow, flow.executed) == truth.executed
    assert by_address(flow, flow.not_taken) == truth.not_taken
    walked = Counter(branch for one in simulation.walks for branch in one.branches)
    inside = {edge: n for edge, n in known_branches(flow).items() if None not in edge}
    if spacing == "each once":
        mine = simulation.source.instructions
        assert inside == {e: n for e, n in walked.items() if e[0] in mine and e[1] in mine}
    assert inside.keys() <= walked.keys()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), depth=depths)
def test_blocks_and_edges_of_graphs_have_the_counts_of_the_walk(
    seed: int, depth: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    simulation = Simulation(seed, depth, "each once", tmp_path_factory.mktemp("walk"))
    truth, program = simulation.truth, simulation.program
    flow = replay(simulation.counts(), program)
    ended: Counter[int] = Counter()
    for (_, end), number in truth.runs.items():
        ended[end] += number
    executed: Counter[int] = Counter()
    for region in np.unique(program.regions.containing(flow.instructions.address)).tolist():
        graph = program.cfg(region, flow.indirect_targets())
        counts = count_blocks(flow, graph)
        for start, end, number in zip(
            graph.block_start.tolist(), graph.block_end.tolist(), counts.block, strict=True
        ):
            inside = [truth.executed[a] for a in simulation.source.instructions if start <= a < end]
            assert number == max(inside, default=0)
            executed.update({start: int(number)})
        for source, target, kind, number in zip(
            graph.edge_source, graph.edge_target, graph.edge_kind, counts.edge, strict=True
        ):
            last, start = int(graph.block_last[source]), int(graph.block_start[target])
            if kind == EdgeKind.FALLTHROUGH:
                assert number == truth.executed[last] - ended[last]
            else:
                assert number == truth.branches[last, start]
    assert sum(executed.values()) > 0 or not truth.executed


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), depth=depths)
def test_batches_order_and_merging_make_the_same_bytes(
    seed: int, depth: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    simulation = Simulation(seed, depth, "random", tmp_path_factory.mktemp("walk"))
    expected = saved(simulation.counts())
    simulation.chooser.shuffle(simulation.samples)
    assert saved(simulation.counts(batch_size=7)) == expected
    samples, parts = simulation.samples, []
    for i in range(3):
        simulation.samples = samples[i::3]
        parts.append(simulation.counts())
    simulation.chooser.shuffle(parts)
    assert saved(merge(parts)) == expected


def saved(counts: BranchCounts) -> bytes:
    stream = io.BytesIO()
    saved_counts.write(counts, stream)
    return stream.getvalue()


def test_a_ring_deeper_than_the_walk_sees_all_of_it(tmp_path: Path) -> None:
    simulation = Simulation(7, 1000, "each once", tmp_path)
    flow = replay(simulation.counts(), simulation.program)
    lines = [line for walked in simulation.walks for line in walked.lines if line]
    everything = Counter(i.address for line in lines for i in line)
    assert by_address(flow, flow.executed) == everything
    assert len(lines) > 100


def test_the_simulated_programs_are_decoded_as_they_were_built(tmp_path: Path) -> None:
    """A judge of the judge: builder and decoder agree on every instruction."""
    kinds = {
        "other": Kind.OTHER, "cond": Kind.COND, "cond_self": Kind.COND, "jump": Kind.JUMP,
        "tail": Kind.JUMP, "call": Kind.CALL, "libcall": Kind.CALL, "switch": Kind.INDIRECT_JUMP,
        "icall": Kind.INDIRECT_CALL, "ret": Kind.RET, "trap": Kind.TRAP,
    }  # fmt: skip
    for seed in range(20):
        source = RandomProgram(seed)
        path = tmp_path / f"{seed}.elf"
        path.write_bytes(source.elf())
        addresses = np.array(sorted(source.instructions), np.uint64)
        decoded = Program.open(path).instructions_for(addresses)
        rows = decoded.index_of(addresses)
        assert (rows >= 0).all()
        assert decoded.kind[rows].tolist() == [
            kinds[source.instructions[a].kind] for a in addresses.tolist()
        ]


@pytest.mark.slow
def test_nothing_is_estimated_that_never_happened(corpus: Callable[[str], Path]) -> None:
    """SQLite, sampled; every branch taken and not taken is in the exact counts of that run."""
    program = Program.open(corpus("sqlite/sq.zst"))
    source = open_source(corpus("sqlite/sq.perf.data.zst"))
    assert isinstance(source, StackSource)
    flow = replay(count(source, program.image.layout).counts, program)
    rows = np.fromfile(corpus("sqlite/sq.exact.zst"), dtype="<u8").reshape(-1, 3)
    (code,) = (
        piece
        for event in source.space_events()
        if isinstance(event, Mmap) and event.path.endswith("/sq")
        for piece in pieces_of(event, program.image.layout)
    )
    exact = {(a - code.bias, b - code.bias): n for a, b, n in rows.tolist()}
    estimated = {edge: n for edge, n in known_branches(flow).items() if None not in edge}
    assert len(estimated) > 1000
    assert estimated.keys() <= exact.keys()
    table, past = flow.instructions, flow.not_taken > 0
    passed = set(zip(table.address[past].tolist(), table.end[past].tolist(), strict=True))
    assert len(passed) > 1000
    assert passed <= exact.keys()
    total, truly = sum(estimated.values()), sum(exact[edge] for edge in estimated)
    overlap = sum(min(n / total, exact[edge] / truly) for edge, n in estimated.items())
    assert overlap > 0.97
    assert flow.judged.valid.all()


def test_samples_that_begin_nowhere(program: Program) -> None:
    """A sample whose entries all lie in a library leaves nothing to replay."""
    source = MemorySource([Sample([(1 << 40, 1 << 41)])], [mapping(layout=program.image.layout)])
    flow = replay(count(source, program.image.layout).counts, program)
    assert len(flow.counts) == 0
    waterfall.check(flow.tallies)
