"""Call stacks: call chains beside branch stacks, or stacks of branches that hold open calls.

A call chain begins with the interrupted instruction; return addresses follow, and the call before
each is the caller's.

In call-stack mode (Intel, `perf record --call-graph lbr`) entry 0 is the latest call that has not
returned: its target is the running function, its source lies in the caller; the source of entry 1
lies in the caller's caller, and so on (perf: tools/perf/util/machine.c, lbr_callchain_add_lbr_ip).
The interrupted instruction, where the sample tells it, may lie in yet another function, which then
is the innermost frame, as in perf report: tail calls are no entries.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from lbr2pgo.evidence.collector import Finding, Pass, Samples
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS, CallChains
from lbr2pgo.native.walk import StackKind
from lbr2pgo.support.addresses import RuntimeAddresses, runtime_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.intervals import numbers_in

OUTSIDE = -1
"""Frame of code in no region; less the number of its file in another image (`Pass.outside`)."""
_END = np.iinfo(np.int64).min

CALL_STACK_BIT = 1 << BRANCH_FILTER_BITS["call_stack"]

Stack = tuple[int, ...]
"""Regions of the program, or OUTSIDE and below; outermost caller first."""


@dataclass(frozen=True, slots=True)
class StackCounts:
    """Distinct call stacks and how many samples had each, in a stable order."""

    stacks: tuple[Stack, ...]
    count: tuple[int, ...]


class CallStackCollector:
    """Counts call stacks by function; memory grows with distinct ones only."""

    def __init__(self, known: Pass) -> None:
        self._spaces, self._regions = known.spaces, known.program.regions
        self._outside = known.outside
        self._is_recorded = any(is_call_stack(e.branch_sample_type) for e in known.events)
        self._counts: Counter[bytes] = Counter()

    def add(self, samples: Samples) -> None:
        """Count the samples of a batch that hold call stacks."""
        batch = samples.batch
        self._add_open_calls(samples, with_open_calls(samples))
        if batch.chains is not None:
            self._is_recorded = True
            self._add_chains(samples, batch.chains, with_chains(samples, batch.chains))

    def _add_chains(self, samples: Samples, chains: CallChains, rows: I64) -> None:
        places, sizes = chain_places(chains, rows)
        functions = self._functions(np.repeat(samples.spaces[rows], sizes), places)
        weight = samples.batch.weight[rows]
        keys, ends = functions.tobytes(), (np.cumsum(sizes) * functions.itemsize).tolist()
        for (start, end), times in zip(pairwise([0, *ends]), weight.tolist(), strict=True):
            self._counts[keys[start:end]] += times

    def merge(self, other: CallStackCollector) -> None:
        """Add what another one counted."""
        self._is_recorded |= other._is_recorded
        self._counts.update(other._counts)

    def result(self) -> StackCounts | None:
        """What was counted; None if no event recorded call stacks."""
        return _unpacked(self._counts) if self._is_recorded else None

    def _add_open_calls(self, samples: Samples, rows: I64) -> None:
        batch, spaces = samples.batch, samples.spaces
        of_entry, ip = np.repeat(spaces, np.diff(batch.offsets)), batch.ip[rows]
        frames = _frames(
            np.where(ip == 0, _END, self._functions(spaces[rows], ip)),
            self._functions(of_entry, batch.from_),
            self._functions(of_entry, batch.to),
            batch.offsets[:-1][rows],
            np.diff(batch.offsets)[rows],
        )
        unique, place = np.unique(frames, axis=0, return_inverse=True)
        count = np.bincount(place.reshape(-1), weights=batch.weight[rows], minlength=len(unique))
        for frame, times in zip(unique, count.tolist(), strict=True):
            self._counts[frame[frame != _END].tobytes()] += int(times)

    def _functions(self, spaces: I64, addresses: RuntimeAddresses) -> I64:
        """The family of regions that each run-time address lies in, else OUTSIDE or below."""
        image, inside = self._spaces.to_image(spaces, addresses)
        found = self._regions.containing(image)
        inside &= found >= 0
        functions = np.where(inside, self._regions.parent[found], OUTSIDE)
        functions[~inside] -= self._outside(addresses[~inside])
        return functions


def with_open_calls(samples: Samples) -> I64:
    """Counted samples (k,) whose branch stacks are call stacks."""
    return np.flatnonzero((samples.kinds == StackKind.OPEN_CALLS) & (samples.spaces >= 0))


def with_chains(samples: Samples, chains: CallChains) -> I64:
    """Counted samples (k,) with a call chain, but those of `with_open_calls`."""
    has_chain = (samples.kinds != StackKind.OPEN_CALLS) & (np.diff(chains.offsets) > 0)
    return np.flatnonzero(has_chain & (samples.spaces >= 0))


def chain_places(chains: CallChains, rows: I64) -> tuple[RuntimeAddresses, I64]:
    """Frames of the chains of some samples (k,), one chain behind the other, and their lengths.

    A caller's address is the last byte of its call.
    """
    first, past = chains.offsets[rows], chains.offsets[rows + 1]
    is_caller = np.ones(len(chains.frames), np.bool_)
    is_caller[first] = False
    return runtime_addresses(chains.frames - is_caller)[numbers_in(first, past)], past - first


def _frames(leaf: I64, callers: I64, callees: I64, first: I64, length: I64) -> I64:
    """(n, depth + 2): functions of each sample, innermost first, with _END where there is none.

    leaf (n,) is what was interrupted; callers and callees (m,) are those of the entries, of which
    sample i has `length[i]` from `first[i]` on.
    """
    frames = np.full((len(leaf), int(length.max(initial=0)) + 2), _END, dtype=np.int64)
    rows = np.flatnonzero(length > 0)
    frames[rows, 1] = callees[first[rows]]
    frames[:, 0] = np.where(leaf == frames[:, 1], _END, leaf)
    for depth in range(frames.shape[1] - 2):
        rows = np.flatnonzero(length > depth)
        frames[rows, depth + 2] = callers[first[rows] + depth]
    return frames


def _unpacked(counts: Counter[bytes]) -> StackCounts:
    total: Counter[Stack] = Counter()
    for key, count in counts.items():
        total[_joined(tuple(np.frombuffer(key, np.int64)[::-1].tolist()))] += count
    stacks = tuple(sorted(total))
    return StackCounts(stacks, tuple(total[stack] for stack in stacks))


def _joined(stack: Stack) -> Stack:
    """One frame for neighbours in one file outside: what they are can't be told apart.

    >>> _joined((-1, -1, 5, 5, -1))
    (-1, 5, 5, -1)
    """
    return tuple(
        frame for i, frame in enumerate(stack) if frame > OUTSIDE or i == 0 or stack[i - 1] != frame
    )


def is_call_stack(filters: int | None) -> bool:
    """Whether an event's branch filter says that its stacks are call stacks."""
    return filters is not None and bool(filters & CALL_STACK_BIT)


CALL_STACKS = Finding("call stacks", CallStackCollector)
