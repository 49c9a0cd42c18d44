"""Call stacks: call chains beside branch stacks, or stacks of branches that hold open calls.

A call chain begins with the interrupted instruction; return addresses follow, and the call before
each is the caller's.

In call-stack mode (Intel, `perf record --call-graph lbr`) entry 0 is the latest call that has not
returned: its target is the running function, its source lies in the caller; the source of entry 1
lies in the caller's caller, and so on (perf: tools/perf/util/machine.c, lbr_callchain_add_lbr_ip).
The interrupted instruction, where the sample tells it, may lie in yet another function, which then
is the innermost frame, as in perf report: tail calls are no entries.

>>> from lbr2pgo.support.addresses import placed_array
>>> found = CallStacks(((0, 1),), (3,), placed_array([0x1005, 0x2030]), np.array([-1, -1]))
>>> for stack, samples in zip(found.stacks, found.count):
...     print(*(hex(found.address[frame]) for frame in stack), samples)
0x1005 0x2030 3
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS, BranchStacks, CallChains
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.native.walk import StackKind
from lbr2pgo.support.addresses import (
    PlacedAddresses,
    RuntimeAddresses,
    placed_addresses,
    runtime_addresses,
)
from lbr2pgo.support.arrays import I64, Bools, extended
from lbr2pgo.support.distinct import begins, order_of, rows_by
from lbr2pgo.support.intervals import numbers_in
from lbr2pgo.support.tables import table

CALL_STACK_BIT = 1 << BRANCH_FILTER_BITS["call_stack"]
_INSIDE = -1


@table
class CallStacks:
    """Distinct call stacks and how many samples had each, ascending."""

    stacks: tuple[tuple[int, ...], ...]
    """Rows of `address`; outermost caller first."""
    count: tuple[int, ...]
    address: PlacedAddresses
    """(f,): of different frames: the interrupted instruction, the last byte of a caller's call."""
    file: I64
    """(f,): the other file that the frame is in (`Pass.outside`); below 0: none."""

    @property
    def is_inside(self) -> Bools:
        """(f,): which frames have an address in the program; the others are 0."""
        inside: Bools = self.file < 0
        return inside


class CallStackCollector:
    """Counts call stacks as paths in a tree of callers; memory grows with distinct ones only."""

    def __init__(self, known: Pass) -> None:
        self._spaces, self._regions = known.spaces, known.program.regions
        self._outside = known.outside
        self._is_recorded = any(is_call_stack(e.branch_sample_type) for e in known.events)
        self._nodes = RowIds()
        """1 + the node of the caller, or 0; the address; 1 + the file."""
        self._depth, self._count = np.zeros(0, np.int64), np.zeros(0, np.uint64)

    def add(self, samples: Samples) -> None:
        """Count the samples of a batch that hold call stacks."""
        batch = samples.batch
        if len(rows := _with_open_calls(samples)):
            self._add(samples, rows, *_open_calls(batch, rows), has_entered=True)
        if batch.chains is not None:
            self._is_recorded = True
            rows = _with_chains(samples, batch.chains)
            self._add(samples, rows, *_frames_of(batch.chains, rows), has_entered=False)

    def _add(
        self,
        samples: Samples,
        rows: I64,
        places: RuntimeAddresses,
        sizes: I64,
        *,
        has_entered: bool,
    ) -> None:
        image, inside = self._spaces.to_image(np.repeat(samples.spaces[rows], sizes), places)
        file = np.full(len(places), _INSIDE)
        image[~inside], file[~inside] = 0, self._outside(places[~inside])
        if has_entered:
            is_frame = self._are_frames(places, image, file, sizes)
            image, file, sizes = image[is_frame], file[is_frame], _kept(is_frame, sizes)
        is_frame = _differs_from_caller(file, sizes)
        nodes = self._number(image[is_frame], file[is_frame], _kept(is_frame, sizes))
        has_any = nodes >= 0
        np.add.at(self._count, nodes[has_any], samples.batch.weight[rows][has_any])

    def _are_frames(
        self, places: RuntimeAddresses, image: PlacedAddresses, file: I64, sizes: I64
    ) -> Bools:
        """Which of `_open_calls` are frames: where the running function began is none of its own.

        It is where that of the interrupted instruction is not known, or another one.
        """
        region = self._regions.containing(image)
        is_known = (file == _INSIDE) & (region >= 0)
        function = np.where(is_known, self._regions.parent[region], -1 - np.maximum(file, 0))
        leaf = np.cumsum(sizes) - sizes
        is_frame = np.ones(len(places), np.bool_)
        is_frame[leaf] = places[leaf] != 0
        entered = leaf[sizes > 1] + 1
        is_frame[entered] = ~is_frame[entered - 1] | (function[entered] != function[entered - 1])
        return is_frame

    def _number(self, image: PlacedAddresses, file: I64, sizes: I64) -> I64:
        """(k,): the nodes of stacks, one behind the other, innermost first; -1 of empty ones."""
        ends, nodes = np.cumsum(sizes), np.full(len(sizes), -1)
        for depth in range(int(sizes.max(initial=0))):
            rows = np.flatnonzero(sizes > depth)
            at = ends[rows] - 1 - depth
            nodes[rows] = self._number_below(nodes[rows], image[at], file[at], depth)
        return nodes

    def _number_below(self, callers: I64, image: PlacedAddresses, file: I64, depth: int) -> I64:
        columns = ((callers + 1).astype(np.uint64), image, (file + 1).astype(np.uint64))
        nodes = self._nodes.number_rows(*columns)
        self._depth = extended(self._depth, len(self._nodes), depth)
        self._count = extended(self._count, len(self._nodes), 0)
        return nodes

    def merge(self, other: CallStackCollector) -> None:
        """Add what another one counted."""
        self._is_recorded |= other._is_recorded
        callers, image, file = other._columns()
        nodes = np.full(len(callers) + 1, -1)  # the last one stands for no caller
        for depth, rows in rows_by(other._depth):
            below = nodes[callers[rows]]
            nodes[rows] = self._number_below(below, image[rows], file[rows], depth)
        np.add.at(self._count, nodes[:-1], other._count)

    def _columns(self) -> tuple[I64, PlacedAddresses, I64]:
        callers, image, file = self._nodes.rows().T
        return callers.astype(np.int64) - 1, placed_addresses(image), file.astype(np.int64) - 1

    def result(self) -> CallStacks | None:
        """What was counted; None if no event recorded call stacks."""
        if not self._is_recorded:
            return None
        callers, image, file = self._columns()
        order = order_of(image, file)
        is_new = begins(image[order], file[order])
        frame = np.empty(len(order), np.int64)
        frame[order] = np.cumsum(is_new) - 1
        ends = np.flatnonzero(self._count)
        paths = _paths(ends, callers.tolist(), frame.tolist())
        counted = sorted(zip(paths, self._count[ends].tolist(), strict=True))
        first = order[is_new]
        return CallStacks(
            tuple(path for path, _ in counted),
            tuple(count for _, count in counted),
            image[first],
            file[first],
        )


