"""The loop that counts traces against the counting rules in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from builders.sources import Sample, batch_of
from builders.trace_oracle import POISON, Place, Tally, count_stack
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.counting._traces import count_traces
from lbr2pgo.counting.trace_table import stacks_of
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO
from lbr2pgo.native.key_table import KNOWN_BITS, KeyTable
from lbr2pgo.native.walk import Reason, StackKind

KINDS = {"chains": StackKind.CONSECUTIVE, "branches": StackKind.SELECTED,
         "nothing": StackKind.OPEN_CALLS, "joined": StackKind.AS_LLVM}  # fmt: skip
BOUNDS = ((0x1000, 0x2000), (0xFFFFFFFF80000000, 0xFFFFFFFFC0000000), (0x1800, 0x4000))

Key = tuple[int, int, int, int]


def counted(
    samples: Sequence[Sample], spaces: Sequence[int], modes: Sequence[str]
) -> tuple[dict[Key, tuple[int, ...]], list[int]]:
    """What is under each key, without the addresses outside, and the tallies."""
    kinds = np.array([KINDS[mode] for mode in modes], np.uint8)
    bounds = np.array(BOUNDS, np.uint64)
    stacks = stacks_of(batch_of(samples), np.array(spaces, np.int64), kinds, bounds)
    table, tallies = KeyTable(), np.zeros(len(Reason), np.uint64)
    count_traces(stacks, table, tallies)
    return merged(content_of(table)), tallies.tolist()


def merged(content: Mapping[Key, tuple[int, ...]]) -> dict[Key, tuple[int, ...]]:
    """Keys with 0 for an end that is not known, as in counts; the oracle knows no such address."""
    found: dict[Key, tuple[int, ...]] = {}
    for (source, target, end, place), sums in content.items():
        key = source if place & FROM else 0, target if place & TO else 0, end, place
        found[key] = tuple(map(sum, zip(found.get(key, (0, 0, 0)), sums, strict=True)))
    return found


def content_of(table: KeyTable) -> dict[Key, tuple[int, ...]]:
    keys, sums = table.rows()
    found = dict(zip(map(tuple, keys.tolist()), map(tuple, sums.tolist()), strict=True))
    assert len(found) == len(keys) == len(table), "a key stands in two places"
    return found


def key_of(space: int, trace: tuple[int | None, int | None, int | None, bool]) -> Key:
    source, target, end, was_seen = trace
    known = BRANCH * was_seen
    known |= FROM * (source is not None) | TO * (target is not None) | END * (end is not None)
    return (source or 0, target or 0, end or 0, space << KNOWN_BITS | known)


def expected_of(
    samples: Sequence[Sample], spaces: Sequence[int], modes: Sequence[str]
) -> tuple[dict[Key, tuple[int, ...]], Counter[str]]:
    content: dict[Key, tuple[int, ...]] = {}
    fates: Counter[str] = Counter()
    for sample, space, mode in zip(samples, spaces, modes, strict=True):
        if space < 0:
            continue

        def find(address: int, space: int = space) -> Place | None:
            low, high = BOUNDS[space]
            return (0, address) if low <= address < high else None

        tally = Tally(fates=fates, gaps=fates)
        count_stack(sample.stack, mode, find, tally, sample.weight)  # type: ignore[arg-type]
        for trace, count in tally.traces.items():
            sums = count, tally.mispredicted[trace], tally.unpredicted[trace]
            before = content.get(key_of(space, trace), (0, 0, 0))
            content[key_of(space, trace)] = tuple(map(sum, zip(before, sums, strict=True)))
    return content, fates


edges = sorted({edge + step for span in BOUNDS for edge in span for step in (-1, 0, 1)})
BOGUS = 1 << 61 | 0x1810
addresses = st.sampled_from([0, POISON, POISON + 1, BOGUS, 0x1810, 0x1820, 0x1900, *edges])
likely = st.sampled_from([1, 2, 1 | 7 << 4])
flags = likely | st.integers(0, (1 << 35) - 1)
entries = st.tuples(addresses, addresses, flags)
pairs = st.lists(entries, max_size=7) | entries.map(lambda entry: [entry, entry])
stacks = st.tuples(
    st.builds(Sample, stack=pairs, weight=st.integers(1, 9)),
    st.integers(-1, 2),
    st.sampled_from(list(KINDS)),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(stacks, min_size=1, max_size=10))
def test_stacks_against_the_rules_in_plain_python(
    drawn: list[tuple[Sample, int, str]],
) -> None:
    samples, spaces, modes = zip(*drawn, strict=True)
    content, fates = expected_of(samples, spaces, modes)
    assert counted(samples, spaces, modes) == (
        content, [fates[reason.name.lower()] for reason in Reason]
    )  # fmt: skip


def test_every_entry_counts_or_is_lost_for_one_reason() -> None:
    rng = np.random.default_rng(3)
    choices = np.array([0, POISON, *range(0x1FF0, 0x2010)], np.uint64)
    rows = np.stack(
        [
            rng.choice(choices, 2000),
            rng.choice(choices, 2000),
            rng.integers(0, 1 << 34, 2000, np.uint64),
        ],
        1,
    )
    samples = [
        Sample([tuple(row) for row in rows[i : i + 20].tolist()]) for i in range(0, 2000, 20)
    ]
    _, tallies = counted(samples, [0] * 100, ["chains"] * 100)
    assert sum(tallies) - tallies[Reason.ABORTED] - tallies[Reason.INTERRUPTED] == 2000


ERET, IRQ, OUT = 11 << 20, 12 << 20, 0xFFFF_0000
scraps = st.sampled_from(
    [
        (0x1820, 0x1810, 2), (0x1830, 0x1820, 3 | 9 << 4), (0, 0x1820, ERET), (OUT, 0x1820, ERET),
        (0x1820, 0, IRQ), (0x1820, OUT, IRQ), (0x1824, 0, IRQ), (OUT, OUT + 8, 2), (0, 0, 0),
    ]
)  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.lists(scraps, max_size=9), st.sampled_from(list(KINDS)))
def test_runs_across_interrupts_against_the_rules_in_plain_python(
    stack: list[tuple[int, int, int]], mode: str
) -> None:
    content, fates = expected_of([Sample(stack)], [0], [mode])
    assert counted([Sample(stack)], [0], [mode]) == (
        content, [fates[reason.name.lower()] for reason in Reason]
    )  # fmt: skip


def test_a_branch_keeps_the_address_of_its_end_outside() -> None:
    samples = [Sample([(0x1820, OUT, 2)]), Sample([(OUT, 0x1810, 2)])]
    stacks = stacks_of(batch_of(samples), np.zeros(2, np.int64), np.zeros(2, np.uint8),
                       np.array(BOUNDS, np.uint64))  # fmt: skip
    table = KeyTable()
    count_traces(stacks, table, np.zeros(len(Reason), np.uint64))
    assert {key[:2] for key in content_of(table)} == {(0x1820, OUT), (OUT, 0x1810)}


def test_tallies_of_another_size_are_refused() -> None:
    stacks = stacks_of(batch_of([]), *(np.zeros(0, t) for t in (np.int64, np.uint8)),
                       np.array(BOUNDS, np.uint64))  # fmt: skip
    with pytest.raises(ValueError, match="tallies"):
        count_traces(stacks, KeyTable(), np.zeros(3, np.uint64))
