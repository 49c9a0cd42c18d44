"""Branches recorded at the compare before them, in hand-made code."""

from __future__ import annotations

import numpy as np
import pytest

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.replay.fusion import unfused

# 100 add; 104 cmp; 107 je 120; 109 jmp 100; 10e cmp; 111 mov; 115 je 100; 120 add; 124 ret;
# 130 cmp; (gap) 140 je 100
CODE = (
    (0x100, 4, Kind.OTHER, None), (0x104, 3, Kind.OTHER, None), (0x107, 2, Kind.COND, 0x120),
    (0x109, 5, Kind.JUMP, 0x100), (0x10E, 3, Kind.OTHER, None), (0x111, 4, Kind.OTHER, None),
    (0x115, 6, Kind.COND, 0x100), (0x120, 4, Kind.OTHER, None), (0x124, 1, Kind.RET, None),
    (0x130, 3, Kind.OTHER, None), (0x140, 2, Kind.COND, 0x100),
)  # fmt: skip
TABLE = InstructionTable(
    np.array([row[0] for row in CODE], np.uint64),
    np.array([row[1] for row in CODE], np.uint8),
    np.array([row[2] for row in CODE], np.uint8),
    np.array([row[3] or 0 for row in CODE], np.uint64),
    np.array([row[3] is not None for row in CODE], np.bool_),
)


def counts_of(*traces: tuple[int | None, int | None, int | None, int]) -> BranchCounts:
    columns = [np.array([t[i] or 0 for t in traces], np.uint64) for i in range(4)]
    known = [
        BRANCH | FROM * (t[0] is not None) | TO * (t[1] is not None) | END * (t[2] is not None)
        for t in traces
    ]
    missed = np.ones(len(traces), np.uint64)
    return aggregate(
        *columns[:3], np.array(known, np.uint8), columns[3], missed, tallies={"a": 1}
    )  # fmt: skip


def rows_of(counts: BranchCounts) -> list[tuple[int, int, int, int]]:
    columns = (counts.from_, counts.to, counts.end, counts.count)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_branch_recorded_at_its_compare_is_moved_to_where_it_is() -> None:
    counts, moved = unfused(counts_of((0x104, 0x120, 0x124, 5)), TABLE)
    assert rows_of(counts) == [(0x107, 0x120, 0x124, 5)]
    assert moved == 5
    assert counts.mispredicted.tolist() == [1]
    assert counts.tallies == {"a": 1}


def test_a_line_that_ends_at_the_compare_ends_at_the_branch() -> None:
    counts, _ = unfused(counts_of((0x104, 0x120, None, 5), (0x109, 0x100, 0x104, 4)), TABLE)
    assert rows_of(counts) == [(0x107, 0x120, 0, 5), (0x109, 0x100, 0x107, 4)]


def test_fused_and_plain_records_of_one_branch_add_up() -> None:
    counts, moved = unfused(counts_of((0x104, 0x120, None, 5), (0x107, 0x120, None, 2)), TABLE)
    assert rows_of(counts) == [(0x107, 0x120, 0, 7)]
    assert moved == 5


def test_something_may_stand_between_the_compare_and_its_branch() -> None:
    counts, moved = unfused(counts_of((0x10E, 0x100, None, 1)), TABLE)
    assert rows_of(counts) == [(0x115, 0x100, 0, 1)]
    assert moved == 1


@pytest.mark.parametrize(
    "trace",
    [
        (0x107, 0x120, None, 1),  # the branch itself
        (0x104, 0x100, None, 1),  # an interrupt that went somewhere else
        (0x104, None, None, 1),  # an interrupt into the kernel
        (0x100, 0x124, None, 1),
        (0x120, 0x100, None, 1),  # the next branch is a return
        (0x130, 0x100, None, 1),  # no code between the compare and the branch
        (0x105, 0x120, None, 1),  # inside an instruction
        (None, 0x120, None, 1),
    ],
)
def test_nothing_else_is_touched(trace: tuple[int | None, int | None, int | None, int]) -> None:
    counts = counts_of(trace)
    assert unfused(counts, TABLE) == (counts, 0)
    assert unfused(counts, TABLE)[0] is counts


@pytest.mark.parametrize(
    ("sizes", "is_found"),
    [((14,), True), ((15,), False), ((3, 3, 3, 3), True), ((2, 2, 2, 2, 2), False)],
)
def test_a_branch_is_looked_for_in_fifteen_bytes_and_four_instructions(
    sizes: tuple[int, ...], is_found: bool
) -> None:
    """Instructions of these sizes and the branch behind them; the first is the compare."""
    n = len(sizes)
    target = np.array([0] * n + [0x100], np.uint64)
    table = InstructionTable(
        0x104 + np.cumsum([0, *sizes]).astype(np.uint64),
        np.array([*sizes, 2], np.uint8),
        np.array([Kind.OTHER] * n + [Kind.COND], np.uint8),
        target,
        target > 0,
    )
    _, moved = unfused(counts_of((0x104, 0x100, None, 7)), table)
    assert moved == 7 * is_found


def test_an_empty_table_of_instructions_has_no_branches() -> None:
    counts = counts_of((0x104, 0x120, None, 5))
    assert unfused(counts, InstructionTable.empty()) == (counts, 0)
