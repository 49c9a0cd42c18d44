from __future__ import annotations

import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders.fixtures import Corpus

from lbr2pgo.analyses.accuracy import (
    WORST,
    EdgeCounts,
    block_starts,
    compare,
    exact_edges,
    executions,
    measure,
    sum_edges,
)
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.replay.replay import Flow, replay
from lbr2pgo.sources.base import StackSource
from lbr2pgo.support.sums import overlap

KINDS = {"o": Kind.OTHER, "c": Kind.COND, "j": Kind.JUMP, "C": Kind.CALL, "r": Kind.RET}


def u64(*values: int) -> Any:
    return np.array(values, dtype=np.uint64)


def code(kinds: str, start: int = 0x100) -> InstructionTable:
    """One instruction of four bytes for each letter; a blank is a gap of four bytes."""
    places = [i for i, letter in enumerate(kinds) if letter != " "]
    n = len(places)
    return InstructionTable(
        address=u64(*(start + 4 * i for i in places)),
        size=np.full(n, 4, dtype=np.uint8),
        kind=np.array([KINDS[kinds[i]] for i in places], dtype=np.uint8),
        target=np.zeros(n, dtype=np.uint64),
        has_target=np.zeros(n, dtype=np.bool_),
    )


def edges(*rows: tuple[int | None, int | None, int]) -> EdgeCounts:
    """Edges by the numbers of four-byte instructions from 0x100 on; None lies outside."""

    def column(k: int) -> Any:
        return u64(*(0 if row[k] is None else 0x100 + 4 * row[k] for row in rows))  # type: ignore[operator]

    known = [(0 if row[0] is None else FROM) | (0 if row[1] is None else TO) for row in rows]
    counts = u64(*(row[2] for row in rows))
    return sum_edges(column(0), column(1), np.array(known, dtype=np.uint8), counts)


@dataclass
class FakeProgram:
    """Code and functions of a program that has no file."""

    table: InstructionTable
    starts: tuple[int, ...] = (0x100,)

    def instructions_for(self, addresses: Any) -> InstructionTable:
        return self.table

    symbols = SimpleNamespace(are_complete=True)
    patches = SimpleNamespace(address=np.zeros(0, np.uint64))

    @property
    def functions(self) -> Any:
        return self.regions

    @property
    def regions(self) -> Any:
        starts = u64(*self.starts)
        return SimpleNamespace(
            start=starts,
            label=lambda i: f"f{i}" if i else "",
            is_stub=np.zeros(len(starts), np.bool_),
            containing=lambda addresses: np.searchsorted(starts, addresses, side="right") - 1,
        )


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 1], [2, 2], 1.0),
        ([1, 0], [0, 1], 0.0),
        ([3, 1], [1, 3], 0.5),
        ([], [], 1.0),
        ([0, 0], [0, 0], 1.0),
        ([0, 0], [1, 0], 0.0),
        ([1, 0], [0, 0], 0.0),
    ],
)
def test_overlap(a: list[int], b: list[int], expected: float) -> None:
    assert overlap(u64(*a), u64(*b)) == expected
    assert overlap(u64(*b), u64(*a)) == expected


def test_compare_counts_what_was_seen() -> None:
    found = compare(u64(90, 10, 0, 0), u64(5, 0, 5, 0))
    assert (found.executed, found.seen, found.unreal) == (2, 1, 1)
    assert found.coverage == 0.9
    assert found.overlap == 0.5


def test_edges_add_up_and_lose_empty_rows() -> None:
    both = FROM | TO
    known = np.array([both, both, both, TO], dtype=np.uint8)
    found = sum_edges(u64(8, 4, 8, 0), u64(1, 2, 1, 2), known, u64(5, 0, 7, 2))
    assert list(
        zip(found.source.tolist(), found.target.tolist(), found.count.tolist(), strict=True)
    ) == [
        (0, 2, 2),
        (8, 1, 12),
    ]
    assert found.inside.tolist() == [False, True]


