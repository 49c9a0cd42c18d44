"""Chains of functions, and the frames that they make, against plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.dwarf._frames import chain_offsets, fill_frames, scopes
from lbr2pgo.program.dwarf._frames import chains as native_chains
from lbr2pgo.program.dwarf._functions import DESCRIPTION, DIE
from lbr2pgo.program.dwarf._lines import FOUND


def dies(*parents: int, subprograms: tuple[int, ...] = (0,)) -> np.ndarray:
    rows = np.zeros(len(parents), DIE)
    rows["parent"] = parents
    rows["is_subprogram"][list(subprograms)] = True
    return rows


def chains(rows: np.ndarray, leaves: list[int], limit: int = 10) -> tuple[list[list[int]], int]:
    leaves_ = np.array(leaves, np.int64)
    offsets, cut = chain_offsets(leaves_, rows, limit)
    filled = native_chains(leaves_, rows, offsets)
    return [part.tolist() for part in np.split(filled, offsets[1:-1])], cut


def test_chains_run_from_the_function_to_the_leaf() -> None:
    rows = dies(-1, 0, 1, 0)
    assert chains(rows, [2, -1, 0, 3]) == ([[0, 1, 2], [], [0], [0, 3]], 0)


def test_chains_end_at_the_first_function_around() -> None:
    rows = dies(-1, 0, 1, 2, subprograms=(0, 2))
    assert chains(rows, [3]) == ([[2, 3]], 0)


def test_chains_too_deep_are_cut_at_the_outer_end_and_counted() -> None:
    rows = dies(-1, 0, 1, 2)
    assert chains(rows, [3, 1, 0], limit=2) == ([[2, 3], [0, 1], [0]], 1)


some_dies = st.lists(st.tuples(st.integers(-1, 7), st.booleans()), min_size=1, max_size=8)


@given(some_dies, st.lists(st.integers(-1, 7), max_size=9), st.integers(1, 5))
def test_scopes_are_the_chains_with_each_function_once(
    some: list[tuple[int, bool]], leaves: list[int], limit: int
) -> None:
    rows = dies(*(min(parent, i - 1) for i, (parent, _) in enumerate(some)), subprograms=())
    rows["is_subprogram"] = [is_subprogram for _, is_subprogram in some]
    leaves = [min(leaf, len(some) - 1) for leaf in leaves]
    whole, _ = chains(rows, leaves, limit=len(some))
    kept = [chain if len(chain) <= limit else [] for chain in whole] if leaves else []
    is_around, parent, scope, cut = scopes(np.array(leaves, np.int64), rows, limit)
    around = np.flatnonzero(is_around).tolist()
    assert cut == sum(len(chain) > limit for chain in whole)
    assert around == sorted({row for chain in kept for row in chain})
    found = []
    for at in scope.tolist():
        chain = []
        while at >= 0:
            chain.insert(0, around[at])
            at = int(parent[at])
        found.append(chain)
    assert found == kept


DIES = 6


@given(st.lists(st.lists(st.integers(0, DIES - 1), max_size=4), max_size=9))
def test_frames_are_at_the_calls_inside_of_them_and_the_leaf_at_its_line(
    stacks: list[list[int]],
) -> None:
    lengths = [len(stack) for stack in stacks]
    offsets = np.cumsum([0, *lengths])
    described = np.zeros(DIES, DESCRIPTION)
    columns = ("call_file", "call_line", "discriminator", "decl_line")
    for i, name in enumerate(columns):
        described[name] = 10 * i + np.arange(DIES)
    leaf = np.zeros(len(stacks), FOUND)
    leaf["file"], leaf["line"], leaf["discriminator"] = 100 + np.arange(3 * len(stacks)).reshape(
        3, -1
    )
    die = np.array([die for stack in stacks for die in stack], np.int32)
    expected = []
    for stack, last in zip(stacks, leaf.tolist(), strict=True):
        places = [(inner, 10 + inner, 20 + inner) for inner in stack[1:]] + [last[1:4]]
        expected += [(*at, 30 + die) for die, at in zip(stack, places, strict=False)]
    found = fill_frames(offsets, die, leaf, described)
    assert [*zip(*(column.tolist() for column in found), strict=True)] == expected


def test_an_address_without_function_may_have_a_line() -> None:
    leaf = np.array([(1, 2, 3, 4, 5)], FOUND)
    found = fill_frames(np.array([0, 1]), np.array([-1], np.int32), leaf, np.zeros(0, DESCRIPTION))
    assert [column.tolist() for column in found] == [[2], [3], [4], [0]]
