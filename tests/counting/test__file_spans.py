"""The search for a mapped file against a search in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from builders.sources import Sample, batch_of
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.counting._file_spans import FileSpans
from lbr2pgo.counting._traces import count_traces
from lbr2pgo.counting.trace_table import stacks_of
from lbr2pgo.native.key_table import KeyTable
from lbr2pgo.native.walk import Reason, StackKind

KERNEL = 1 << 63
View = list[tuple[int, int, int]]


def views() -> st.SearchStrategy[list[View]]:
    """The kernel's view and two others: ordered spans with gaps, and their files."""
    edges = st.lists(st.integers(1, 60), unique=True, max_size=8).map(sorted)
    view = edges.map(lambda e: [(a, b, 2 + a % 3) for a, b in zip(e[::2], e[1::2], strict=False)])
    return st.lists(view, min_size=3, max_size=3)


def expected(views: list[View], samples: list[tuple[int, int]]) -> list[int]:
    counts = [0] * 5
    for view, address in samples:
        spans = [(KERNEL + a, KERNEL + b, f) for a, b, f in views[0]]
        spans = spans if address >= KERNEL else views[view]
        files = [file for start, end, file in spans if start <= address < end]
        counts[files[0] if files else int(address >= KERNEL)] += 2
    return counts


def noted(views: list[View], samples: list[tuple[int, int]]) -> list[int]:
    shifted = [[(KERNEL + a, KERNEL + b, f) for a, b, f in views[0]], *views[1:]]
    rows = [row for view in shifted for row in view]
    counts = np.zeros(5, np.uint64)
    files = FileSpans(
        np.array([view for view, _ in samples], np.int64),
        np.cumsum([0, *map(len, shifted)], dtype=np.int64),
        np.array([row[:2] for row in rows], np.uint64).reshape(-1, 2),
        np.array([row[2] for row in rows], np.int64),
        counts,
    )
    batch = batch_of([Sample([(address, address)], weight=2) for _, address in samples])
    size, bounds = len(samples), np.array([(1000, 1001)], np.uint64)
    kinds = np.full(size, StackKind.CONSECUTIVE, np.uint8)
    stacks = stacks_of(batch, np.zeros(size, np.int64), kinds, bounds)
    count_traces(stacks, KeyTable(), np.zeros(len(Reason), np.uint64), files)
    return counts.tolist()


ADDRESSES = st.integers(1, 70) | st.integers(KERNEL + 1, KERNEL + 70)


@given(views(), st.lists(st.tuples(st.integers(1, 2), ADDRESSES), min_size=1))
def test_it_finds_what_plain_python_finds(
    mapped: list[View], samples: list[tuple[int, int]]
) -> None:
    assert noted(mapped, samples) == expected(mapped, samples)


def test_what_points_outside_raises() -> None:
    with pytest.raises(IndexError):
        noted([[], [], []], [(7, 5)])
    with pytest.raises(IndexError):
        noted([[], [(1, 9, 77)], []], [(1, 5)])
