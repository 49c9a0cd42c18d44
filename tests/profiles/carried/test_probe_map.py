from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.carried import probe_map as module
from lbr2pgo.profiles.carried.probe_code import UNSEEN, ProbedFunction
from lbr2pgo.profiles.carried.probe_map import likeness, part_map, probe_map
from lbr2pgo.program.pseudo_probes import ProbeKind


def function(*probes: str) -> ProbedFunction:
    """Probes from 1 on: `call f`, `call *`, `-` for one without code, or a block's words."""
    kinds, callees, words = [UNSEEN], [frozenset[str]()], [Counter[str]()]
    for probe in probes:
        operation, _, callee = probe.partition(" ")
        if operation == "call":
            kind = ProbeKind.INDIRECT_CALL if callee == "*" else ProbeKind.DIRECT_CALL
        else:
            kind = UNSEEN if probe == "-" else ProbeKind.BLOCK
        kinds.append(kind)
        is_direct = kind == ProbeKind.DIRECT_CALL
        callees.append(frozenset({callee} if is_direct else ()))
        words.append(Counter(probe.split() if kind == ProbeKind.BLOCK else ()))
    return ProbedFunction(np.array(kinds, np.uint8), callees, words)


OLD = function("push mov", "cmp 0x7 je", "call f", "add lea 0x20", "call g", "pop ret")


def test_the_same_code_is_the_same() -> None:
    found = probe_map(OLD, OLD)
    assert found.to == {i: i for i in range(1, 7)}
    assert found.sure == set(range(1, 7))
    assert likeness(OLD, OLD) == 1


def test_probes_that_come_in_between_shift_the_rest() -> None:
    new = function(
        "push sub", "test jne", "call abort", "cmp 0x7 je", "call f", "add lea 0x20", "call g",
        "pop ret",
    )  # fmt: skip
    found = probe_map(OLD, new)
    assert found.to == {1: 1, 2: 4, 3: 5, 4: 6, 5: 7, 6: 8}
    assert found.sure == {1, 2, 3, 4, 5, 6}, "the entry is the entry, whatever its code is"
    assert 0.8 < likeness(OLD, new) < 1


def test_what_is_gone_is_nowhere() -> None:
    found = probe_map(OLD, function("push mov", "add lea 0x20", "call g", "pop ret"))
    assert found.to == {1: 1, 4: 2, 5: 3, 6: 4}


def test_calls_follow_their_callee() -> None:
    new = function("push mov", "cmp 0x7 je", "call g", "add lea 0x20", "call h", "pop ret")
    assert 3 not in probe_map(OLD, new).to
    assert probe_map(OLD, new, {"f": "g", "g": "h"}).to == {i: i for i in range(1, 7)}


def test_what_moved_is_found() -> None:
    new = function("push mov", "pop ret", "add lea 0x20", "call g", "cmp 0x7 je", "call f")
    found = probe_map(OLD, new)
    assert found.to == {1: 1, 2: 5, 3: 6, 4: 3, 5: 4, 6: 2}


def test_probes_without_code_are_the_last_choice() -> None:
    old = function("push", "cmp 0x9 je", "add 0x33")
    assert probe_map(old, function("push", "-", "add 0x33")).to == {1: 1, 2: 2, 3: 3}
    assert probe_map(old, function("push", "-", "cmp 0x9 je", "add 0x33")).to == {1: 1, 2: 3, 3: 4}
    assert probe_map(function("-", "xor 0x5", "-"), old).to == {}


def test_calls_through_pointers_are_like_each_other() -> None:
    old = function("push", "call *", "add 0x33")
    found = probe_map(old, function("push", "call f", "call *", "add 0x33"))
    assert found.to == {1: 1, 2: 3, 3: 4}
    assert 2 not in found.sure


def test_a_part_has_its_own_entry() -> None:
    part = part_map(OLD, function("add lea 0x20", "call g"), {}, [4, 5, 6])
    assert part.to == {4: 1, 5: 2}
    assert part_map(OLD, function(), {}, [4]).to == {}
    assert part_map(OLD, OLD, {}, []).to == {}


def test_too_long_stretches_are_left_alone(monkeypatch) -> None:
    """But not what tells itself apart from all others."""
    monkeypatch.setattr(module, "_MOST_PAIRS", 4)
    old = function("push", "a", "b", "c", "call f", "d")
    new = function("push", "a", "c", "b", "call f", "d")
    assert probe_map(old, new).to == {1: 1, 5: 5, 6: 6}


def exhaustive(worth: np.ndarray) -> float:
    """The most that pairs in ascending order are worth, by trying all."""
    rows, columns = worth.shape
    if not rows or not columns:
        return 0.0
    rest = max(exhaustive(worth[1:]), exhaustive(worth[:, 1:]))
    return max(rest, float(worth[0, 0]) + exhaustive(worth[1:, 1:]))


def total(worth: np.ndarray, pairs: Sequence[tuple[int, int]]) -> float:
    return sum(float(worth[pair]) for pair in pairs)


@given(st.integers(0, 4), st.integers(0, 4), st.data())
def test_no_other_pairs_are_worth_more(rows: int, columns: int, data: st.DataObject) -> None:
    values = st.sampled_from([0.0, 0.0, 0.05, 0.4, 1.0, 1.5])
    cells = data.draw(st.lists(values, min_size=rows * columns, max_size=rows * columns))
    worth = np.array(cells).reshape(rows, columns)
    pairs = module._in_order(worth)
    assert abs(total(worth, pairs) - exhaustive(worth)) < 1e-9
    assert all(worth[pair] > 0 for pair in pairs)
    firsts, seconds = ([pair[i] for pair in pairs] for i in (0, 1))
    assert firsts == sorted(set(firsts))
    assert seconds == sorted(set(seconds))


@given(st.permutations(range(7)))
def test_the_longest_ascent(order: list[int]) -> None:
    found = module._ascending(list(enumerate(order)))
    seconds = [second for _, second in found]
    assert seconds == sorted(seconds)
    ascents = (
        length
        for length in range(8)
        for some in combinations(order, length)
        if list(some) == sorted(some)
    )
    assert len(found) == max(ascents)
