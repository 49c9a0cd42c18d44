"""Which mapped files the branches outside the image lie in.

A process maps a file, and later perhaps another one over it; `execve` empties its address space.
That a mapping goes away is not recorded: of overlapping ones between two `execve` the last counts.
"""

from __future__ import annotations

from array import array

import numpy as np

from lbr2pgo.counting._file_spans import FileSpans
from lbr2pgo.counting.address_spaces import ANY_PID, Piece, overlaid, rows_by
from lbr2pgo.model.address_space_events import KERNEL_PID, MEMORY
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.space_event_log import COMM, FORK, MMAP, SpaceEventLog
from lbr2pgo.support.addresses import LAST_ADDRESS, RuntimeAddresses
from lbr2pgo.support.arrays import I64, U64, Records
from lbr2pgo.support.budget import COPIED_MAPPINGS
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.intervals import interval_of, last_at_or_below

UNKNOWN, KERNEL = "[unknown]", "[kernel]"
_KERNEL_HALF = 1 << 63

_MOST_MAPPINGS = 4096
"""Of a process that mapped more files than this, the first are forgotten."""
_MOST_KEPT = 1 << 10
"""Of what processes had mapped, between two batches."""
_NONE = -1
_BLOCK = 1 << 14
"""Events that are taken out of their columns at a time."""


class _Chains:
    """Rows of numbers, each behind another one: many chains, which may have a beginning in common.

    A million processes have what their parents mapped, and few of them are sampled.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._numbers, self._before, self._length = array("Q"), array("q"), array("q")

    def behind(self, last: int, row: tuple[int, ...]) -> int:
        """Put a row behind that of a number, or `_NONE`; returns its own number."""
        self._numbers.extend(row)
        self._before.append(last)
        self._length.append(1 if last == _NONE else self._length[last] + 1)
        return len(self._before) - 1

    def lengths(self, lasts: I64) -> I64:
        """Rows (n,) of the chains up to these numbers."""
        return np.append(np.array(self._length, np.int64), 0)[lasts]  # `_NONE` takes the last

    def up_to(self, last: int, most: int) -> list[tuple[int, ...]]:
        """A chain's rows, the first of too many left out."""
        found, width = list[tuple[int, ...]](), self._width
        while last != _NONE and len(found) < most:
            found.append(tuple(self._numbers[width * last : width * (last + 1)]))
            last = self._before[last]
        return found[::-1]