def _paths(ends: I64, callers: list[int], frame: list[int]) -> Iterator[tuple[int, ...]]:
    """The frames from the outermost caller to each node."""
    for node in ends.tolist():
        path = []
        while node >= 0:
            path.append(frame[node])
            node = callers[node]
        yield tuple(reversed(path))


def _kept(is_frame: Bools, sizes: I64) -> I64:
    """(k,): how many frames of each of k stacks, one behind the other, are kept."""
    stack = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(stack[is_frame], minlength=len(sizes))


def _differs_from_caller(file: I64, sizes: I64) -> Bools:
    """Neighbours in one file outside can't be told apart: one frame."""
    differs: Bools = (file == _INSIDE) | (file != np.append(file[1:], _INSIDE))
    differs[np.cumsum(sizes[sizes > 0]) - 1] = True
    return differs


def _with_open_calls(samples: Samples) -> I64:
    """Counted samples (k,) whose branch stacks are call stacks."""
    return np.flatnonzero((samples.kinds == StackKind.OPEN_CALLS) & (samples.spaces >= 0))


def _open_calls(batch: BranchStacks, rows: I64) -> tuple[RuntimeAddresses, I64]:
    """Of each sample the interrupted instruction, where the running function began, and all calls.

    One sample behind the other, and how many of each.
    """
    first, past = batch.offsets[rows], batch.offsets[rows + 1]
    depth = past - first
    sizes = np.where(depth > 0, depth + 2, 1)
    at = np.cumsum(sizes) - sizes
    places = np.zeros(int(sizes.sum()), np.uint64)
    places[at] = batch.ip[rows]
    has_calls = depth > 0
    places[at[has_calls] + 1] = batch.entries[first[has_calls], 1]
    calls = numbers_in(at[has_calls] + 2, (at + sizes)[has_calls])
    places[calls] = batch.entries[numbers_in(first, past), 0]
    return runtime_addresses(places), sizes


def _with_chains(samples: Samples, chains: CallChains) -> I64:
    """Counted samples (k,) with a call chain, but those of `_with_open_calls`."""
    has_chain = (samples.kinds != StackKind.OPEN_CALLS) & (np.diff(chains.offsets) > 0)
    return np.flatnonzero(has_chain & (samples.spaces >= 0))


def _frames_of(chains: CallChains, rows: I64) -> tuple[RuntimeAddresses, I64]:
    """Frames of the chains of some samples (k,), one chain behind the other, and their lengths.

    A caller's address is the last byte of its call.
    """
    first, past = chains.offsets[rows], chains.offsets[rows + 1]
    is_caller = np.ones(len(chains.frames), np.bool_)
    is_caller[first] = False
    return runtime_addresses(chains.frames - is_caller)[numbers_in(first, past)], past - first


def is_call_stack(filters: int | None) -> bool:
    """Whether an event's branch filter says that its stacks are call stacks."""
    return filters is not None and bool(filters & CALL_STACK_BIT)


CALL_STACKS = Finding("call stacks", CallStackCollector)
