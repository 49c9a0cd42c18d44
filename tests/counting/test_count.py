"""Each counting rule on a stack of a few entries; stacks are written newest entry first."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from builders.counted_stacks import (
    ABORT,
    ERET,
    EXTENDED,
    IRQ,
    KERNEL,
    LIBRARY,
    NOT_TAKEN,
    SERROR,
    SYSCALL,
    SYSRET,
    WRONG_PATH,
    A,
    B,
    C,
    D,
    E,
    Entry,
    F,
    counted,
    event,
    loaded,
    lost,
    of_stack,
    rows_of,
)
from builders.sources import BASE, LAYOUT, MemorySource, Sample, mapping
from builders.trace_oracle import POISON
from builders.trace_oracle import Tally as OracleTally
from builders.trace_oracle import count_stack as oracle_count_stack
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.counting.count import count
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.model import waterfall
from lbr2pgo.model.address_space_events import Comm, Exit, Fork, SpaceEvent
from lbr2pgo.model.branch_counts import BRANCH, END, TO, BranchCounts
from lbr2pgo.model.branch_stacks import MISPREDICTED
from lbr2pgo.model.count_sums import merge
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.sources.base import Addresses


def test_neighbours_make_the_fall_through_between_them() -> None:
    counts = of_stack((B, C), (D, A), (F, C))
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, A, B, 1), (F, C, D, 1)}
    assert counts.has(BRANCH).all()
    assert lost(counts) == {}


def test_a_single_entry_has_no_line() -> None:
    assert rows_of(of_stack((B, C))) == [(B, C, None, 1)]


def test_equal_traces_add_up_and_keep_their_mispredictions() -> None:
    missed, right = (D, A, MISPREDICTED), (D, A, 2)
    counts = of_stack((B, C), missed, (B, C), right, (B, C), missed)
    assert set(rows_of(counts)) == {(B, C, None, 1), (B, C, D, 2), (D, A, B, 3)}
    assert dict(zip(counts.from_.tolist(), counts.mispredicted.tolist(), strict=True))[D] == 2


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ((0, 0, 0), "empty"),
        ((0, 0, MISPREDICTED), "empty"),
        ((POISON, POISON), "poison"),
        ((D, POISON), "poison"),
        ((POISON, A), "poison"),
        ((D, A, WRONG_PATH), "wrong_path"),
        ((D, A, NOT_TAKEN), "not_taken"),
        ((D, A | 1 << 61), "bogus_target"),
        ((LIBRARY, LIBRARY + 8), "outside"),
        ((KERNEL, KERNEL + 8), "outside"),
    ],
)
def test_what_is_no_branch_of_the_program_is_dropped_whole_and_breaks_the_chain(
    entry: Entry, reason: str
) -> None:
    counts = of_stack((B, C), entry, (D, A), (F, C))
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, A, None, 1), (F, C, D, 1)}
    assert lost(counts) == {reason: 1}


def test_a_wrong_path_is_one_value_of_the_field() -> None:
    for right in (0, 2 << 24, 3 << 24):
        assert lost(of_stack((B, C, right))) == {}


def test_a_record_with_its_source_only_ends_a_line_but_starts_none() -> None:
    counts = of_stack((B, C), (D, 0), (F, C))
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, None, None, 1), (F, C, D, 1)}


def test_a_record_with_its_target_only_starts_a_line_but_ends_none() -> None:
    counts = of_stack((B, C), (0, A), (F, C))
    assert set(rows_of(counts)) == {(B, C, None, 1), (None, A, B, 1), (F, C, None, 1)}


def test_address_zero_is_no_address_even_where_the_image_begins_at_zero() -> None:
    layout = ImageLayout("a.o", None, "x86-64", True, (Segment(0, 0, 4096, 4096, True),))
    source = MemorySource([Sample([(0x20, 0x30), (0x40, 0), (0, 0x40), (0x50, 0x60)])])
    assert set(rows_of(count(source, layout).counts)) == {
        (0x20, 0x30, None, 1), (0x40, None, None, 1), (None, 0x40, 0x40, 1), (0x50, 0x60, None, 1),
    }  # fmt: skip


def test_calls_into_and_returns_from_other_images_are_branches_across_the_border() -> None:
    counts = of_stack((B, C), (LIBRARY + 8, A), (LIBRARY, LIBRARY + 4), (D, LIBRARY), (F, C))
    assert set(rows_of(counts)) == {
        (B, C, None, 1), (None, A, B, 1), (D, None, None, 1), (F, C, D, 1),
    }  # fmt: skip
    assert lost(counts) == {"outside": 1}


def test_an_aborted_transaction_is_an_edge_but_the_code_before_it_was_undone() -> None:
    counts = of_stack((B, C), (D, A, ABORT), (F, C))
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, A, B, 1), (F, C, None, 1)}


@pytest.mark.parametrize("kind", [IRQ, ERET, SERROR, EXTENDED])
def test_an_exception_is_no_branch_of_the_program(kind: int) -> None:
    counts = of_stack((B, C), (KERNEL, A, ERET), (D, KERNEL, kind), (F, C))
    bare = counts.has(TO | END) & ~counts.has(BRANCH)
    assert set(rows_of(counts)) == {(B, C, None, 1), (None, A, B, 1), (F, C, None, 1)}
    assert rows_of(counts)[int(np.flatnonzero(bare)[0])] == (None, A, B, 1)
    assert lost(counts) == {"exception": 2}


def test_a_mispredicted_return_from_an_exception_is_none_of_the_program() -> None:
    counts = of_stack((B, C), (KERNEL, A, ERET | MISPREDICTED), (D, KERNEL, IRQ))
    assert counts.mispredicted.sum() == 0


def test_an_interrupt_within_the_image_neither_counts_nor_ends_a_line() -> None:
    counts = of_stack((B, C), (D, A, IRQ), (F, C))
    assert set(rows_of(counts)) == {(B, C, None, 1), (None, A, B, 1), (F, C, None, 1)}


def test_a_system_call_ends_a_line_and_its_return_starts_one() -> None:
    counts = of_stack((B, C), (KERNEL, A, SYSRET), (D, KERNEL, SYSCALL), (F, C))
    assert set(rows_of(counts)) == {
        (B, C, None, 1), (None, A, B, 1), (D, None, None, 1), (F, C, D, 1),
    }  # fmt: skip


def test_a_copy_of_the_newest_entry_is_dropped_and_the_chain_goes_on() -> None:
    counts = of_stack((B, E), (B, E), (D, A))
    assert set(rows_of(counts)) == {(B, E, None, 1), (D, A, B, 1)}
    assert lost(counts) == {"duplicate": 1}


def test_a_far_loop_back_is_a_copy_too_but_a_tight_loop_repeats() -> None:
    near, far = (0x37FE, 0x2800), (0x3800 - 1, 0x27FF)
    wide = replace(LAYOUT, segments=(Segment(0x2000, 0x0, 0x2000, 0x2000, True),))
    source = MemorySource(
        [Sample([near, near]), Sample([far, far])], [mapping(base=0, layout=wide)]
    )
    found = count(source, wide).counts
    assert set(rows_of(found)) == {
        (near[0], near[1], None, 1), (near[0], near[1], near[0], 1), (far[0], far[1], None, 1),
    }  # fmt: skip
    assert lost(found) == {"duplicate": 1}


def test_a_jump_to_itself_is_a_tight_loop() -> None:
    assert set(rows_of(of_stack((B, B), (B, B)))) == {(B, B, None, 1), (B, B, B, 1)}


def test_a_copy_may_differ_in_its_flags() -> None:
    counts = of_stack((B, E, 2 | 9 << 4), (B, E, 1 | 3 << 4), (D, A))
    assert lost(counts) == {"duplicate": 1}
    assert counts.mispredicted.sum() == 0


@pytest.mark.parametrize("flags", [NOT_TAKEN, WRONG_PATH, IRQ])
def test_what_is_no_branch_has_no_copy(flags: int) -> None:
    counts = of_stack((B, E, flags), (B, E), (D, A))
    assert set(rows_of(counts)) == {(B, E, None, 1), (D, A, B, 1)}
    assert lost(counts).keys().isdisjoint({"duplicate"})


def test_only_the_newest_entry_is_recorded_twice() -> None:
    counts = of_stack((D, A), (B, E), (B, E), (B, E))
    assert lost(counts) == {}
    assert int(counts.count.sum()) == 4


def test_three_equal_entries_lose_one() -> None:
    assert lost(of_stack((B, E), (B, E), (B, E))) == {"duplicate": 1}


def test_on_demand_all_entries_that_touch_the_image_are_neighbours() -> None:
    stack = [(B, C), (0, 0), (D, A, WRONG_PATH), (D, A, IRQ)]
    source = MemorySource([Sample(stack, event=0)], [mapping(base=0)], (event("call_stack"),))
    counts = counted(source, ImageFacts(LAYOUT, believes_entries=True))
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, A, B, 1), (D, A, D, 1)}
    assert lost(counts) == {"outside": 1}


def test_a_weight_counts_as_so_many_samples() -> None:
    missed = (D, A, MISPREDICTED)
    counts = counted(MemorySource([Sample([(B, C), missed], weight=7)], [mapping(base=0)]))
    assert set(rows_of(counts)) == {(B, C, None, 7), (D, A, B, 7)}
    assert counts.mispredicted.sum() == 7
    assert counts.tallies["samples_read"] == 7
    assert counts.tallies["branches_read"] == 14


def test_run_time_addresses_become_image_addresses() -> None:
    counts = counted(MemorySource([loaded((B, C), (D, A))], [mapping()]))
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, A, B, 1)}
    assert counts.build_id == LAYOUT.build_id


def test_processes_with_the_image_at_different_addresses_add_up() -> None:
    other = BASE + 0x123000
    samples = [loaded((B, C), (D, A)), loaded((B, C), (D, A), at=other, pid=11)]
    counts = counted(MemorySource(samples, [mapping(), mapping(11, other)]))
    assert set(rows_of(counts)) == {(B, C, None, 2), (D, A, B, 2)}


def test_an_address_means_what_its_own_process_mapped() -> None:
    samples = [loaded((B, C), pid=11)]
    counts = counted(MemorySource(samples, [mapping(), mapping(11, BASE + 0x10)]))
    assert rows_of(counts) == [(B - 0x10, C - 0x10, None, 1)]


@pytest.mark.parametrize(
    ("space", "is_mapped"),
    [
        ([mapping(time=100)], True),
        ([mapping(time=101)], False),
        ([mapping(11)], False),
        ([mapping(11), Fork(10, 11, 10, 50)], True),
        ([mapping(11), Fork(10, 11, 10, 150)], False),
        ([mapping(11, time=60), Fork(10, 11, 10, 50)], False),
        ([mapping(), Fork(10, 10, 12, 50)], True),
        ([mapping(), Comm(10, 10, 50, "other")], True),
        ([mapping(), Comm(10, 10, 50, "other", is_exec=True)], False),
        ([mapping(), Comm(10, 10, 50, "x", is_exec=True), mapping(time=60)], True),
        ([mapping(), Comm(10, 10, 101, "other", is_exec=True)], True),
        ([mapping(), mapping(time=50, path="/lib/x.so", build_id=None)], False),
        ([mapping(), mapping(time=50, path="/dev/zero", build_id=None, executable=False)], False),
        ([mapping(), mapping(time=150, path="/lib/x.so", build_id=None)], True),
        ([mapping(), Exit(10, 10, 200)], True),
    ],
)
def test_a_sample_sees_the_address_space_of_its_time(
    space: list[SpaceEvent], is_mapped: bool
) -> None:
    space = sorted(space, key=lambda event: event.time)
    counts = counted(MemorySource([loaded((B, C))], space))
    assert len(counts) == is_mapped
    assert counts.tallies["samples_mapped/not_mapped"] == (not is_mapped)


def test_samples_out_of_order_find_their_own_time() -> None:
    moved = BASE + 0x5000
    space = [mapping(), Comm(10, 10, 50, "x", is_exec=True), mapping(base=moved, time=50)]
    late, early = loaded((B, C), at=moved, time=60), loaded((B, C), time=40)
    assert rows_of(counted(MemorySource([late, early], space))) == [(B, C, None, 2)]


TWO_PARTS = replace(
    LAYOUT,
    segments=(
        Segment(0x2800, 0x800, 0x400, 0x400, True),
        Segment(0x5000, 0x1000, 0x400, 0x400, True),
    ),
)
MAPS_OF_BOTH = [
    mapping(layout=TWO_PARTS, base=0, length=0x1000),
    mapping(layout=TWO_PARTS, base=0, start=0x5000, file_offset=0x1000, length=0x1000),
]


def test_a_line_across_two_parts_of_the_image_is_none() -> None:
    stack = [(0x5010, A), (D, 0x5000), (0x5020, A), (B, 0x2810)]
    counts = count(MemorySource([Sample(stack)], MAPS_OF_BOTH), TWO_PARTS).counts
    assert set(rows_of(counts)) == {
        (0x5010, A, None, 1), (D, 0x5000, 0x5010, 1), (0x5020, A, D, 1), (B, 0x2810, None, 1),
    }  # fmt: skip


def test_what_lies_between_the_parts_of_the_image_is_outside() -> None:
    between = 0x4000
    stack = [(B, C), (between, between + 8), (between, between + 4, ERET), (D, between), (F, C)]
    counts = count(MemorySource([Sample(stack, weight=3)], MAPS_OF_BOTH), TWO_PARTS).counts
    waterfall.check(counts.tallies)
    assert set(rows_of(counts)) == {(B, C, None, 3), (D, None, None, 3), (F, C, D, 3)}
    assert lost(counts) == {"outside": 3, "exception": 3}
    assert counts.tallies["branches_in_image"] == 9


def test_samples_that_do_not_say_their_process_see_all_mappings() -> None:
    other = BASE + 0x10000
    samples = [loaded((B, C), pid=-1), loaded((B, C), at=other, pid=-1)]
    source = MemorySource(samples, [mapping(), mapping(11, other)])
    assert rows_of(counted(source)) == [(B, C, None, 2)]


def test_without_mappings_addresses_are_taken_as_linked_and_it_is_said() -> None:
    source = MemorySource([Sample([(B, C)], pid=77)])
    found = count(source, LAYOUT)
    assert rows_of(found.counts) == [(B, C, None, 1)]
    assert found.match is not None
    assert found.match.how == "as linked"
    assert found.match.assumption


def test_image_addresses_are_not_translated() -> None:
    source = MemorySource([Sample([(B, C)])], [mapping()], addresses=Addresses.IMAGE)
    assert rows_of(counted(source)) == [(B, C, None, 1)]


addresses = st.sampled_from([0, A, B, C, D, 0x27FF, 0x3800, 0x37FF, LIBRARY, KERNEL, POISON])
flags = st.builds(
    lambda low, kind, spec, high: low | kind << 20 | spec << 24 | high,
    st.integers(0, 15), st.sampled_from([0, 0, 1, 4, 7, 11, 12, 14]), st.integers(0, 3),
    st.sampled_from([0, 0, 0, NOT_TAKEN]),
)  # fmt: skip
simple_flags = st.sampled_from([1, 2])
entries = st.tuples(addresses, addresses, simple_flags | flags)
stacks = st.lists(entries, max_size=6)
samples = st.builds(
    Sample, stack=stacks, pid=st.sampled_from([10, 11]), time=st.sampled_from([50, 100]),
    weight=st.integers(1, 5), event=st.integers(-1, 2),
)  # fmt: skip
EVENTS = (event("any"), event("any_call"), event("call_stack"))
MODES = ("chains", "branches", "nothing", "chains")


def find(address: int) -> tuple[int, int] | None:
    return (0, address) if 0x2800 <= address < 0x3800 else None


@settings(max_examples=200, deadline=None)
@given(st.lists(samples, max_size=8))
def test_random_stacks_against_the_rules_in_plain_python(drawn: list[Sample]) -> None:
    source = MemorySource(drawn, [mapping(base=0), mapping(11, base=0, time=60)], EVENTS)
    counts = counted(source)
    expected = OracleTally()
    for sample in drawn:
        if sample.pid == 10 or sample.time >= 60:
            oracle_count_stack(sample.stack, MODES[sample.event], find, expected, sample.weight)
    was_seen = counts.has(BRANCH).tolist()
    rows = zip(rows_of(counts), was_seen, strict=True)
    found = {(*row[:3], seen): row[3] for row, seen in rows}
    assert found == dict(expected.traces)
    assert int(counts.mispredicted.sum()) == sum(expected.mispredicted.values())
    accepted = expected.fates.pop("counted", 0)
    assert counts.tallies["branches_in_image"] == accepted
    assert lost(counts) == dict(expected.fates)
    assert waterfall.losses_of(counts.tallies, "runs_in_image") == +expected.gaps


def same(a: BranchCounts, b: BranchCounts) -> bool:
    columns = ("from_", "to", "end", "known", "count", "mispredicted")
    return (
        all(getattr(a, name).tobytes() == getattr(b, name).tobytes() for name in columns)
        and a.tallies == b.tallies
        and a.build_id == b.build_id
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(samples, min_size=1, max_size=12), st.integers(1, 12), st.integers(1, 3), st.randoms()
)
def test_batches_threads_order_and_merging_change_nothing(
    drawn: list[Sample], batch_size: int, threads: int, shuffle: random.Random
) -> None:
    space = [mapping(base=0), mapping(11, base=0, time=60)]
    whole = counted(MemorySource(drawn, space, EVENTS))
    shuffled = shuffle.sample(drawn, len(drawn))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lbr2pgo.counting.count.threads", lambda: threads)
        again = counted(MemorySource(shuffled, space, EVENTS, batch_size=batch_size))
    assert same(whole, again)
    parts = [
        counted(MemorySource(shuffled[i : i + batch_size], space, EVENTS))
        for i in range(0, len(drawn), batch_size)
    ]
    assert same(whole, merge(parts))
    shuffle.shuffle(parts)
    assert same(whole, merge([merge(parts[:1]), *parts[1:]]))
