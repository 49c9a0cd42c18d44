"""The header of a perf.data file: where the records are, what was recorded, who says so.

Layouts: perf: tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/header.c
(`perf_session__read_header`, v6.1).
"""

from __future__ import annotations

import dataclasses
import os
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import BinaryIO, NamedTuple

from lbr2pgo.model import perf_abi as abi
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.sources.perf_data import features as perf_features
from lbr2pgo.sources.perf_data.attr import PerfAttr, parse_attr
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

_MAX_SECTION = 1 << 24
"""Bytes of the longest section that is read; real ones are far shorter."""
_SMALLEST_HEADER = 72  # before there were features
_EVENT_TYPE = struct.Struct("<Q64s")
MISSING = Doubt("truncated: bytes that the header promises and the file lacks")
NO_SECTIONS = Doubt("truncated: header sections past the end of the file")
_READ_AGAIN = "Record again, or copy the file again: its header is damaged."


@dataclass(frozen=True, slots=True)
class PerfHeader:
    """What stands in a perf.data file besides its records."""

    attrs: tuple[PerfAttr, ...]
    data_start: int
    data_end: int
    """Within the file."""
    is_pipe: bool
    features: Mapping[int, bytes] = field(default_factory=dict)
    """Those of `perf_features.WANTED` that the file has."""
    damage: Mapping[str, int] = field(default_factory=dict)


def read_header(file: BinaryIO, path: str) -> PerfHeader:
    """Read the header in file or pipe form.

    Raises InputError for another byte order and for a header that can't be used.
    """
    head = file.read(abi.FILE_HEADER.size)
    if head[:8] == abi.MAGIC_BIG_ENDIAN:
        raise InputError(
            "perf.data of a big-endian machine",
            where=path,
            cure="Run `perf script` on that machine and convert its text.",
        )
    if len(head) < abi.PIPE_HEADER.size:
        raise InputError("the file ends within its header", where=path, cure=_READ_AGAIN)
    magic, size = abi.PIPE_HEADER.unpack_from(head)
    if magic not in (abi.MAGIC, abi.MAGIC_VERSION_1):
        raise InputError("not a perf.data file", where=path, cure="Name a file that perf wrote.")
    if size == abi.PIPE_HEADER.size:
        return PerfHeader((), size, os.fstat(file.fileno()).st_size, is_pipe=True)
    known = min(size, abi.FILE_HEADER.size)
    if known < _SMALLEST_HEADER or len(head) < known:
        raise InputError(f"a header of {size} bytes", where=f"{path}@0x8", cure=_READ_AGAIN)
    padded = head[:known].ljust(abi.FILE_HEADER.size, b"\0")
    return _FileReader(file, path).read(_FileHeader(*abi.FILE_HEADER.unpack(padded)))


class _FileHeader(NamedTuple):
    """`struct perf_file_header`."""

    magic: bytes
    size: int
    entry_size: int
    attrs_at: int
    attrs_size: int
    data_at: int
    data_size: int
    types_at: int
    types_size: int
    features: bytes

    @property
    def present(self) -> list[int]:
        """The features whose bits are set."""
        bits = int.from_bytes(self.features, "little")
        return [i for i in range(abi.FEATURE_BITS) if bits >> i & 1]


