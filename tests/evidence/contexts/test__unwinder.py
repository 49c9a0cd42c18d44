from __future__ import annotations

from collections import Counter

import numpy as np
from builders.context_oracle import PlainCode, PlainSample, call_stack, unwind_all
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lbr2pgo.evidence.contexts import _unwinder as u
from lbr2pgo.evidence.contexts._unwinder import Unwinder, number_sites
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.native.walk import StackKind, Stacks

SIZE = 16
KINDS = ("other", "other", "other", "call", "call", "return", "jump")
MARKS = {"call": u.CALL, "return": u.RETURN, "jump": 0, "other": 0}


@st.composite
def codes(draw: st.DrawFn) -> PlainCode:
    kinds = {16 + at: draw(st.sampled_from(KINDS)) for at in range(SIZE)}
    calls = {a + 1: a for a, kind in kinds.items() if kind == "call"}
    places = st.sampled_from(sorted(kinds))
    entries, frameless = (frozenset(draw(st.sets(places, max_size=n))) for n in (4, SIZE))
    size = draw(st.integers(1, 9))
    functions = {a: a // size for a in kinds}
    callees = {a: functions[draw(places)] for a in draw(st.sets(places, max_size=3))}
    return PlainCode(kinds, calls, entries, frameless, functions, callees)


@st.composite
def worlds(draw: st.DrawFn):
    """Code and samples of it, which mostly went straight from branch to branch."""
    code = draw(codes())
    addresses = st.integers(14, 16 + SIZE + 1)
    frames = st.lists(st.sampled_from([*code.calls, 1, draw(addresses)]), max_size=5)
    samples = []
    for _ in range(draw(st.integers(0, 4))):
        entries = [(draw(addresses), draw(addresses))]
        for _ in range(draw(st.integers(0, 7))):
            newer = entries[-1][0]
            starts = [a for a in range(14, newer + 1) if code.runs(a, newer)]
            target = draw(st.sampled_from(starts) if starts and draw(st.booleans()) else addresses)
            entries.append((draw(addresses), target))
        if entries[:1] == entries[1:2]:
            del entries[0]  # a copy that the recorder made is not counted
        samples.append((draw(frames), entries, draw(st.integers(1, 3))))
    return code, samples


def offsets(lengths) -> np.ndarray:
    return np.cumsum([0, *lengths]).astype(np.int64)


def unwound(
    code: PlainCode, samples, *, as_llvm: bool = False, most_frames: int = 100, goes_to=None
):
    """The unwinder behind the samples."""
    table = np.array(sorted(code.kinds), np.uint64)
    kinds = [code.kinds[address] for address in table.tolist()]
    marks = [MARKS[k] | u.ENTRY * (a in code.entries) | u.FRAMELESS * (a in code.frameless)
             for a, k in zip(table.tolist(), kinds, strict=True)]  # fmt: skip
    targets = [(goes_to or {}).get(address, 0) for address in table.tolist()]
    if goes_to is not None:
        marks = [
            mark | (u.DIRECT if to else 0) | u.NO_BRANCH_THERE * (kind == "other")
            for mark, kind, to in zip(marks, kinds, targets, strict=True)
        ]
    ends = np.isin(kinds, ("jump", "return"))
    found = Unwinder(as_llvm, most_frames)
    found.set_code(
        table, np.array(marks, np.uint8), np.cumsum(ends) - ends, np.array(targets, np.uint64)
    )
    sites, spaces = RowIds(), np.zeros(len(samples), np.int64)
    u.outside_site(sites)
    everywhere = np.array([[1, 1 << 40]], np.uint64)
    frames = np.array([f for s in samples for f in s[0]], np.uint64).reshape(-1, 1)
    entries = np.array([e for s in samples for e in s[1]], np.uint64).reshape(-1, 2)
    frame_offsets = offsets(len(s[0]) for s in samples)
    entry_offsets = offsets(len(s[1]) for s in samples)
    entry_sites = number_sites(sites, entries, entry_offsets, spaces, everywhere, 2)
    frame_sites = number_sites(sites, frames, frame_offsets, spaces, everywhere, 1).ravel()
    row = {a: i for i, a in enumerate(table.tolist())}
    address = sites.rows()[:, 1].tolist()
    found.set_sites(
        np.array([row.get(a, -1) for a in address], np.int64),
        np.array([row.get(code.calls.get(a, 0), -1) for a in address], np.int64),
        np.array([code.functions.get(a, -1) for a in address], np.int64),
        np.array([code.callees.get(code.calls.get(a, 0), -2) for a in address], np.int64),
    )
    weights = np.array([s[2] for s in samples], np.uint64)
    kind = StackKind.AS_LLVM if as_llvm else StackKind.CONSECUTIVE
    kinds = np.full(len(samples), kind, np.uint8)
    words = np.pad(entries, ((0, 0), (0, 1)))
    stacks = Stacks(words, entry_offsets, spaces, kinds, weights, everywhere)
    doubts = found.add_source()
    found.unwind(stacks, entry_sites, frame_sites, frame_offsets, doubts, 0, len(samples))
    u.judge([doubts])
    return found


def records(found: Unwinder) -> Counter:
    nodes, root = RowIds(), np.zeros(1, np.uint64)
    nodes.number_rows(root, root)
    columns = found.counted(found.places_in(nodes))
    paths: list[tuple[int, ...]] = [()]
    for parent, call, _ in nodes.rows().tolist()[1:]:
        paths.append((*paths[parent], call))
    counts: Counter = Counter()
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for has_run, ran_in, has_branch, left_in, source, place, end, count in rows:
        if has_run:
            counts[paths[ran_in], "run", place, end] += count
        if has_branch:
            counts[paths[left_in], "branch", source, place] += count
    return counts


CALL_LAST = PlainCode(
    {**{16 + at: "other" for at in range(13)}, 29: "return", 31: "call"}, {32: 31}
)


@settings(max_examples=500, deadline=None)
@given(worlds(), st.booleans())
@example((CALL_LAST, [([], [(14, 14), (32, 14), (29, 32), (14, 16)], 1)]), False)
def test_samples_are_unwound_as_plain_lists_of_calls_are(world, as_llvm: bool) -> None:
    code, samples = world
    plain = [PlainSample(frames, entries, weight) for frames, entries, weight in samples]
    found = unwound(code, samples, as_llvm=as_llvm)
    assert records(found) == unwind_all(plain, code, as_llvm=as_llvm)


@settings(max_examples=300, deadline=None)
@given(worlds())
def test_everything_that_was_read_is_tallied_once(world) -> None:
    code, samples = world
    tallies = unwound(code, samples).tallies()
    weight = sum(w for _, _, w in samples)
    assert tallies[[u.UNWOUND, u.NO_BRANCH]].sum() == weight
    chains = tallies[[u.NO_CHAIN, u.WHOLE, u.NO_CALL, u.TOO_DEEP, u.NO_FRAME]]
    assert chains.sum() == tallies[u.UNWOUND]
    runs = 0
    for _, entries, w in samples:
        inside = [e for e in entries if e[0] in code.kinds or e[1] in code.kinds]
        runs += max(len(inside) - 1, 0) * w
    assert tallies[u.RUNS :].sum() == runs


def test_a_deep_call_stack_keeps_its_innermost_frames() -> None:
    """c calls itself: its frames are behind the call at 20."""
    code = PlainCode({20: "call", 21: "other", 22: "jump", 40: "other"}, {21: 20})
    sample = ([22, *[21] * 9], [(22, 20), (22, 20)], 1)
    found = unwound(code, [sample], most_frames=4)
    assert {callers for callers, *_ in records(found)} == {(20, 20, 20, 20)}
    assert found.tallies()[u.TOO_DEEP] == 1


def test_samples_of_a_negative_space_and_what_is_outside_share_one_site() -> None:
    sites, bounds = RowIds(), np.array([[5, 9]], np.uint64)
    u.outside_site(sites)
    addresses = np.array([[8, 8], [5, 9], [8, 5]], np.uint64)
    found = number_sites(sites, addresses, offsets([1, 2]), np.array([-1, 0]), bounds, 2)
    assert found.tolist() == [[0, 0], [1, 0], [2, 1]]


def test_what_stands_above_an_invalid_return_address_is_unknown() -> None:
    code = PlainCode({20: "call", 21: "other", 30: "other", 31: "other"}, {21: 20})
    assert call_stack([31, 21, 30, 21], code) == [20]
    found = unwound(code, [([31, 21, 30, 21], [(31, 31), (31, 30)], 1)])
    assert found.tallies()[u.NO_CALL] == 1
    assert {callers for callers, *_ in records(found)} == {(20,)}


def test_branches_that_their_instructions_can_not_make_are_none() -> None:
    """20 jumps to 24, 26 jumps anywhere, and 22 is no branch."""
    kinds = dict.fromkeys(range(20, 30), "other") | {20: "jump", 26: "jump"}
    sample = ([], [(26, 21), (20, 25), (22, 20), (20, 21), (26, 20), (20, 24)], 1)
    code = PlainCode(kinds, {})
    found = records(unwound(code, [sample], goes_to={20: 24}))
    branches = {(a, b) for _, what, a, b in found if what == "branch"}
    assert branches == {(26, 21), (26, 20), (20, 24)}
    believed = records(unwound(code, [sample]))
    assert {row: n for row, n in found.items() if row[1] == "run"} == {
        row: n for row, n in believed.items() if row[1] == "run"
    }
