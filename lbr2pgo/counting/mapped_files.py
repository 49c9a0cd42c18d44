"""Which mapped files the branches outside the image lie in.

A process maps a file, and later perhaps another one over it; `execve` empties its address space.
That a mapping goes away is not recorded: of overlapping ones between two `execve` the last counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from lbr2pgo.counting._file_spans import FileSpans
from lbr2pgo.counting.address_spaces import Piece, overlaid
from lbr2pgo.counting.mapping_history import NONE, MappingHistory
from lbr2pgo.model.address_space_events import ANY_PID, KERNEL_PID, MEMORY
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.space_event_log import MMAP, SpaceEventLog
from lbr2pgo.support.addresses import LAST_ADDRESS, RuntimeAddresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.budget import COPIED_MAPPINGS
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.intervals import interval_of

UNKNOWN, KERNEL = "[unknown]", "[kernel]"
_KERNEL_HALF = 1 << 63

_MOST_MAPPINGS = 4096
"""Of a process that mapped more files than this, the first are forgotten."""
_MOST_KEPT = 1 << 10
"""Of what processes had mapped, between two batches."""
_EVERYWHERE, _KERNEL = -2, -3
"""In place of a process's last mapping: what any process, or the kernel, has mapped."""
_Spans = tuple[U64, I64]
"""Run-time addresses (s, 2), half-open, and their files (s,)."""


class MappedFiles:
    """Files by number, and where each process had them."""

    def __init__(self, events: SpaceEventLog) -> None:
        """Replay the events."""
        self._numbers = {UNKNOWN: 0, KERNEL: 1}
        self._rows = events.rows
        self._file = self._files_of(events)
        """(n,): of each event, `NONE` where it maps none."""
        is_mapping, is_kernel = self._file != NONE, events.rows["pid"] == KERNEL_PID
        self._everywhere = np.flatnonzero(is_mapping)[-_MOST_MAPPINGS:]
        self._kernel = np.flatnonzero(is_mapping & is_kernel)[-_MOST_MAPPINGS:]
        self._history = MappingHistory(events, is_mapping & ~is_kernel)
        self._programs = self._history.of_programs()
        self._spans: dict[int, _Spans] = {}
        """Of what was mapped up to a mapping."""
        latest = self._history.latest
        lengths = self._history.length[latest[latest != NONE]]
        most = COPIED_MAPPINGS.of(int(np.count_nonzero(events.rows["kind"] == MMAP)))
        self._is_each_known = int(np.minimum(lengths, _MOST_MAPPINGS).sum()) <= most
        """Else what any process had mapped stands for what each had."""

    @property
    def present(self) -> bool:
        """Whether any file was recorded."""
        return bool(len(self._everywhere))

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
        for last, rows in ((_EVERYWHERE, ~is_kernel), (_KERNEL, is_kernel)):
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

    def spans_of(self, batch: BranchStacks, spaces: I64) -> Callable[[U64], FileSpans]:
        """What the samples of a batch that are counted had mapped, to be added to some counts."""
        if len(self._spans) > _MOST_KEPT:
            self._spans.clear()
        last = np.full(len(batch), _EVERYWHERE, np.int64)
        if self._is_each_known:
            is_told = (spaces >= 0) & (batch.pid != ANY_PID)
            last[is_told] = self._programs.at(batch.pid[is_told], batch.time[is_told])
        asked = distinct(last)
        of_sample = np.searchsorted(asked, last) + 1
        lasts = _KERNEL, *asked.tolist()
        spans, files = zip(*map(self._spans_up_to, lasts), strict=True)
        offsets = np.cumsum([0, *map(len, files)], dtype=np.int64)
        columns = of_sample, offsets, np.concatenate(spans), np.concatenate(files)
        return partial(FileSpans, *columns)

    def _files_of(self, events: SpaceEventLog) -> I64:
        """The number of the file that each event (n,) maps as code, `NONE` if none."""
        texts = np.where(events.are_code, events.rows["text"], NONE)
        known, first = np.unique(texts, return_index=True)
        files = np.full(len(known), NONE, np.int64)
        for row in np.argsort(first).tolist():
            text = int(known[row])
            name = None if text == NONE else _name(events.text(text))
            if name is not None:
                files[row] = self._numbers.setdefault(name, len(self._numbers))
        return files[np.searchsorted(known, texts)]

    def _spans_up_to(self, last: int) -> _Spans:
        """What was mapped when a mapping was the last."""
        found = self._spans.get(last)  # another thread may forget them meanwhile
        if found is None:
            rows = {_EVERYWHERE: self._everywhere, _KERNEL: self._kernel}.get(last)
            if rows is None:
                rows = np.array(self._history.up_to(last, _MOST_MAPPINGS), np.int64)
            found = self._spans[last] = self._seen(rows)
        return found

    def _seen(self, rows: I64) -> _Spans:
        start, length = self._rows["start"][rows], self._rows["length"][rows]
        end = start + np.minimum(length, np.uint64(LAST_ADDRESS) - start)
        layers = zip(start.tolist(), end.tolist(), self._file[rows].tolist(), strict=True)
        seen = overlaid(list(map(Piece._make, layers)))
        spans = np.array([(p.start, p.end) for p in seen], np.uint64).reshape(-1, 2)
        return spans, np.array([p.bias for p in seen], np.int64)


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