class _FileReader:
    """Reads the parts that the header of a seekable perf.data points to."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self._file = file
        self._path = path
        self._file_size = os.fstat(file.fileno()).st_size
        self._damage: Counter[str] = Counter()

    def read(self, header: _FileHeader) -> PerfHeader:
        if header.data_at > self._file_size:
            raise self._broken("the data section lies past the end", 40)
        end, features = self._file_size, {}
        if self._is_finished(header):
            end = header.data_at + header.data_size
            features = self._features(header.present, end)
        if end > self._file_size:
            self._damage[MISSING] += end - self._file_size
        attrs = self._attrs(header.entry_size, header.attrs_at, header.attrs_size)
        attrs = _with_config_names(attrs, self._section(header.types_at, header.types_size))
        end = min(end, self._file_size)
        return PerfHeader(attrs, header.data_at, end, False, features, self._damage)

    def _is_finished(self, header: _FileHeader) -> bool:
        """Whether the recorder lived to say how much it wrote, be it nothing at all."""
        if header.data_size or not header.present:
            return header.data_size > 0
        table = self._section(header.data_at, abi.SECTION.size)
        first = header.data_at + len(header.present) * abi.SECTION.size
        return len(table) == abi.SECTION.size and abi.SECTION.unpack(table)[0] == first

    def _attrs(self, entry_size: int, at: int, size: int) -> tuple[PerfAttr, ...]:
        attr_size = entry_size - abi.SECTION.size
        if attr_size < abi.ATTR_SIZE_FIRST or size < entry_size:
            raise self._broken("no event is described", 16)
        raw = self._section(at, size)
        if len(raw) != size:
            raise self._broken("the events lie past the end", 24)
        attrs = []
        room = self._file_size
        for entry in range(0, size - entry_size + 1, entry_size):
            ids_at, ids_size = abi.SECTION.unpack_from(raw, entry + attr_size)
            room -= ids_size
            if room < 0:
                raise self._broken("more ids than the file can hold", at + entry)
            ids = self._section(ids_at, ids_size)
            numbers = struct.unpack_from(f"<{len(ids) // 8}Q", ids)
            attrs.append(parse_attr(raw[entry : entry + attr_size], numbers))
        return tuple(attrs)

    def _features(self, present: Sequence[int], table_at: int) -> dict[int, bytes]:
        table = self._section(table_at, len(present) * abi.SECTION.size)
        features = {}
        for feature, (at, size) in zip(present, _sections(table), strict=False):
            if feature in perf_features.WANTED:
                features[feature] = self._section(at, size)
        lost = sum(i in perf_features.WANTED for i in present) - len(features)
        if lost:
            self._damage[NO_SECTIONS] += lost
        return features

    def _section(self, at: int, size: int) -> bytes:
        """The bytes of a section as far as the file has them, none if it is absurdly long."""
        if size == 0 or size > _MAX_SECTION or at >= self._file_size:
            return b""
        self._file.seek(at)
        return self._file.read(size)

    def _broken(self, what: str, at: int) -> InputError:
        return InputError(what, where=f"{self._path}@0x{at:x}", cure=_READ_AGAIN)


def _sections(table: bytes) -> Iterable[tuple[int, int]]:
    usable = len(table) // abi.SECTION.size * abi.SECTION.size
    return abi.SECTION.iter_unpack(table[:usable])


def _with_config_names(attrs: tuple[PerfAttr, ...], section: bytes) -> tuple[PerfAttr, ...]:
    """Names from the section of old files (before perf 3.11) that told them by `config`."""
    usable = len(section) // _EVENT_TYPE.size * _EVENT_TYPE.size
    names = {
        config: perf_features.decode(raw)
        for config, raw in _EVENT_TYPE.iter_unpack(section[:usable])
    }
    return tuple(
        dataclasses.replace(attr, name=names.get(attr.config, attr.name)) for attr in attrs
    )


def with_described_names(
    attrs: Sequence[PerfAttr], described: Sequence[PerfAttr]
) -> tuple[PerfAttr, ...]:
    """Attrs named by HEADER_EVENT_DESC: by a common id, else by place if the numbers agree."""
    by_id = {i: event.name for event in described for i in event.ids}
    same_number = len(attrs) == len(described)
    named = []
    for place, attr in enumerate(attrs):
        name = next((by_id[i] for i in attr.ids if i in by_id), None)
        if name is None and same_number:
            name = described[place].name
        named.append(attr if name is None else dataclasses.replace(attr, name=name))
    return tuple(named)


def with_type_names(
    attrs: Sequence[PerfAttr], names: Mapping[tuple[int, int], str]
) -> tuple[PerfAttr, ...]:
    """Attrs that have no name yet, named by their type and config."""
    return tuple(
        dataclasses.replace(attr, name=attr.name or names.get((attr.type, attr.config)))
        for attr in attrs
    )


def with_group_counters(attrs: Sequence[PerfAttr], groups: Sequence[range]) -> tuple[PerfAttr, ...]:
    """Attrs that say of a whole group what one of its events asked for: branch counters.

    All samples of the group have them then (perf: tools/perf/util/evsel.c,
    evsel__has_branch_counters; Linux: arch/x86/events/intel/lbr.c, intel_pmu_lbr_save_brstack).
    Groups of events that are not there are left alone.
    """
    changed = list(attrs)
    for group in groups:
        members = attrs[group.start : group.stop] if group.stop <= len(attrs) else []
        if any(attr.branch_sample_type & abi.BRANCH_COUNTERS for attr in members):
            for place in group:
                kept = attrs[place].branch_sample_type | abi.BRANCH_COUNTERS
                changed[place] = dataclasses.replace(attrs[place], branch_sample_type=kept)
    return tuple(changed)
