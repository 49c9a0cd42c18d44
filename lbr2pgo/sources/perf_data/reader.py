"""perf.data: what `perf record -b` writes, in file, pipe or directory form, read without perf."""

from __future__ import annotations

import os
import stat
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks, CallChains
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.sources.base import (
    EventInfo,
    ShownShortly,
    Sniff,
    SourceFormat,
    SourceInfo,
    SymbolResolver,
    with_recorder,
)
from lbr2pgo.sources.directories import files_of
from lbr2pgo.sources.perf_data import features as perf_features
from lbr2pgo.sources.perf_data._perf_records import TALLIES, Layouts, Room, read_samples
from lbr2pgo.sources.perf_data.attr import PerfAttr, id_field, layout_rows, times_everything
from lbr2pgo.sources.perf_data.header import (
    read_header,
    with_described_names,
    with_group_counters,
    with_type_names,
)
from lbr2pgo.sources.perf_data.index import RecordIndex, index_records
from lbr2pgo.sources.perf_data.stream import Chunk, RecordStream, Region
from lbr2pgo.support.again import repeatable
from lbr2pgo.support.errors import InputError

BATCH_SAMPLES = 1 << 12
BATCH_ENTRIES = 1 << 17
BATCH_FRAMES = 1 << 17
"""More than any one record can hold."""

BAD_FEATURES = Doubt("damaged: header sections that can't be read")
SAMPLE_REASONS = (
    "samples of an unknown event",
    Doubt("damaged: samples shorter than their fields"),
    Doubt("damaged: samples whose call chain does not fit"),
    Doubt("damaged: samples whose branch stack does not fit"),
    Doubt("damaged: samples whose data source does not fit"),
    "call chains without the user's frames, which a later record holds",
)
"""In the order of `sources.perf_data._perf_records.TALLIES`."""


