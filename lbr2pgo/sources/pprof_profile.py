"""pprof's `profile.proto`: processor samples of Go, Parca, Pyroscope and other profilers.

A sample counts for its leaf, the first location.

Source: google/pprof: proto/profile.proto.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from lbr2pgo.sources.base import Sniff, SourceFormat
from lbr2pgo.sources.processor_samples import (
    LARGEST,
    MOST,
    Leaf,
    Leaves,
    MappedFile,
    ProcessorSamples,
    build_id_of,
    column_of,
    counted_times,
    profile_of,
)
from lbr2pgo.sources.protobuf import fields_of, numbers_in, numbers_of

_GZIP = b"\x1f\x8b"
_HEAD = 256
"""Bytes in which a sample type is to begin."""
_BEFORE = frozenset(range(7, 15))
"""Fields that may stand before it: times, periods, comments."""
_SIGN = 1 << 63
_NAME = "pprof"


def _open(path: Path) -> ProcessorSamples:
    return profile_of(path, _NAME, lambda packed: _leaves(_unpacked(packed)))


def _unpacked(packed: bytes) -> memoryview:
    """Raises ValueError for what is cut off, goes on behind its end, or is too large."""
    parts, size = list[bytes](), 0
    while packed.startswith(_GZIP):
        unpacking = zlib.decompressobj(wbits=31)
        try:
            parts.append(unpacking.decompress(packed, LARGEST - size + 1))
        except zlib.error as error:
            raise ValueError(str(error)) from None
        size += len(parts[-1])
        if size > LARGEST:
            raise ValueError(f"it is larger than {LARGEST >> 20} MiB, unpacked")
        if not unpacking.eof:
            raise ValueError("it is cut off")
        packed = unpacking.unused_data
    if parts and packed:
        raise ValueError("something else stands behind its end")
    return memoryview(b"".join(parts) if parts else packed)


class _Tables:
    """All of a profile's message but its samples, which are many."""

    def __init__(self, content: memoryview) -> None:
        """Raises ValueError for what is none of a profile's, and for more than any has."""
        self.texts: list[str] = []
        self.types: list[dict[int, int]] = []
        self.mappings: dict[int, dict[int, int]] = {}
        self.locations: dict[int, Leaf] = {}
        self.numbers: dict[int, int] = {}
        for field, value in fields_of(content):
            self._take(field, value)
            if len(self.texts) + len(self.types) + len(self.mappings) + len(self.locations) > MOST:
                raise ValueError(f"it has more than {MOST:,} texts, mappings and locations")

    def _take(self, field: int, value: int | memoryview) -> None:
        if isinstance(value, int):
            self.numbers[field] = value
        elif field == 1:
            self.types.append(numbers_in(value))
        elif field == 3:
            told = numbers_in(value)
            self.mappings[told.get(1, 0)] = told
        elif field == 4:
            told = numbers_in(value)
            self.locations[told.get(1, 0)] = told.get(2, 0), told.get(3, 0)
        elif field == 6:
            self.texts.append(bytes(value).decode("utf-8", "replace"))


def _leaves(content: memoryview) -> Leaves:
    """Of a profile's message; raises ValueError and IndexError where it is none."""
    tables = _Tables(content)
    if not tables.types:
        raise ValueError("it has no samples")
    names, units = ([tables.texts[each.get(i, 0)] for each in tables.types] for i in (1, 2))
    column, period = column_of(names), tables.numbers.get(12, 0)
    samples: Counter[Leaf] = Counter()
    for field, value in fields_of(content):
        if field == 2 and not isinstance(value, int):
            location, measured = _sample(value, column)
            samples[tables.locations.get(location, (0, 0))] += measured
    is_time = units[column] == "nanoseconds"
    files = {number: _file(told, tables.texts) for number, told in tables.mappings.items()}
    return Leaves(
        counted_times(samples, period) if is_time else +samples,
        files,
        names[column],
        None if is_time else period or None,
    )


def _file(told: Mapping[int, int], texts: Sequence[str]) -> MappedFile:
    start, limit, offset = (told.get(field, 0) for field in (2, 3, 4))
    build_id = build_id_of(texts[told.get(6, 0)])
    return MappedFile(start, limit, offset, texts[told.get(5, 0)], build_id)


def _sample(message: memoryview, column: int) -> tuple[int, int]:
    """The leaf's location, 0 for none, and one of the values; 0 for a negative one, or none."""
    leaf, values = 0, list[int]()
    for field, value in fields_of(message):
        if field == 1:
            leaf = leaf or next(numbers_of(value), 0)
        elif field == 2:
            values += islice(numbers_of(value), column + 1 - len(values))
    measured = values[column] if column < len(values) else 0
    return leaf, measured if measured < _SIGN else 0


def _sniff(head: bytes) -> Sniff:
    """Whether a sample type comes first: a field 1 with numbers, perhaps behind times and such."""
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error:
            return Sniff.NO
    try:
        for field, value in fields_of(memoryview(head)):
            if field not in _BEFORE:
                return Sniff.YES if field == 1 and _is_type(value) else Sniff.NO
    except ValueError:
        pass
    return Sniff.NO


def _is_type(value: int | memoryview) -> bool:
    told = [] if isinstance(value, int) else list(fields_of(value))
    fields = [field for field, number in told if isinstance(number, int)]
    return len(fields) == len(told) and fields in ([1, 2], [1], [2])


FORMAT = SourceFormat(
    name=_NAME,
    summary="samples of processors by Go, Parca, Pyroscope and others, for `--no-lbr`",
    references=("google/pprof: proto/profile.proto",),
    sniff=_sniff,
    open=_open,
)