def test_exact_edges_of_one_image() -> None:
    inside, outside = [True, True, False, False], [True, False, True, False]
    found = exact_edges(
        u64(1, 2, 3, 4), u64(5, 6, 7, 8), np.array(inside), np.array(outside), u64(1, 1, 1, 1)
    )
    rows = zip(found.source.tolist(), found.target.tolist(), found.known.tolist(), strict=True)
    assert set(rows) == {(1, 5, FROM | TO), (2, 0, FROM), (0, 7, TO)}


def test_executions_of_a_loop() -> None:
    """Instruction 0 is entered once and comes back twice; 2 and 3 are skipped once."""
    table = code("ocooco r")
    found = edges((None, 0, 1), (1, 2, 2), (1, 4, 1), (4, 0, 2), (4, 5, 1))
    assert executions(found, table).tolist() == [3, 3, 2, 2, 3, 1, 0]


def test_executions_start_anew_behind_the_end_of_a_line() -> None:
    """The first instruction ran without an edge that says so: the error stays in its line."""
    table = code("oj oc r")
    found = edges((1, 3, 5), (4, 5, 5))
    assert executions(found, table).tolist()[2:4] == [5, 5]
    table = code("jor")
    assert executions(edges((0, 1, 1), (2, None, 1)), table).tolist() == [0, 1, 1]


def test_executions_of_no_code() -> None:
    assert executions(edges((0, 1, 1)), code("")).tolist() == []


def random_program(rng: random.Random, size: int) -> tuple[str, list[int]]:
    kinds = "".join(rng.choice("ooocj") for _ in range(size - 1)) + "j"
    return kinds, [rng.randrange(size) for _ in range(size)]


def walk(
    rng: random.Random, kinds: str, targets: list[int], steps: int
) -> tuple[list[int], dict[tuple[int, int], int], list[tuple[int, int]]]:
    """Execution counts, edge counts and the taken branches in their order."""
    executed, taken = [0] * len(kinds), []
    counts: dict[tuple[int, int], int] = {}
    at = 0
    for _ in range(steps):
        executed[at] += 1
        follows = at + 1
        jumps = kinds[at] == "j" or (
            kinds[at] == "c" and (rng.random() < 0.6 or follows == len(kinds))
        )
        if kinds[at] != "o":
            to = targets[at] if jumps else follows
            counts[at, to] = counts.get((at, to), 0) + 1
        if jumps:
            taken.append((at, targets[at]))
        at = targets[at] if jumps else follows
    return executed, counts, taken


@pytest.mark.parametrize("seed", range(20))
def test_executions_match_a_random_walk(seed: int) -> None:
    rng = random.Random(seed)
    kinds, targets = random_program(rng, 40)
    executed, counts, _ = walk(rng, kinds, targets, 3000)
    found = executions(edges(*((a, b, n) for (a, b), n in counts.items())), code(kinds))
    # The walk starts and stops in the middle of a line: one execution may be off there.
    assert np.abs(found.astype(np.int64) - np.array(executed)).max() <= 1


def sampled(taken: list[tuple[int, int]], depth: int) -> BranchCounts:
    """Traces of the whole walk, cut into stacks one behind the other."""
    rows = []
    for i, (source, target) in enumerate(taken):
        newest = i % depth == depth - 1 or i == len(taken) - 1
        end = 0 if newest else taken[i + 1][0]
        rows.append((source, target, end, FROM | TO | BRANCH | (0 if newest else END)))
    column = [u64(*(0x100 + 4 * row[k] for row in rows)) for k in range(3)]
    known = np.array([row[3] for row in rows], dtype=np.uint8)
    ones = np.ones(len(rows), dtype=np.uint64)
    return aggregate(*column, known, ones, ones)


def flow_of(counts: BranchCounts, program: FakeProgram) -> Flow:
    return replay(counts, program)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(5))
