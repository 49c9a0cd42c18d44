"""Where a program was loaded, told by its branches: on made-up programs whose place is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.find_by_branches import (
    CodeBranches,
    EdgesSeen,
    Fit,
    edges_of,
    find_load,
    fit_of,
)
from lbr2pgo.model.branch_stacks import from_lists
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.support.arrays import U64

TEXT, SIZE = 0x1000, 0x40000
LAYOUT = ImageLayout("a.out", None, "x86-64", True, (Segment(TEXT, TEXT, SIZE, SIZE, True),))
LIBRARY = 0x7FFFF7000000
BIASES = st.integers(-1, 2**35 - 1).map(lambda page: page << 12).filter(lambda b: b + TEXT >= 0)


def program(seed: int, branches: int = 400) -> CodeBranches:
    rng = np.random.default_rng(seed)
    address = TEXT + np.sort(rng.choice(SIZE // 4, branches, replace=False)).astype(np.uint64) * 4
    near = address.astype(np.int64) + rng.integers(-500, 500, branches)
    target = np.clip(near, TEXT, TEXT + SIZE - 1).astype(np.uint64)
    return CodeBranches(address, target, rng.random(branches) < 0.7)


def recorded(own: CodeBranches, bias: int, seed: int, entries: int = 300) -> EdgesSeen:
    """Some of the program's branches, and as many of a library."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(own.address), entries)
    anywhere = rng.integers(TEXT, TEXT + SIZE, entries).astype(np.uint64)
    to = np.where(own.has_target[rows], own.target[rows], anywhere)
    shift = np.uint64(bias % 2**64)
    elsewhere = rng.integers(LIBRARY, LIBRARY + 0x100000, (2, entries)).astype(np.uint64)
    from_ = np.concatenate([own.address[rows] + shift, elsewhere[0]])
    return edges(from_, np.concatenate([to + shift, elsewhere[1]]))


def edges(from_: U64, to: U64) -> EdgesSeen:
    stacks = [[(a, b, 0)] for a, b in zip(from_.tolist(), to.tolist(), strict=True)]
    return edges_of([from_lists(stacks)])


def joined(*parts: EdgesSeen) -> EdgesSeen:
    return edges(
        np.concatenate([np.repeat(part.from_, part.count) for part in parts]),
        np.concatenate([np.repeat(part.to, part.count) for part in parts]),
    )


@given(st.integers(0, 1000), BIASES)
def test_a_program_is_found_wherever_it_was_loaded(seed: int, bias: int) -> None:
    own = program(seed)
    load = find_load(recorded(own, bias, seed), LAYOUT, own)
    assert load is not None
    assert load.bias == bias
    assert load.fit == Fit(300, 300)


@given(st.integers(0, 1000))
def test_another_programs_branches_tell_nothing(seed: int) -> None:
    assert find_load(recorded(program(seed + 1), 0x5000000, seed), LAYOUT, program(seed)) is None


def test_a_program_in_two_places_is_in_none() -> None:
    own = program(1)
    first, second = recorded(own, 0x10000000, 2), recorded(own, 0x20000000, 3)
    assert find_load(joined(first, second), LAYOUT, own) is None
    few = second.take(np.arange(len(second.count)) % 40 == 0)
    assert find_load(joined(first, few), LAYOUT, own) is not None


def test_one_branch_alone_is_chance() -> None:
    own = program(1)
    (row, *more) = np.flatnonzero(own.has_target).tolist()
    assert find_load(edges(own.address[[row]], own.target[[row]]), LAYOUT, own) is None
    rows = [row, more[0]]
    assert find_load(edges(own.address[rows], own.target[rows]), LAYOUT, own) is not None


@pytest.mark.parametrize(("alike", "is_found"), [(32, True), (33, False)])
def test_branches_that_may_be_too_many_of_the_programs_tell_nothing(
    alike: int, is_found: bool
) -> None:
    """Each page has one branch, which goes as far from the same place as the others do."""
    address = np.uint64(TEXT) + np.uint64(4096) * np.arange(alike, dtype=np.uint64)
    own = CodeBranches(address, address + np.uint64(64), address > 0)
    found = find_load(edges(address, own.target), LAYOUT, own)
    assert (found is not None) == is_found


def test_nothing_recorded_and_a_program_without_branches_are_found_nowhere() -> None:
    own, none = program(1), np.zeros(0, np.uint64)
    assert find_load(edges(none, none), LAYOUT, own) is None
    assert find_load(recorded(own, 0, 1), LAYOUT, CodeBranches(none, none, none == 1)) is None


@pytest.mark.parametrize(
    ("from_", "to", "expected"),
    [
        (0x1100, 0x1200, True),
        (0x1100, 0x1204, False),  # goes elsewhere
        (0x10FD, 0x1200, True),  # the compare before it
        (0x10FD, 0x1204, False),
        (0x10F1, 0x1200, True),  # as far before it as an instruction is long
        (0x10F0, 0x1200, False),
        (0x1300, 0x9999, True),  # indirect
        (0x12FD, 0x9999, False),
        (0x1301, 0x9999, False),  # behind the last
    ],
)
def test_what_is_a_programs_own_branch(from_: int, to: int, expected: bool) -> None:
    own = CodeBranches(
        np.array([0x1100, 0x1300], np.uint64), np.array([0x1200, 0], np.uint64),
        np.array([True, False]),
    )  # fmt: skip
    found = own.own(np.array([from_], np.uint64), np.array([to], np.uint64))
    assert found.tolist() == [expected]


def test_only_branches_in_the_program_count_for_how_well_it_fits() -> None:
    own = CodeBranches(
        np.array([0x1100], np.uint64), np.array([0x1200], np.uint64), np.array([True])
    )
    stack = [(0x1100, 0x1200, 0), (0x1104, 0x1200, 0), (LIBRARY, 0x1200, 0)]
    fit = fit_of([from_lists([stack, stack])], AddressSpaces.fixed(LAYOUT), own)
    assert fit == Fit(4, 2)
    assert not fit.is_good
    assert Fit(10, 9).is_good
    assert not Fit(0, 0).is_good
