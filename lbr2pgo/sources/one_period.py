"""Recordings of several runs as if all had been taken with the longest of their periods.

A sample stands for as many events as its period, which is how perf weighs it. Added up as they are,
samples of a run that was recorded more densely would count for more than that run did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.perf_abi import WITHOUT_BRANCHES
from lbr2pgo.sources.base import (
    ShownShortly,
    SizedSource,
    Source,
    SourceInfo,
    StackSource,
    SymbolResolver,
)
from lbr2pgo.support.again import repeatable


def at_one_period(sources: Sequence[Source]) -> list[Source]:
    """The same sources, less samples of those whose period is shorter than another's.

    As they are, where one of them does not tell its period, or of another event.
    """
    events = [_event(source) for source in sources]
    periods = [0 if event is None else event[1] for event in events]
    if not all(periods) or len({event[0] for event in events if event is not None}) != 1:
        return list(sources)
    longest = max(periods)
    return [
        _Thinned(source, period, longest)
        if isinstance(source, StackSource) and period < longest
        else source
        for source, period in zip(sources, periods, strict=True)
    ]


def _event(source: Source) -> tuple[str, int] | None:
    """Name and period of the event whose samples hold branches; None unless one alone is known."""
    events = [each for each in source.info.events if each.name not in WITHOUT_BRANCHES]
    if not isinstance(source, StackSource) or len(events) != 1 or events[0].period is None:
        return None
    return events[0].name, events[0].period


class _Thinned(ShownShortly):
    """A source with so many of its samples, evenly chosen, as a longer period would have given."""

    def __init__(self, source: StackSource, period: int, longest: int) -> None:
        self._source, self._period, self._longest = source, period, longest
        self._left_out = 0

    @property
    def info(self) -> SourceInfo:
        """As the source tells it."""
        return self._source.info

    def space_events(self) -> Sequence[SpaceEvent]:
        """Those of the source."""
        return self._source.space_events()

    @repeatable
    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        """Yield the chosen samples."""
        read = self._left_out = 0
        for batch in self._source.batches(resolve):
            # Of each three with a period a third as long, the second one is taken.
            share = self._period / self._longest
            taken = np.floor(0.5 + share * np.arange(read, read + len(batch) + 1))
            rows = np.flatnonzero(np.diff(taken))
            read += len(batch)
            self._left_out += len(batch) - len(rows)
            yield batch.of_samples(rows)

    @property
    def share_read(self) -> float:
        """How much of its file the latest batches have gone over."""
        return self._source.share_read if isinstance(self._source, SizedSource) else 0.0

    def health(self) -> Mapping[str, int]:
        """What the last whole reading lost or skipped."""
        why = f"samples left out, as another recording has one in {self._longest:,} events, not in "
        return {**self._source.health(), f"{why}{self._period:,}": self._left_out}
