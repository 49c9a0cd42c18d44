"""Loads from virtual tables go where their call stacks say, or are shared out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.evidence.vtable_loads import FROM_OUTSIDE, UNKNOWN, ReturnPaths, VtableLoads
from lbr2pgo.model.context_counts import Callers, ContextBranches, ContextCounts, ContextRuns
from lbr2pgo.profiles.llvm.contexts.vtable_contexts import loads_by_context, shared
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import placed_addresses, placed_array

CODE = """
    .globl _start
    .type _start, @function
_start:
    call f
    call f
    ret
    .size _start, . - _start
    .type f, @function
f:  nop
    nop
    ret
    .size f, . - f
    .data
    .type _ZTV1A, @object
_ZTV1A: .quad 0
    .size _ZTV1A, 8
"""
ROOT, ONE, OTHER = range(3)
"""Nodes: nobody, and the two calls."""
BY_ONE, BY_OTHER, BY_NONE = FROM_OUTSIDE + 1, FROM_OUTSIDE + 2, FROM_OUTSIDE + 3
"""Call stacks: of the two calls, and one that returns behind no call that was seen."""

Run = tuple[int, int, int, int]
"""Node, first and last byte in `f`, count."""
Found = set[tuple[int, int]]
"""Node and count."""


@pytest.fixture(scope="module")
def found(link: Callable[..., Path]) -> Callable[[int, int, Sequence[Run]], Found]:
    """What becomes of a load in `f`: its call stack, its count, and what ran."""
    program = Program.open(link(CODE))
    start, f = (program.address_of(name) for name in ("_start", "f"))
    assert start is not None
    assert f is not None
    calls = Callers(np.array([-1, 0, 0]), placed_array([0, start, start + 5]))
    paths = ReturnPaths(
        np.array([-1, -1, FROM_OUTSIDE, FROM_OUTSIDE, FROM_OUTSIDE]),
        placed_array([0, 0, start + 5, start + 10, start + 1]),
    )
    nothing = np.zeros(0, np.uint64)
    numbers = np.zeros(0, np.int64)
    branches = ContextBranches(
        numbers, placed_addresses(nothing), np.zeros(0, np.bool_), placed_addresses(nothing),
        nothing,
    )  # fmt: skip
    symbol = next(i for i, name in enumerate(program.symbols.names) if name == "_ZTV1A")

    def find(path: int, count: int, ran: Sequence[Run]) -> Found:
        columns = np.array(ran, np.int64).reshape(-1, 4).T
        node, first, last, times = (column.copy() for column in columns)
        runs = ContextRuns(
            node, placed_array((first + f).tolist()), placed_array((last + f).tolist()),
            times.astype(np.uint64),
        )  # fmt: skip
        loads = VtableLoads(
            placed_array([f + 1]), np.array([symbol]), np.array([path]),
            np.array([count], np.uint64), paths, True,
        )  # fmt: skip
        told = loads_by_context(loads, ContextCounts(calls, runs, branches), program)
        assert set(told.ip.tolist()) <= {f + 1}
        assert told.names == ("_ZTV1A",)
        assert not told.vtable.any()
        return {*zip(told.node.tolist(), told.count.tolist(), strict=True)}

    return find


BOTH = [(ONE, 0, 2, 30), (OTHER, 1, 2, 10)]


@pytest.mark.parametrize(("path", "expected"), [
    (BY_ONE, {(ONE, 8)}), (BY_OTHER, {(OTHER, 8)}),
    (UNKNOWN, {(ONE, 6), (OTHER, 2)}), (BY_NONE, {(ONE, 6), (OTHER, 2)}),
    (FROM_OUTSIDE, {(ONE, 6), (OTHER, 2)}),
])  # fmt: skip
def test_a_load_is_where_its_call_stack_says_or_shared(
    path: int, expected: Found, found: Callable[[int, int, Sequence[Run]], Found]
) -> None:
    assert found(path, 8, BOTH) == expected


def test_what_code_outside_called_has_no_callers(
    found: Callable[[int, int, Sequence[Run]], Found],
) -> None:
    ran = [*BOTH, (ROOT, 0, 1, 40)]
    assert found(FROM_OUTSIDE, 8, ran) == {(ROOT, 8)}
    assert found(UNKNOWN, 8, ran) == {(ROOT, 4), (ONE, 3), (OTHER, 1)}


def test_only_contexts_in_which_the_instruction_ran_get_any(
    found: Callable[[int, int, Sequence[Run]], Found],
) -> None:
    assert found(BY_OTHER, 8, [(ONE, 0, 1, 3), (OTHER, 2, 2, 9), (OTHER, 0, 0, 9)]) == {(ONE, 8)}
    assert found(BY_ONE, 8, [(ONE, 2, 2, 3)]) == set()
    assert found(UNKNOWN, 8, []) == set()


@given(st.integers(0, 2**64), st.lists(st.integers(0, 2**64), min_size=1).filter(any))
def test_shares_add_up_and_are_off_by_less_than_one(count: int, weights: list[int]) -> None:
    shares = shared(count, weights)
    assert sum(shares) == count
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share * sum(weights) - count * weight) < sum(weights)
