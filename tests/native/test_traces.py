"""The loop that cuts stacks into traces, and its hash table, against plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from builders.sources import Sample, batch_of
from builders.trace_oracle import POISON, Entry, Place, Tally, count_stack
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.counting.trace_table import stacks_of
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO
from lbr2pgo.native import traces

FATES = {
    "counted": traces.COUNTED, "outside": traces.OUTSIDE, "empty": traces.EMPTY,
    "poison": traces.POISON, "wrong_path": traces.WRONG_PATH, "duplicate": traces.DUPLICATE,
    "exception": traces.EXCEPTION, "not_taken": traces.NOT_TAKEN_ENTRY,
    "call_stack": traces.CALL_STACK, "bogus_target": traces.BOGUS_TARGET,
    "aborted": traces.ABORTED, "filtered": traces.UNCHAINED,
}  # fmt: skip
MODES = {"chains": traces.CHAINS, "branches": traces.BRANCHES_ONLY, "nothing": traces.NOTHING,
         "joined": traces.JOINED}  # fmt: skip
BOUNDS = ((0x1000, 0x2000), (0xFFFFFFFF80000000, 0xFFFFFFFFC0000000), (0x1800, 0x4000))

Key = tuple[int, int, int, int]


def stacks_with(samples: Sequence[Sample], spaces: np.ndarray, modes: np.ndarray) -> traces.Stacks:
    return stacks_of(batch_of(samples), spaces, modes, np.array(BOUNDS, np.uint64))


class Table:
    """A hash table of a given capacity that grows as the kernel's contract says."""

    def __init__(self, capacity: int) -> None:
        self.allocate(capacity)
        self.tallies = np.zeros(traces.TALLIES, np.uint64)
        self.used = 0

    def allocate(self, capacity: int) -> None:
        self.table = traces.Table(
            np.zeros((capacity, 4), np.uint64),
            np.zeros((capacity, 2), np.uint64),
            np.zeros(capacity, np.uint8),
        )

    def grow(self) -> None:
        old = self.table
        self.allocate(2 * len(old.occupied))
        traces.rehash(old, self.table)

    def add(self, key: Key, value: tuple[int, int]) -> None:
        words = tuple(map(np.uint64, key)), tuple(map(np.uint64, value))
        self.used += traces.add(self.table, *words)

    def count(self, samples: Sequence[Sample], spaces: Sequence[int], modes: Sequence[str]) -> int:
        """Count samples; returns how often the table had to grow."""
        numbers = np.array([MODES[mode] for mode in modes], np.uint8)
        stacks, done, grown = stacks_with(samples, np.array(spaces, np.int64), numbers), 0, 0
        while True:
            done, self.used = traces.count_stacks(
                stacks, self.table, self.tallies, done, self.used
            )  # fmt: skip
            if done == len(samples):
                return grown
            self.grow()
            grown += 1

    def content(self) -> dict[Key, tuple[int, int]]:
        rows = np.flatnonzero(self.table.occupied)
        keys, values = self.table.keys[rows].tolist(), self.table.values[rows].tolist()
        found = {tuple(key): tuple(value) for key, value in zip(keys, values, strict=True)}
        assert len(found) == len(rows), "a key stands in two places"
        return found  # type: ignore[return-value]


def key_of(space: int, trace: tuple[int | None, int | None, int | None, bool]) -> Key:
    source, target, end, was_seen = trace
    known = BRANCH * was_seen
    known |= FROM * (source is not None) | TO * (target is not None) | END * (end is not None)
    return (source or 0, target or 0, end or 0, space << int(traces.KNOWN_BITS) | known)


def expected_of(
    samples: Sequence[Sample], spaces: Sequence[int], modes: Sequence[str]
) -> tuple[dict[Key, tuple[int, int]], Counter[str]]:
    content: dict[Key, tuple[int, int]] = {}
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
            before = content.get(key_of(space, trace), (0, 0))
            missed = tally.mispredicted[trace]
            content[key_of(space, trace)] = (before[0] + count, before[1] + missed)
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
    st.sampled_from(list(MODES)),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(stacks, min_size=1, max_size=10))
def test_stacks_against_the_rules_in_plain_python(
    drawn: list[tuple[Sample, int, str]],
) -> None:
    samples, spaces, modes = zip(*drawn, strict=True)
    table = Table(4)
    table.count(samples, spaces, modes)
    content, fates = expected_of(samples, spaces, modes)
    assert table.content() == content
    assert table.used == len(content)
    assert table.tallies.tolist() == [
        fates[next(name for name, row in FATES.items() if row == number)]
        for number in range(traces.TALLIES)
    ]


def test_every_entry_has_one_fate() -> None:
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
    table = Table(64)
    grown = table.count(samples, [0] * 100, ["chains"] * 100)
    assert grown > 0
    assert int(table.tallies[: traces.FATES].sum()) == 2000


words = st.integers(0, 3) | st.sampled_from([(1 << 64) - 1, 1 << 63, 1 << 32])
keys = st.tuples(words, words, words, words)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(keys, st.tuples(st.integers(0, 99), st.integers(0, 99))), max_size=60))
def test_the_table_adds_up_like_a_dictionary(rows: list[tuple[Key, tuple[int, int]]]) -> None:
    table = Table(2)
    expected: dict[Key, tuple[int, int]] = {}
    for key, value in rows:
        if table.used + 1 > len(table.table.occupied) - len(table.table.occupied) // 4:
            table.grow()
        table.add(key, value)
        before = expected.get(key, (0, 0))
        expected[key] = (before[0] + value[0], before[1] + value[1])
    assert table.content() == expected
    assert table.used == len(expected)


def test_keys_that_differ_in_one_column_are_apart() -> None:
    table = Table(64)
    for column in range(4):
        for bit in (0, 1, 31, 32, 63):
            key = [0, 0, 0, 0]
            key[column] = 1 << bit
            table.add(tuple(key), (1, 0))  # type: ignore[arg-type]
    assert len(table.content()) == 20


def test_addresses_in_rows_spread_over_the_table() -> None:
    """Neighbouring addresses must not make long chains of occupied places."""
    table = Table(1 << 14)
    for i in range(1 << 13):
        table.add((0x400000 + 4 * i, 0x400000 + 4 * i + 64, 0, 15), (1, 0))
    occupied = table.table.occupied.astype(bool)
    breaks = np.flatnonzero(~occupied)
    assert np.diff(breaks).max() < 200


def test_a_stack_that_does_not_fit_is_left_to_the_caller() -> None:
    """A quarter of the places stays free, so that searches end soon."""
    entries: list[Entry] = [(0x1000 + i, 0x1100 + i, 2) for i in range(5)]
    samples = [Sample(entries[:2]), Sample(entries)]
    stacks = stacks_with(samples, np.zeros(2, np.int64), np.zeros(2, np.uint8))
    table = Table(8)
    done, used = traces.count_stacks(stacks, table.table, table.tallies, 0, 0)
    assert (done, used) == (1, 2)
    assert int(table.tallies.sum()) == 2
