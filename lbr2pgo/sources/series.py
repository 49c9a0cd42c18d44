"""Several files that are one recording: what `perf record --switch-output` dumps one by one.

Each file begins with what perf then knew of mappings, which leaves out what children of the
recorded command had mapped before (perf: tools/perf/builtin-record.c, record__switch_output and
record__synthesize_workload, v6.1). Read as one, a file's samples find what earlier files say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.space_event_log import SpaceEventLog
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import (
    ShownShortly,
    SizedSource,
    Source,
    SourceInfo,
    StackSource,
    SymbolResolver,
)
from lbr2pgo.sources.directories import files_of
from lbr2pgo.sources.one_period import at_one_period
from lbr2pgo.support import headway
from lbr2pgo.support.again import repeatable
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.file_names import expanded

_DUMPED = re.compile(r"(?P<recording>.+)\.\d{16}")
"""Year to second, and hundredths (perf: tools/perf/util/util.c, fetch_current_timestamp)."""
_OF_ONE_SESSION = ("host", "kernel", "perf", "command")


@dataclass(frozen=True, slots=True)
class Recording:
    """An opened input, and what it is called."""

    name: str
    source: Source


def series_of(paths: Iterable[Path]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """Files that may be one recording, and what they are called together; others one by one."""
    groups: dict[str, list[Path]] = {}
    for path in paths:
        dumped = _DUMPED.fullmatch(path.name)
        name = str(path.with_name(dumped["recording"] + ".*")) if dumped else str(path)
        groups.setdefault(name, []).append(path)
    for name, members in groups.items():
        if len(set(members)) == len(members) > 1:
            yield name, tuple(sorted(members))
        else:
            yield from ((str(path), (path,)) for path in members)


def open_series(name: str, paths: Sequence[Path]) -> list[Recording]:
    """Open files of `series_of`, as one if they are; raises InputError as `open_source` does."""
    sources = [open_source(path) for path in paths]
    members = [source for source in sources if isinstance(source, StackSource)]
    if len(members) == len(sources) > 1 and _are_one_session(members):
        return [Recording(name, Series(name, members))]
    return [Recording(str(path), each) for path, each in zip(paths, sources, strict=True)]


def open_recordings(paths: Iterable[Path]) -> list[Recording]:
    """Open all files, with those of one series as one, and as if all had one period.

    Raises InputError as `open_source` does.
    """
    groups = list(series_of(paths))
    sizes = [size_of(name) for name, _ in groups]
    found: list[Recording] = []
    for number, (name, members) in enumerate(groups):
        with headway.part_of(sizes, number):
            found += open_series(name, members)
    sources = at_one_period([each.source for each in found])
    return [replace(each, source=source) for each, source in zip(found, sources, strict=True)]


def size_of(name: str | Path) -> int:
    """Bytes of what a recording is called: a file, perf's directory or a series; 0 for all else."""
    files = [each for path in expanded([str(name)]) for each in files_of(path)]
    return sum(each.stat().st_size for each in files if each.is_file())


def _are_one_session(sources: Sequence[StackSource]) -> bool:
    """Whether nothing that the files say of their session differs; one cut short says less.

    Times that go back are of another session: the machine was started again.
    """
    facts = [_facts(source.info) for source in sources]
    times = [source.info.first_time for source in sources if source.info.first_time is not None]
    return times == sorted(times) and all(
        len(a) == len(b) and all(x == y or None in (x, y) for x, y in zip(a, b, strict=True))
        for a, b in pairwise(facts)
    )


def _facts(info: SourceInfo) -> list[str | int | None]:
    filters = [event.branch_sample_type for event in info.events]
    return [info.machine, *(info.details.get(key) for key in _OF_ONE_SESSION), *filters]


class Series(ShownShortly):
    """A `StackSource` over the files of one recording, in the order in which they were made."""

    def __init__(self, name: str, sources: Sequence[StackSource]) -> None:
        self._name = name
        self._sources = sources
        self._done = 0

    @property
    def info(self) -> SourceInfo:
        """Facts of the first file, with the build-ids of all."""
        first = self._sources[0].info
        build_ids = {path: i for each in self._sources for path, i in each.info.build_ids.items()}
        return replace(first, path=self._name, build_ids=build_ids)

    def space_events(self) -> Sequence[SpaceEvent]:
        """Those of all files, ordered by time."""
        return self._events

    @cached_property
    def _events(self) -> SpaceEventLog:
        return SpaceEventLog(self._moved_events())

    def _moved_events(self) -> Iterator[SpaceEvent]:
        """Events without a time say what was there when their file began.

        That is when its first sample was taken or, where it doesn't say that, behind the last
        event of the files before.
        """
        latest = 0
        for source in self._sources:
            began = source.info.first_time or latest
            for event in source.space_events():
                yield event if event.time else event._replace(time=began)
                latest = max(latest, event.time)

    @repeatable
    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        """Yield the samples of one file after the other."""
        for number, source in enumerate(self._sources):
            self._done = number
            yield from source.batches(resolve)

    @property
    def share_read(self) -> float:
        """How much of all files the latest batches have gone over, each taken for equally long."""
        current = self._sources[self._done]
        share = current.share_read if isinstance(current, SizedSource) else 0.0
        return (self._done + share) / len(self._sources)

    def health(self) -> Mapping[str, int]:
        """What the last whole reading lost or skipped, in all files."""
        total: Counter[str] = Counter()
        for source in self._sources:
            total.update(source.health())
        return total
