"""Since when each process had which mappings.

A mapping is known by the number of its event, and stands behind the one that its process had before
it: a child begins with its parent's last one, `execve` with none. So a million processes take a few
bytes each, and what one of them saw is put together when a sample asks for it.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from lbr2pgo.counting._mapping_history import last_at, replay
from lbr2pgo.model.space_event_log import COMM, FORK, SpaceEventLog
from lbr2pgo.support.arrays import I32, I64, U8, U64, Bools, Records
from lbr2pgo.support.distinct import begins, distinct, place_of

NONE = -1
"""No mapping."""
_MAPPING, _FORK, _EXEC, _COVER = 1, 2, 3, 4
"""Steps of `_mapping_history.pyx`; all else that happens is none."""


class Timeline:
    """The last mapping of each process, and since when."""

    def __init__(self, pids: I64, owner: I32, since: U64, last: I32) -> None:
        """Take processes (p,), ascending, and (k,) of each a row there, a time and a mapping.

        Ordered by process, then time; of several at one time the last one counts.
        """
        self._pids, self._owner, self._since, self._last = pids, owner, since, last

    def at(self, pids: I32, times: U64) -> I64:
        """The last mapping (n,) that each process (n,) had at that time, else `NONE`."""
        found = np.empty(len(pids), np.int64)
        last_at(pids, times, self._pids, self._owner, self._since, self._last, found)
        return found


class MappingHistory:
    """What each process had mapped, by the numbers of a log's events."""

    def __init__(
        self, events: SpaceEventLog, is_mapping: Bools, shows: Bools | None = None
    ) -> None:
        """Replay the events; `is_mapping` (n,) are mappings of processes that are to be known.

        Of those that are not among `shows` (n,) only what stands behind one that is: where many
        programs have the same addresses, each image is asked of all processes.
        """
        rows = self._rows = events.rows
        self._steps = _steps(rows, is_mapping)
        if shows is not None:
            self._steps[is_mapping & ~shows] = _COVER
        told = np.flatnonzero(self._steps).astype(np.int32)
        self._pids = distinct(rows["pid"][told])
        own = np.searchsorted(self._pids, rows["pid"]).astype(np.int32)
        parents = np.full(len(rows), NONE, np.int32)
        forks = self._steps == _FORK
        parents[forks] = place_of(rows["other"][forks], self._pids)
        self.before, self._last, self.length = (np.full_like(parents, NONE) for _ in range(3))
        """`before` (n,) is the mapping that each one stands behind, `length` (n,) how many it
        ends."""
        self.latest = np.full(len(self._pids), NONE, np.int32)
        """(p,): the last mapping of each process."""
        replay(self._steps, own, parents, self.latest, self.before, self._last, self.length)
        self._told = told[np.argsort(own[told], kind="stable")]
        """The steps (k,), by process."""
        self._owner = own[self._told]

    def timeline(self) -> Timeline:
        """Since when each process had which mappings."""
        since = self._rows["time"][self._told]
        return Timeline(self._pids, self._owner, since, self._last[self._told])

    def of_programs(self) -> Timeline:
        """The same, but each program has from its beginning on what it will have mapped."""
        is_first = begins(self._owner)
        first = np.flatnonzero(is_first | (self._steps[self._told] != _MAPPING))
        since = np.where(is_first[first], np.uint64(0), self._rows["time"][self._told[first]])
        last = np.append(first, len(self._told))[1:] - 1
        return Timeline(self._pids, self._owner[first], since, self._last[self._told[last]])

    def up_to(self, last: int, most: int, known: Container[int] = (NONE,)) -> list[int]:
        """A mapping and those before it, from the first on, which are left out if too many.

        They end behind one that is known, if not before.
        """
        found = list[int]()
        before = memoryview(self.before)  # type: ignore[arg-type]
        while last not in known and len(found) < most:
            found.append(last)
            last = before[last]
        return found[::-1]


def _steps(rows: Records, is_mapping: Bools) -> U8:
    steps = is_mapping * np.uint8(_MAPPING)
    is_thread = rows["pid"] == rows["other"]
    steps[(rows["kind"] == FORK) & ~is_thread] = _FORK
    steps[(rows["kind"] == COMM) & (rows["flag"] != 0)] = _EXEC
    return steps