class PerfData(ShownShortly):
    """A `StackSource` over a perf.data file, or a directory of `perf record --threads`.

    Raises InputError for a file that can't be opened or whose header can't be used. Times are
    nanoseconds; where not every record has one, they are places in the stream of records.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._main, *self._parts = files_of(path)
        self._sample_tallies: Mapping[str, int] = {}
        self.share_read = 0.0
        with _open(self._main) as file:
            self._header = read_header(file, str(self._main))

    @cached_property
    def info(self) -> SourceInfo:
        """Facts from the header; in pipe mode, from a pass over all records."""
        features = _Features(self._features)
        attrs = with_described_names(self._attrs, features.events)
        attrs = with_type_names(attrs, features.types)
        return SourceInfo(
            path=str(self._path),
            format=FORMAT.name,
            events=with_recorder(
                [
                    EventInfo(
                        attr.display_name(),
                        attr.branch_sample_type or None,
                        precise_ip=attr.precise_ip,
                        period=attr.period,
                    )
                    for attr in attrs
                ]
            ),
            build_ids={**features.build_ids, **self._piped_build_ids},
            machine=features.machine,
            first_time=features.first_time if times_everything(attrs) else None,
            has_times=bool(attrs) and times_everything(attrs),
            has_call_chains=any(attr.has_call_chains for attr in attrs),
            details=features.details,
        )

    def space_events(self) -> Sequence[SpaceEvent]:
        """All address-space events, ordered by time (file order where times are equal)."""
        return self._index.space_events

    @repeatable
    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        """Yield every sample once, in file order, at most `BATCH_SAMPLES` at a time.

        Samples of events that record no branch stacks have empty ones. `resolve` is not needed.
        """
        layouts = _layouts(self._attrs)
        tallies = np.zeros(TALLIES, np.int64)
        room = _room(self._attrs)
        for chunk in self._chunks():
            at = 0
            while at < len(chunk.data):
                at = read_samples(chunk.data, at, chunk.position, layouts, room, tallies)
                if at < len(chunk.data):
                    yield _batch(room)
                    room = _room(self._attrs)
        if len(room):
            yield _batch(room)
        self._sample_tallies = dict(zip(SAMPLE_REASONS, tallies.tolist(), strict=True))

    def health(self) -> Mapping[str, int]:
        """What was lost while recording and what could not be read, by reason."""
        total = Counter(self._header.damage)
        total.update(self._index.health)
        total.update(self._sample_tallies)
        total[BAD_FEATURES] += _Features(self._features).bad
        return +total

    @cached_property
    def _index(self) -> RecordIndex:
        with self._regions() as regions:
            return index_records(regions, self._header.attrs)

    @cached_property
    def _attrs(self) -> Sequence[PerfAttr]:
        attrs = self._index.attrs if self._header.is_pipe else self._header.attrs
        if not attrs:
            raise InputError(
                "no event is described",
                where=str(self._path),
                cure="Record again: the beginning of what perf wrote is missing.",
            )
        return with_group_counters(attrs, _Features(self._features).groups)

    @property
    def _features(self) -> Mapping[int, bytes]:
        return self._index.features if self._header.is_pipe else self._header.features

    @property
    def _piped_build_ids(self) -> Mapping[str, str]:
        return self._index.build_ids if self._header.is_pipe else {}

    def _chunks(self) -> Iterator[Chunk]:
        position, done = 0, 0
        with self._regions() as regions:
            size = sum(region.end - region.start for region in regions)
            for region in regions:
                stream = RecordStream(region, position)
                for chunk in stream:
                    yield chunk
                    self.share_read = (done + stream.used) / size
                position = stream.position
                done += stream.used

    @contextmanager
    def _regions(self) -> Iterator[list[Region]]:
        with ExitStack() as stack:
            main, *parts = [stack.enter_context(_open(p)) for p in (self._main, *self._parts)]
            whole = Region(main, self._header.data_start, self._header.data_end)
            others = [Region(part, 0, os.fstat(part.fileno()).st_size) for part in parts]
            yield [whole, *others]


class _Features:
    """The header's sections, read; `bad` counts those that can't be."""

    def __init__(self, sections: Mapping[int, bytes]) -> None:
        self.events: list[PerfAttr] = []
        self.types: dict[tuple[int, int], str] = {}
        self.groups: list[range] = []
        self.build_ids: dict[str, str] = {}
        self.machine: str | None = None
        self.first_time: int | None = None
        self.details: dict[str, str] = {}
        self.bad = 0
        for feature, section in sections.items():
            try:
                self._read(feature, section)
            except (struct.error, ValueError, IndexError):
                self.bad += 1

    def _read(self, feature: int, section: bytes) -> None:
        if feature == abi.FEATURE_EVENT_DESC:
            self.events = perf_features.event_descriptions(section)
        elif feature == abi.FEATURE_GROUP_DESC:
            self.groups = perf_features.event_groups(section)
        elif feature == abi.FEATURE_BUILD_ID:
            self.build_ids = dict(perf_features.build_ids(section))
        elif feature == abi.FEATURE_ARCH:
            self.machine = perf_features.text_of(section)
        else:
            if feature == abi.FEATURE_SAMPLE_TIME:
                self.first_time = perf_features.sample_times(section)[0]
            if feature == abi.FEATURE_META_INFO:
                self.types = perf_features.named_types(section)
            self.details.update(perf_features.describe(feature, section))


def _open(path: Path) -> BinaryIO:
    try:
        is_regular = stat.S_ISREG(path.stat().st_mode)  # opening a pipe would wait for its writer
        file = path.open("rb") if is_regular else None
    except OSError as error:
        raise InputError(
            f"can't be read: {error.strerror}",
            where=str(path),
            cure="Name a perf.data file that you may read.",
        ) from error
    if file is None:
        raise InputError(
            "not a regular file, and perf.data is read more than once",
            where=str(path),
            cure="Save what perf writes to a file first.",
        )
    return file


def _layouts(attrs: Sequence[PerfAttr]) -> Layouts:
    ids = sorted((i, event) for event, attr in enumerate(attrs) for i in attr.ids)
    field = id_field(attrs) if len(attrs) > 1 and ids else None
    return Layouts(
        fields=layout_rows(attrs),
        id_at=0 if field is None else attrs[0].sample_word(field),
        ids=np.array([i for i, _ in ids], np.uint64),
        id_events=np.array([event for _, event in ids], np.int32),
    )


def _room(attrs: Sequence[PerfAttr]) -> Room:
    has_chains = any(attr.has_call_chains for attr in attrs)
    has_counters = any(attr.branch_sample_type & abi.BRANCH_COUNTERS for attr in attrs)
    frames = BATCH_FRAMES if has_chains else 0
    has_cpus = any(attr.sample_type & abi.SAMPLE_CPU for attr in attrs)
    return Room(
        BATCH_SAMPLES, BATCH_ENTRIES, frames, has_counters=has_counters, has_cpus=has_cpus,
        has_accesses=any(attr.has_accesses for attr in attrs),
    )  # fmt: skip


def _batch(room: Room) -> BranchStacks:
    found = room.call_chains()
    return BranchStacks(
        **room.columns(),
        weight=np.ones(len(room), np.uint64),
        chains=None if found is None else CallChains(*found),
    )


def sniff(head: bytes) -> Sniff:
    """perf.data begins with its magic, in either byte order."""
    magics = (abi.MAGIC, abi.MAGIC_BIG_ENDIAN, abi.MAGIC_VERSION_1)
    if head[:8] in magics:
        return Sniff.YES
    if head and any(magic.startswith(head) for magic in magics):
        return Sniff.MORE
    return Sniff.NO


FORMAT = SourceFormat(
    name="perf.data",
    summary="samples with branch stacks as `perf record -b` writes them",
    references=(
        "https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/tools/perf/Documentation/perf.data-file-format.txt",
        "https://man7.org/linux/man-pages/man2/perf_event_open.2.html",
    ),
    sniff=sniff,
    open=PerfData,
)
