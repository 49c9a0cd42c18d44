"""What the records of perf.data say besides samples, from one fast pass over all of them."""

from __future__ import annotations

import dataclasses
import struct
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.sources.perf_data import features as perf_features
from lbr2pgo.sources.perf_data._perf_records import SIMPLEPERF_TYPES, TYPE_COUNTS, find_records
from lbr2pgo.sources.perf_data.attr import PerfAttr, parse_attr
from lbr2pgo.sources.perf_data.space_records import SPACE_TYPES, SpaceRecords
from lbr2pgo.sources.perf_data.stream import Chunk, RecordStream, Region
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.budget import SPACE_EVENTS
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

_UPDATE_NAME = 2  # PERF_EVENT_UPDATE__NAME
_FOUND = 1 << 14
_MAX_EVENTS = 1 << 14

LOST_RECORDS = Doubt("records the kernel lost (full buffer)")
LOST_SAMPLES = Doubt("samples the kernel lost")
THROTTLED = "times the kernel throttled sampling"
UNKNOWN = "records of unknown types"
TOO_SHORT = Doubt("damaged: records shorter than their fields")


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """What one pass found."""

    attrs: tuple[PerfAttr, ...]
    """As the records of pipe mode describe them, or else as given."""
    features: Mapping[int, bytes]
    build_ids: Mapping[str, str]
    space_events: Sequence[SpaceEvent]
    health: Mapping[str, int]


def index_records(regions: Sequence[Region], attrs: Sequence[PerfAttr]) -> RecordIndex:
    """Read all records but samples; `attrs` is empty where the records have to describe them.

    Raises InputError for more events of address spaces than files of this size really have.
    """
    indexer = _Indexer(attrs)
    most = SPACE_EVENTS.of(sum(region.end - region.start for region in regions))
    position = 0
    for region in regions:
        stream = RecordStream(region, position)
        for chunk in stream:
            indexer.add(chunk)
            if indexer.space_events > most:
                raise InputError(
                    f"holds more than {most:,} mappings and forks, which no recording of its size "
                    "does",
                    where=str(region.file.name),
                    cure="Record again: it is damaged, or made to take memory.",
                )
        indexer.health.update(stream.damage)
        position = stream.position
    return indexer.result()


class _Indexer:
    """Collects what the records say; those of a chunk by the attrs that are known by then."""

    def __init__(self, attrs: Sequence[PerfAttr]) -> None:
        self.health: Counter[str] = Counter()
        self._attrs = list(attrs)
        self._is_described = not attrs
        self._names_by_id: dict[int, str] = {}
        self._names_by_config: dict[int, str] = {}
        self._features: dict[int, bytes] = {}
        self._build_ids: dict[str, str] = {}
        self._space_records = SpaceRecords()
        self._counts = np.zeros(TYPE_COUNTS, np.int64)
        self._found = np.empty(_FOUND, np.int64)
        self._readers = {
            abi.RECORD_LOST: self._lost,
            abi.RECORD_LOST_SAMPLES: self._lost_samples,
            abi.RECORD_HEADER_ATTR: self._attr,
            abi.RECORD_EVENT_UPDATE: self._event_update,
            abi.RECORD_HEADER_EVENT_TYPE: self._event_type,
            abi.RECORD_HEADER_FEATURE: self._feature,
            abi.RECORD_HEADER_BUILD_ID: self._build_id,
        }
        self._wanted = np.zeros(TYPE_COUNTS, np.uint8)
        self._wanted[[*SPACE_TYPES, *self._readers]] = 1

    def add(self, chunk: Chunk) -> None:
        """Read the records of a chunk."""
        at = 0
        while at < len(chunk.data):
            at, n = find_records(chunk.data, at, self._wanted, self._counts, self._found)
            self._read(chunk, self._found[:n])

    def _read(self, chunk: Chunk, places: I64) -> None:
        """Those at these places: first those that may tell what the fields of others mean."""
        kinds = chunk.data[places[:, None] + np.arange(4)].view("<u4")[:, 0]
        are_of_spaces = np.isin(kinds, SPACE_TYPES)
        for at in places[~are_of_spaces].tolist():
            kind, _, size = abi.RECORD_HEADER.unpack(chunk.data[at : at + 8].tobytes())
            try:
                self._readers[kind](chunk.data[at : at + size].tobytes())
            except (struct.error, ValueError, IndexError):
                self.health[TOO_SHORT] += 1
        own = places[are_of_spaces]
        if len(own):
            self.health[TOO_SHORT] += self._space_records.add(
                chunk.data, own, chunk.position, self._attrs
            )

    @property
    def space_events(self) -> int:
        """How many there are so far."""
        return self._space_records.count

    def result(self) -> RecordIndex:
        """Everything, with the events in the order of their times."""
        for kind, count in enumerate(self._counts.tolist()):
            if kind not in abi.KNOWN_RECORDS and kind != SIMPLEPERF_TYPES:
                self.health[UNKNOWN] += count
        self.health[THROTTLED] += int(self._counts[abi.RECORD_THROTTLE])
        return RecordIndex(
            tuple(map(self._named, self._attrs)),
            self._features,
            self._build_ids,
            self._space_records.log(),
            +self.health,
        )

    def _named(self, attr: PerfAttr) -> PerfAttr:
        by_config = self._names_by_config.get(attr.config, attr.name)
        names = [self._names_by_id[i] for i in attr.ids if i in self._names_by_id]
        return dataclasses.replace(attr, name=names[0] if names else by_config)

    def _lost(self, record: bytes) -> None:
        self.health[LOST_RECORDS] += struct.unpack_from("<Q", record, 16)[0]

    def _lost_samples(self, record: bytes) -> None:
        self.health[LOST_SAMPLES] += struct.unpack_from("<Q", record, 8)[0]

    def _attr(self, record: bytes) -> None:
        """An event of pipe mode: its attr, as long as it says, and its ids."""
        if not self._is_described:
            return
        if len(self._attrs) == _MAX_EVENTS:
            raise ValueError("more events than any machine can record")
        _, size = struct.unpack_from("<II", record, 8)
        raw = record[8 : 8 + size]
        if len(raw) != size or size < abi.ATTR_SIZE_FIRST:
            raise ValueError("an attr runs past its record")
        ids = record[8 + size :]
        count = len(ids) // 8
        self._attrs.append(parse_attr(raw, struct.unpack_from(f"<{count}Q", ids)))

    def _event_update(self, record: bytes) -> None:
        kind, event_id = struct.unpack_from("<QQ", record, 8)
        if kind == _UPDATE_NAME:
            self._names_by_id[event_id] = perf_features.decode(record[24:])

    def _event_type(self, record: bytes) -> None:
        (config,) = struct.unpack_from("<Q", record, 8)
        self._names_by_config[config] = perf_features.decode(record[16:])

    def _feature(self, record: bytes) -> None:
        (feature,) = struct.unpack_from("<Q", record, 8)
        if feature in perf_features.WANTED:
            self._features[feature] = record[16:]

    def _build_id(self, record: bytes) -> None:
        found = perf_features.parse_build_id(record)
        self._build_ids[found.path] = found.build_id
