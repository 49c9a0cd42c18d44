"""Recordings of several runs as if all had been taken with the longest of their periods.

A sample stands for as many events as its period, which is how perf weighs it. Added up as they are,
samples of a run that was recorded more densely would count for more than that run did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.sources.base import (
    ShownShortly,
    SizedSource,
    Source,
    SourceInfo,
    StackSource,
    SymbolResolver,
)
from lbr2pgo.support.again import repeatable
from lbr2pgo.support.arrays import Bools


def at_one_period(sources: Sequence[Source]) -> list[Source]:
    """The same sources, less samples of events whose period is longer in another of them.

    Events stay as they are whose period is not told by all.
    """
    periods = [_periods(source) for source in sources]
    names = {name for each in periods for name in each}
    told_by_all = [name for name in names if all(name in each for each in periods)]
    longest = {name: max(each[name] for each in periods) for name in told_by_all}
    return [_at(longest, source, own) for source, own in zip(sources, periods, strict=True)]


def _at(longest: Mapping[str, int], source: Source, own: Mapping[str, int]) -> Source:
    longer = {name: period for name, period in longest.items() if own[name] < period}
    return _Thinned(source, own, longer) if isinstance(source, StackSource) and longer else source


def _periods(source: Source) -> dict[str, int]:
    """By the name of each event that tells its period."""
    return {each.name: each.period for each in source.info.events if each.period}


class _Thinned(ShownShortly):
    """A source with so many of its samples, evenly chosen, as longer periods would have given."""

    def __init__(
        self, source: StackSource, periods: Mapping[str, int], longest: Mapping[str, int]
    ) -> None:
        self._source, self._periods, self._longest = source, periods, longest
        self._left_out = Counter[str]()

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
        names = [each.name for each in self._source.info.events]
        read = Counter[str]()
        self._left_out.clear()
        for batch in self._source.batches(resolve):
            kept = np.ones(len(batch), np.bool_)
            for number, name in enumerate(names):
                if name in self._longest:
                    own = np.flatnonzero(batch.event == number)
                    kept[own] = self._chosen(name, read[name], len(own))
                    read[name] += len(own)
                    self._left_out[name] += len(own) - int(kept[own].sum())
            yield batch.of_samples(np.flatnonzero(kept))

    def _chosen(self, name: str, read: int, size: int) -> Bools:
        """(size,): which of an event's samples are taken, behind so many that were read."""
        share = self._periods[name] / self._longest[name]
        # Of each three with a period a third as long, the second one is.
        taken = np.floor(0.5 + share * np.arange(read, read + size + 1))
        chosen: Bools = np.diff(taken) > 0
        return chosen

    @property
    def share_read(self) -> float:
        """How much of its file the latest batches have gone over."""
        return self._source.share_read if isinstance(self._source, SizedSource) else 0.0

    def health(self) -> Mapping[str, int]:
        """What the last whole reading lost or skipped."""
        told = {
            f"samples left out, as another recording has one in {self._longest[name]:,} events, "
            f"not in {self._periods[name]:,}": count
            for name, count in self._left_out.items()
        }
        return {**self._source.health(), **told}