class MappedFiles:
    """Files by number, and where each process had them."""

    def __init__(self, events: SpaceEventLog) -> None:
        """Replay the events."""
        self._log = events
        self._numbers = {UNKNOWN: 0, KERNEL: 1}
        self._files: dict[int, int | None] = {}
        """Of the log's texts, as far as they are mapped."""
        self._mapped, self._replaced = _Chains(3), _Chains(2)
        self._everywhere = self._kernel = _NONE
        self._pids = distinct(events.rows["pid"])
        self._latest = array("q", [_NONE]) * len(self._pids)
        """Of each process, its last mapping."""
        self._earlier = array("q", [_NONE]) * len(self._pids)
        """Of each process, the last time that an execve replaced mappings."""
        for first in range(0, len(events), _BLOCK):
            self._replay(events.rows[first : first + _BLOCK])
        self._spans: dict[int, tuple[U64, I64]] = {}
        """Of what was mapped up to a mapping."""
        lengths = self._mapped.lengths(np.array(self._latest, np.int64))
        most = COPIED_MAPPINGS.of(int(np.count_nonzero(events.rows["kind"] == MMAP)))
        self._is_each_known = int(np.minimum(lengths, _MOST_MAPPINGS).sum()) <= most
        """Else what any process had mapped stands for what each had."""

    @property
    def present(self) -> bool:
        """Whether any file was recorded."""
        return self._everywhere != _NONE

    @property
    def names(self) -> tuple[str, ...]:
        """Of all files, by number."""
        return (*self._numbers,)

    def of_addresses(self, addresses: RuntimeAddresses) -> I64:
        """The file (n,) that any process had at each run-time address, the later over the earlier.

        The upper half of all addresses is the kernel's.
        """
        found = np.zeros(len(addresses), np.int64)
        is_kernel = addresses >= np.uint64(_KERNEL_HALF)
        found[is_kernel] = self._numbers[KERNEL]
        for last, rows in ((self._everywhere, ~is_kernel), (self._kernel, is_kernel)):
            spans, files = self._spans_up_to(last)
            at = interval_of(spans[:, 0], spans[:, 1], addresses[rows])
            found[rows] = np.where(at < 0, found[rows], np.append(files, 0)[at])
        return found

    def counts(self) -> U64:
        """A zero for each file."""
        return np.zeros(len(self._numbers), np.uint64)

    def named(self, counts: U64) -> dict[str, int]:
        """Counts by the files' names, without those that have none."""
        return {name: int(counts[i]) for name, i in self._numbers.items() if counts[i]}

    def spans_of(self, batch: BranchStacks, spaces: I64, counts: U64) -> FileSpans:
        """What the samples of a batch that are counted had mapped; `counts` are added to."""
        if len(self._spans) > _MOST_KEPT:
            self._spans.clear()
        lasts = [self._kernel]
        of_sample = np.zeros(len(batch), np.int64)
        for pid, rows in rows_by(np.where(spaces >= 0, batch.pid, KERNEL_PID)):
            since, own = self._views_of(pid)
            of_sample[rows] = last_at_or_below(since, batch.time[rows]) + len(lasts)
            lasts += own
        spans, files = zip(*map(self._spans_up_to, lasts), strict=True)
        offsets = np.cumsum([0, *map(len, files)], dtype=np.int64)
        return FileSpans(of_sample, offsets, np.concatenate(spans), np.concatenate(files), counts)

    def _replay(self, rows: Records) -> None:
        columns = ("kind", "flag", "time", "start", "length", "text")
        number = np.searchsorted(self._pids, rows["pid"]).tolist()
        parent = self._number_of(rows["other"]).tolist()
        for own, other, kind, flag, time, start, length, text in zip(
            number, parent, *(rows[name].tolist() for name in columns), strict=True
        ):
            if kind == MMAP and flag:
                self._map(own, text, (start, min(start + length, LAST_ADDRESS)))
            elif kind == FORK and own != other:
                self._latest[own] = _NONE if other == _NONE else self._latest[other]
                self._earlier[own] = _NONE
            elif kind == COMM and flag and self._latest[own] != _NONE:
                row = time, self._latest[own]
                self._earlier[own] = self._replaced.behind(self._earlier[own], row)
                self._latest[own] = _NONE

    def _number_of(self, pids: I64) -> I64:
        """Of processes; `_NONE` for those of which no event is."""
        if not len(self._pids):
            return np.full(len(pids), _NONE, np.int64)
        row = np.minimum(np.searchsorted(self._pids, pids), len(self._pids) - 1)
        return np.where(self._pids[row] == pids, row, _NONE)

    def _map(self, own: int, text: int, where: tuple[int, int]) -> None:
        file = self._file(text)
        if file is None:
            return
        row = *where, file
        self._everywhere = self._mapped.behind(self._everywhere, row)
        if self._pids[own] == KERNEL_PID:
            self._kernel = self._mapped.behind(self._kernel, row)
        else:
            self._latest[own] = self._mapped.behind(self._latest[own], row)

    def _file(self, text: int) -> int | None:
        """Its number; None for memory that has no name."""
        if text not in self._files:
            name = _name(self._log.text(text))
            self._files[text] = (
                None if name is None else self._numbers.setdefault(name, len(self._numbers))
            )
        return self._files[text]

    def _views_of(self, pid: int) -> tuple[U64, list[int]]:
        """From when on (v,) which mapping was the last of a process, at least one."""
        if pid == ANY_PID or not self._is_each_known:
            return np.zeros(1, np.uint64), [self._everywhere]
        (own,) = self._number_of(np.array([pid])).tolist()
        if own == _NONE:
            return np.zeros(1, np.uint64), [_NONE]
        replaced = self._replaced.up_to(self._earlier[own], _MOST_MAPPINGS)
        since = [0, *(time for time, _ in replaced)]
        return np.array(since, np.uint64), [*(last for _, last in replaced), self._latest[own]]

    def _spans_up_to(self, last: int) -> tuple[U64, I64]:
        """What was mapped when a mapping was the last: spans (s, 2), and their files (s,)."""
        if last not in self._spans:
            seen = overlaid(list(map(Piece._make, self._mapped.up_to(last, _MOST_MAPPINGS))))
            spans = np.array([(p.start, p.end) for p in seen], np.uint64).reshape(-1, 2)
            self._spans[last] = spans, np.array([p.bias for p in seen], np.int64)
        return self._spans[last]


def _name(path: str) -> str | None:
    """What people call a file; None for memory that has none.

    >>> [_name(path) for path in ("/lib/libc.so.6", "[vdso]", "//anon", "[kernel.kallsyms]_text")]
    ['libc.so.6', '[vdso]', None, '[kernel]']
    """
    if path.startswith("[kernel."):
        return KERNEL
    if path.startswith("["):
        return path
    return None if path.startswith(MEMORY) else path.rpartition("/")[2] or None
