"""Call stacks by instruction: as `call_stacks`, for who wants the lines of calls and not functions.

>>> sites = CallSites(((1, 0),), (3,), placed_array([0x2030, 0x1005]), np.array([-1, -1]))
>>> for stack, samples in zip(sites.stacks, sites.count):
...     print(*(hex(sites.address[frame]) for frame in stack), samples)
0x1005 0x2030 3
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from lbr2pgo.evidence.call_stacks import chain_places, is_call_stack, with_chains, with_open_calls
from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.support.addresses import (
    PlacedAddresses,
    RuntimeAddresses,
    placed_array,
    runtime_addresses,
)
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.intervals import numbers_in
from lbr2pgo.support.tables import table

_INSIDE = -1

Frame = tuple[int, int]
"""A placed address and _INSIDE, or 0 and the number of another file (`Pass.outside`)."""


@table
class CallSites:
    """Distinct call stacks and how many samples had each, in a stable order."""

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


class CallSiteCollector:
    """Counts call stacks by address; memory grows with distinct ones only."""

    def __init__(self, known: Pass) -> None:
        self._spaces, self._regions = known.spaces, known.program.regions
        self._outside = known.outside
        self._is_recorded = any(is_call_stack(e.branch_sample_type) for e in known.events)
        self._counts: Counter[tuple[Frame, ...]] = Counter()

    def add(self, samples: Samples) -> None:
        """Count the samples of a batch that hold call stacks."""
        batch = samples.batch
        if len(rows := with_open_calls(samples)):
            places, sizes = _open_calls(batch, rows)
            is_kept = self._are_frames(np.repeat(samples.spaces[rows], sizes), places, sizes)
            kept = np.add.reduceat(is_kept, np.cumsum(sizes) - sizes, dtype=np.int64)
            self._count(samples, rows, runtime_addresses(places[is_kept]), kept)
        if batch.chains is not None:
            self._is_recorded = True
            rows = with_chains(samples, batch.chains)
            self._count(samples, rows, *chain_places(batch.chains, rows))

    def _are_frames(self, spaces: I64, places: RuntimeAddresses, sizes: I64) -> Bools:
        """Which of `_open_calls` are frames: where the running function began is none of its own.

        It is where that of the interrupted instruction is not known, or another one.
        """
        image, inside = self._spaces.to_image(spaces, places)
        found = self._regions.containing(image)
        function = np.where(inside & (found >= 0), self._regions.parent[found], -1)
        leaf = np.cumsum(sizes) - sizes
        is_kept = np.ones(len(places), np.bool_)
        is_kept[leaf] = places[leaf] != 0
        entered = leaf[sizes > 1] + 1
        is_kept[entered] = ~is_kept[entered - 1] | (function[entered] != function[entered - 1])
        return is_kept

    def _count(self, samples: Samples, rows: I64, places: RuntimeAddresses, sizes: I64) -> None:
        spaces, weight = np.repeat(samples.spaces[rows], sizes), samples.batch.weight[rows]
        image, inside = self._spaces.to_image(spaces, places)
        file = np.full(len(places), _INSIDE)
        image[~inside], file[~inside] = 0, self._outside(places[~inside])
        frames = list(zip(image.tolist(), file.tolist(), strict=True))
        for end, size, times in zip(
            np.cumsum(sizes).tolist(), sizes.tolist(), weight.tolist(), strict=True
        ):
            if size:
                self._counts[tuple(frames[end - size : end])] += times

    def merge(self, other: CallSiteCollector) -> None:
        """Add what another one counted."""
        self._is_recorded |= other._is_recorded
        self._counts.update(other._counts)

    def result(self) -> CallSites | None:
        """What was counted; None if no event recorded call stacks."""
        if not self._is_recorded:
            return None
        total: Counter[tuple[Frame, ...]] = Counter()
        for stack, count in self._counts.items():
            total[tuple(_joined(stack))] += count
        frames: dict[Frame, int] = {}
        stacks = sorted(total)
        numbered = tuple(
            tuple(frames.setdefault(frame, len(frames)) for frame in stack) for stack in stacks
        )
        return CallSites(
            numbered,
            tuple(total[stack] for stack in stacks),
            placed_array(address for address, _ in frames),
            np.array([file for _, file in frames], np.int64),
        )


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


def _joined(stack: tuple[Frame, ...]) -> Iterator[Frame]:
    """From the outermost caller; neighbours in one file outside can't be told apart: one frame."""
    before = None
    for frame in reversed(stack):
        if frame[1] == _INSIDE or frame != before:
            yield frame
        before = frame


CALL_SITES = Finding("call sites", CallSiteCollector)
