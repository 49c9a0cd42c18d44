"""A batch counted for many images at once, against each image for itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from builders.sources import Sample, batch_of, mapping
from builders.stack_tables import kinds, words
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.counting import trace_table
from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.many_images import add_to_all
from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.counting.trace_table import TraceTable
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.space_event_log import SpaceEventLog
from lbr2pgo.native.walk import StackKind, Stacks
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.support.arrays import I64

PAGE = 0x1000
FILES = SpaceEventLog(
    [mapping(path=f"/{i}", start=i * PAGE, length=PAGE, build_id=None) for i in range(1, 8)]
)
addresses = st.builds(lambda page, at: page * PAGE + at, st.integers(0, 8), st.integers(0, 2))
entries = st.tuples(addresses | st.just(0), addresses, words)
samples = st.builds(Sample, st.lists(entries, max_size=6), weight=st.integers(1, 3))
images = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 3)), min_size=4, max_size=8)


def tables_of(pages: Sequence[tuple[int, int]]) -> list[TraceTable]:
    """Of images that begin at a page and have so many, which may lie over one another."""
    files = MappedFiles(FILES)
    return [
        TraceTable(
            AddressSpaces.fixed(
                ImageLayout(
                    "a", None, "x86-64", False,
                    (Segment(first * PAGE, 0, n * PAGE, n * PAGE, True),),
                )
            ),
            files,
        )
        for first, n in pages
    ]  # fmt: skip


def told(table: TraceTable) -> tuple[list[int], list[str], dict[str, int]]:
    counts, _ = table.counts()
    return table.tallies.tolist(), list(counts.rows()), table.traces().by_file()


@given(images, st.lists(st.tuples(samples, st.booleans(), kinds), max_size=6), st.data())
def test_each_image_has_what_it_has_for_itself(
    pages: Sequence[tuple[int, int]],
    drawn: Sequence[tuple[Sample, bool, StackKind]],
    data: st.DataObject,
) -> None:
    batch = batch_of([sample for sample, _, _ in drawn])
    spaces = np.array([0 if counts else -1 for _, counts, _ in drawn], np.int64)
    of_stacks = np.array([kind for _, _, kind in drawn], np.uint8)
    selected = []
    for _ in pages:  # some images count fewer samples than others
        is_left_out = data.draw(st.integers(0, 9)) == 0
        own = np.where(np.arange(len(spaces)) == 0, -1, spaces) if is_left_out else spaces
        selected.append((batch, own, of_stacks))
    alone, together = tables_of(pages), tables_of(pages)
    for table, each in zip(alone, selected, strict=True):
        table.add(*each)
    add_to_all(together, *selected)
    assert list(map(told, together)) == list(map(told, alone))


@pytest.mark.parametrize("count", [4, 16])
def test_stacks_are_walked_as_often_for_any_number_of_images(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for all images, and twice for the one that each touches."""
    walked, sizes = 0, dict[int, int]()
    make, walk = trace_table.stacks_of, trace_table.count_traces

    def stacks_of(batch: BranchStacks, spaces: I64, *others: Any) -> Stacks:
        made = make(batch, spaces, *others)
        kept.append(made)
        sizes[id(made)] = int((spaces >= 0).sum())
        return made

    def count_traces(stacks: Stacks, *others: Any) -> None:
        nonlocal walked
        walked += sizes[id(stacks)]
        walk(stacks, *others)

    kept: list[Stacks] = []
    monkeypatch.setattr(trace_table, "stacks_of", stacks_of)
    monkeypatch.setattr(trace_table, "count_traces", count_traces)
    batch = batch_of(
        [Sample([(PAGE * (1 + i % count), PAGE * (1 + i % count))]) for i in range(48)]
    )
    kinds_of = np.full(48, StackKind.CONSECUTIVE, np.uint8)
    selected = [(batch, np.zeros(48, np.int64), kinds_of)] * count
    add_to_all(tables_of([(1 + i, 1) for i in range(count)]), *selected)
    assert walked == 3 * 48
