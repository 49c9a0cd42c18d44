"""Which mapped files the branches outside the image lie in.

A process maps a file, and later perhaps another one over it; `execve` empties its address space.
That a mapping goes away is not recorded: of overlapping ones between two `execve` the last counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from lbr2pgo.counting.address_spaces import ANY_PID, Piece, overlaid, rows_by
from lbr2pgo.model.address_space_events import KERNEL_PID, Comm, Fork, Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.file_spans import FileSpans
from lbr2pgo.support.arrays import I64, U64

UNKNOWN, KERNEL = "[unknown]", "[kernel]"

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
        self._views: dict[int, list[_View]] = {}
        for event in events:
            if isinstance(event, Mmap):
                self._map(event)
            elif isinstance(event, Fork) and event.pid != event.parent_pid:
                self._views[event.pid] = self._views.get(event.parent_pid, [])[-1:]
            elif isinstance(event, Comm) and event.is_exec:
                self._views.setdefault(event.pid, []).append(_View(event.time, event.pid))

    @property
    def present(self) -> bool:
        """Whether any file was recorded."""
        return bool(self._everywhere.pieces)

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
            own = [self._everywhere] if pid == ANY_PID else self._views.get(pid, [])
            starts = np.array([view.time for view in own], np.uint64)
            place = np.searchsorted(starts, batch.time[rows], "right") - 1
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

    def _own_view(self, pid: int, time: int) -> _View:
        """A process's last view; a copy if it was inherited."""
        views = self._views.setdefault(pid, [])
        if not views:
            views.append(_View(time, pid))
        elif views[-1].owner != pid:
            views[-1] = _View(views[-1].time, pid, list(views[-1].pieces))
        return views[-1]


def _name(path: str) -> str | None:
    """What people call a file; None for memory that has none.

    >>> [_name(path) for path in ("/lib/libc.so.6", "[vdso]", "//anon", "[kernel.kallsyms]_text")]
    ['libc.so.6', '[vdso]', None, '[kernel]']
    """
    if path.startswith("[kernel."):
        return KERNEL
    if path.startswith("["):
        return path
    return None if path.startswith("//") else path.rpartition("/")[2] or None
