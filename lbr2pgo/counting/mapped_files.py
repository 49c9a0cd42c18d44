"""Which mapped files the branches outside the image lie in.

A process maps a file, and later perhaps another one over it; `execve` empties its address space.
That a mapping goes away is not recorded: of overlapping ones between two `execve` the last counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

import numpy as np

from lbr2pgo.counting._file_spans import FileSpans
from lbr2pgo.counting.address_spaces import ANY_PID, Piece, overlaid, rows_by
from lbr2pgo.model.address_space_events import KERNEL_PID, MEMORY, Comm, Fork, Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.support.addresses import RuntimeAddresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.intervals import interval_of, last_at_or_below

UNKNOWN, KERNEL = "[unknown]", "[kernel]"
_KERNEL_HALF = 1 << 63

_MOST_MAPPINGS = 4096
"""Of a process that mapped more files than this, the first are forgotten."""


@dataclass(slots=True)
class _View:
    """What a process had mapped from some time on; the pieces' biases are numbers of files."""

    time: int
    owner: int
    pieces: list[Piece] = field(default_factory=list)
    spans: tuple[U64, I64] | None = None

    def flat(self) -> tuple[U64, I64]:
        """Spans (s, 2), and their files (s,)."""
        if self.spans is None:
            seen = overlaid(self.pieces[-_MOST_MAPPINGS:])
            spans = np.array([(p.start, p.end) for p in seen], np.uint64).reshape(-1, 2)
            self.spans = spans, np.array([p.bias for p in seen], np.int64)
        return self.spans


class MappedFiles:
    """Files by number, and where each process had them."""

    def __init__(self, events: Iterable[SpaceEvent]) -> None:
        """Replay the events."""
        self._numbers = {UNKNOWN: 0, KERNEL: 1}
        self._everywhere, self._kernel = _View(0, ANY_PID), _View(0, KERNEL_PID)
        self._latest: dict[int, _View] = {}
        """Of each process; perhaps that of the one which it was forked from."""
        self._earlier: dict[int, list[_View]] = {}
        """Of processes that had others before."""
        for event in events:
            if isinstance(event, Mmap):
                self._map(event)
            elif isinstance(event, Fork) and event.pid != event.parent_pid:
                self._fork(event)
            elif isinstance(event, Comm) and event.is_exec:
                self._begin(event.pid, event.time)

    @property
    def present(self) -> bool:
        """Whether any file was recorded."""
        return bool(self._everywhere.pieces)

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
        for view, rows in ((self._everywhere, ~is_kernel), (self._kernel, is_kernel)):
            spans, files = view.flat()
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
        views = [self._kernel]
        of_sample = np.zeros(len(batch), np.int64)
        for pid, rows in rows_by(np.where(spaces >= 0, batch.pid, KERNEL_PID)):
            own = [self._everywhere] if pid == ANY_PID else self._views_of(pid)
            starts = np.array([view.time for view in own], np.uint64)
            place = last_at_or_below(starts, batch.time[rows])
            of_sample[rows] = np.maximum(place, 0) + len(views)
            views += own or [_View(0, pid)]
        spans, files = zip(*(view.flat() for view in views), strict=True)
        offsets = np.cumsum([0, *map(len, files)], dtype=np.int64)
        return FileSpans(of_sample, offsets, np.concatenate(spans), np.concatenate(files), counts)

    def _map(self, event: Mmap) -> None:
        name = _name(event.path)
        if name is None or not event.executable:
            return
        number = self._numbers.setdefault(name, len(self._numbers))
        piece = Piece(event.start, event.end, number)
        self._everywhere.pieces.append(piece)
        if event.pid == KERNEL_PID:
            self._kernel.pieces.append(piece)
        else:
            self._own_view(event.pid, event.time).pieces.append(piece)

    def _views_of(self, pid: int) -> list[_View]:
        latest = self._latest.get(pid)
        return [] if latest is None else [*self._earlier.get(pid, ()), latest]

    def _fork(self, event: Fork) -> None:
        self._earlier.pop(event.pid, None)
        inherited = self._latest.get(event.parent_pid)
        if inherited is not None:
            self._latest[event.pid] = inherited
        else:
            self._latest.pop(event.pid, None)

    def _begin(self, pid: int, time: int) -> _View:
        """An empty view."""
        before = self._latest.get(pid)
        if before is not None:
            self._earlier.setdefault(pid, []).append(before)
        self._latest[pid] = _View(time, pid)
        return self._latest[pid]

    def _own_view(self, pid: int, time: int) -> _View:
        """A process's last view; a copy if it was inherited."""
        latest = self._latest.get(pid) or self._begin(pid, time)
        if latest.owner != pid:
            latest = self._latest[pid] = _View(latest.time, pid, list(latest.pieces))
        return latest


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