def test_a_recording_of_everything_agrees(seed: int) -> None:
    """Consecutive stacks of depth 512 over the whole walk are as good as the truth."""
    rng = random.Random(seed)
    kinds, targets = random_program(rng, 60)
    _, counts, taken = walk(rng, kinds, targets, 20_000)
    program = FakeProgram(code(kinds), (0x100, 0x150, 0x1A0))
    truth = edges(*((a, b, n) for (a, b), n in counts.items()))
    found = measure(flow_of(sampled(taken, 512), program), truth, program)  # type: ignore[arg-type]
    assert found.edges.overlap > 0.99
    assert found.blocks.overlap > 0.99
    assert found.edges.coverage > 0.99
    assert found.edges.unreal == 0


def test_functions_share_the_error() -> None:
    """Each function's error is half of the distance; together they are what is missing to 1."""
    program = FakeProgram(code("jjjjjj"), (0x100, 0x108, 0x110))
    truth = edges((0, 1, 50), (2, 3, 30), (4, 5, 20))
    taken = [(0, 1)] * 20 + [(2, 3)] * 60 + [(4, 5)] * 20
    found = measure(flow_of(sampled(taken, 1), program), truth, program)  # type: ignore[arg-type]
    assert found.edges.overlap == pytest.approx(0.7)
    assert [(f.name, round(f.error, 6)) for f in found.worst] == [("0x100", 0.15), ("f1", 0.15)]
    assert sum(f.error for f in found.worst) == pytest.approx(1 - found.edges.overlap)
    assert found.worst[0].overlap == 1.0
    assert (found.worst[0].share, found.worst[0].estimated_share) == (0.5, 0.2)


def test_only_the_worst_are_listed() -> None:
    count = 2 * WORST + 2
    program = FakeProgram(code("j" * count), tuple(0x100 + 4 * i for i in range(count)))
    truth = edges(*((i, 0, i + 1) for i in range(count)))
    taken = [(i, 0) for i in range(count)]
    found = measure(flow_of(sampled(taken, 1), program), truth, program)  # type: ignore[arg-type]
    assert len(found.worst) == WORST
    errors = [f.error for f in found.worst]
    assert errors == sorted(errors, reverse=True)


def test_an_empty_profile() -> None:
    program = FakeProgram(code("jj"))
    nothing = sampled([], 1)
    found = measure(flow_of(nothing, program), edges((0, 1, 5)), program)  # type: ignore[arg-type]
    assert (found.edges.overlap, found.edges.coverage, found.edges.seen) == (0.0, 0.0, 0)


def test_blocks_start_behind_branches_and_at_targets() -> None:
    table = code("ooCococo rr")
    starts = block_starts(table, edges((5, 1, 1), (None, 3, 1)))
    assert starts.tolist() == [0, 1, 3, 5, 7, 8, 9]


def test_sqlite(corpus: Corpus) -> None:
    """A recording at a period of about 1,009 is close to the exact counts of its run."""
    from lbr2pgo.counting.address_spaces import pieces_of
    from lbr2pgo.counting.count import count
    from lbr2pgo.model.address_space_events import Mmap
    from lbr2pgo.program.program import Program
    from lbr2pgo.sources.perf_data.reader import FORMAT

    program = Program.open(corpus("sqlite/sq.zst"))
    source = FORMAT.open(corpus("sqlite/sq.perf.data.zst"))
    assert isinstance(source, StackSource)
    layout = program.image.layout
    flow = replay(count(source, layout).counts, program)
    rows = np.fromfile(corpus("sqlite/sq.exact.zst"), dtype="<u8").reshape(-1, 3)
    (piece,) = (
        piece
        for event in source.space_events()
        if isinstance(event, Mmap) and event.path.endswith("/sq")
        for piece in pieces_of(event, layout)
    )
    inside = (rows[:, :2] >= piece.start) & (rows[:, :2] < piece.end)
    image = rows[:, :2] - np.uint64(piece.bias)
    exact = exact_edges(image[:, 0], image[:, 1], inside[:, 0], inside[:, 1], rows[:, 2])
    found = measure(flow, exact, program)
    assert found.edges.overlap > 0.98
    assert found.blocks.overlap > 0.98
    assert found.edges.coverage > 0.99
    assert found.edges.unreal == found.blocks.unreal == 0
    assert found.worst[0].name.startswith("_ZL15sqlite3VdbeExecP4Vdbe")
