"""Mappings of code that processes made, put among what was recorded of their address spaces.

A recording says at most that there is memory that may be run. Code that took nothing's place is
there as soon as its process is; files that are mapped over it later replace it, as in a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from operator import attrgetter

from lbr2pgo.model.address_space_events import Comm, Fork, Mmap, SpaceEvent, is_memory


def with_made_code(events: Sequence[SpaceEvent], made: Sequence[Mmap]) -> list[SpaceEvent]:
    """Events by time, with mappings of made code, of which those at time 0 are the first ones."""
    pids = {mapping.pid for mapping in made}
    first = [mapping for mapping in made if not mapping.time]
    later = sorted((mapping for mapping in made if mapping.time), key=attrgetter("time"))
    kept = [event for event in events if not _hides(event, pids)]
    return list(merge(_begun(kept, first), later, key=attrgetter("time")))


def _hides(event: SpaceEvent, pids: Iterable[int]) -> bool:
    """Whether a mapping is of the memory that made code is in."""
    return isinstance(event, Mmap) and event.pid in pids and event.executable and is_memory(event)


def _begun(events: Sequence[SpaceEvent], first: Sequence[Mmap]) -> Iterator[SpaceEvent]:
    """The events, and behind the last one that begins each process its first mappings."""
    begin = {event.pid: i for i, event in enumerate(events) if _begins(event)}
    yield from (mapping for mapping in first if mapping.pid not in begin)
    for i, event in enumerate(events):
        yield event
        if begin.get(event.pid) == i:
            own = (mapping for mapping in first if mapping.pid == event.pid)
            yield from (mapping._replace(time=event.time) for mapping in own)


def _begins(event: SpaceEvent) -> bool:
    if isinstance(event, Fork):
        return event.pid != event.parent_pid
    return isinstance(event, Comm) and event.is_exec
