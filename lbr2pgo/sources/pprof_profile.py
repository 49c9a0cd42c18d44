"""pprof's `profile.proto`: processor samples of Go, Parca, Pyroscope and other profilers.

They tell where samples interrupted a program, so `--no-lbr` takes them. A sample counts for its
leaf, the first location. Addresses are of the process, where mappings tell where files lay, or as
files link them, where these begin at 0 (Parca): then those of the first mapping, the program,
are taken.

Source: google/pprof: proto/profile.proto.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from lbr2pgo.model.address_space_events import Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.sources.base import (
    Addresses,
    EventInfo,
    ShownShortly,
    Sniff,
    SourceFormat,
    SourceInfo,
    SymbolResolver,
)
from lbr2pgo.sources.protobuf import fields_of, numbers_of
from lbr2pgo.support.addresses import FileOffset, RuntimeAddress, runtime_addresses
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError, readable

_GZIP = b"\x1f\x8b"
_LARGEST = 1 << 28
"""Bytes of a profile, unpacked."""
_HEAD = 256
"""Bytes in which a sample type is to begin."""
_BEFORE = frozenset(range(7, 15))
"""Fields that may stand before it: times, periods, comments."""
_MOST = 1 << 20
"""Texts, mappings and locations of a profile."""
_SIGN = 1 << 63
_CURE = "Export it anew, with addresses: pprof's own format, not folded stacks."
_OF_PROCESSORS = ("samples", "cpu", "instructions", "cycles")
"""Sample types that tell where a processor was, the best first."""
_UNPLACED = "samples without an address"
_ELSEWHERE = "samples in other files, whose addresses are as these link them"


@dataclass(frozen=True, slots=True)
class _Mapping:
    """A file in memory."""

    start: int
    limit: int
    offset: int
    path: str
    build_id: str | None


@dataclass(frozen=True, slots=True)
class _Profile:
    """What is used of a profile."""

    samples: Mapping[int, int]
    """How often each location was a leaf."""
    mappings: Mapping[int, _Mapping]
    locations: Mapping[int, tuple[int, int]]
    """Mapping and address of each."""
    measure: str
    period: int | None


class PprofProfile(ShownShortly):
    """A `StackSource` of samples without stacks; raises InputError where there is no address."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._health: Counter[str] = Counter()
        with readable(path):
            packed = path.read_bytes()
        try:
            self._profile = _parsed(_unpacked(packed))
        except (ValueError, IndexError, zlib.error) as error:
            reason = "it lacks texts" if isinstance(error, IndexError) else error
            what = f"is no profile of pprof's, or damaged: {reason}"
            raise InputError(what, where=str(path), cure=_CURE) from None
        if not any(address for _, address in self._profile.locations.values()):
            raise InputError(
                "has names of functions, and no addresses", where=str(path), cure=_CURE
            )

    @property
    def info(self) -> SourceInfo:
        """What its mappings and its sample type tell."""
        mappings = self._profile.mappings.values()
        event = EventInfo(self._profile.measure, period=self._profile.period)
        return SourceInfo(
            str(self._path),
            FORMAT.name,
            Addresses.IMAGE if self._is_linked else Addresses.RUNTIME,
            (event,),
            {each.path: each.build_id for each in mappings if each.build_id},
        )

    def space_events(self) -> Sequence[SpaceEvent]:
        """Its mappings; none where addresses are as files link them."""
        if self._is_linked:
            return ()
        return [
            Mmap(
                0, 0, 0, RuntimeAddress(each.start), each.limit - each.start,
                FileOffset(each.offset), each.path, each.build_id,
            )
            for each in self._profile.mappings.values()
            if each.limit > each.start
        ]  # fmt: skip

    def batches(self, resolve: SymbolResolver | None = None) -> Iterator[BranchStacks]:
        """All at once."""
        pairs = list(self._placed())
        size = len(pairs)
        table = np.array(pairs, np.uint64).reshape(size, 2)
        yield BranchStacks(
            np.zeros((0, 3), np.uint64),
            np.zeros(size + 1, np.int64),
            np.zeros(size, np.int32),
            np.zeros(size, np.int32),
            np.zeros(size, np.uint64),
            np.zeros(size, np.int32),
            runtime_addresses(table[:, 0]),
            table[:, 1].copy(),
        )

    def health(self) -> Mapping[str, int]:
        """Samples that could not be placed."""
        for _ in self._placed():
            pass
        return dict(+self._health)

    def _placed(self) -> Iterator[tuple[int, int]]:
        """Address and weight of each sample that has an address here."""
        self._health.clear()
        profile, program = self._profile, next(iter(self._profile.mappings), 0)
        for location, weight in profile.samples.items():
            mapping, address = profile.locations.get(location, (0, 0))
            if not address:
                self._health[_UNPLACED] += weight
            elif self._is_linked and mapping not in (0, program):
                self._health[_ELSEWHERE] += weight
            else:
                yield address, weight

    @cached_property
    def _is_linked(self) -> bool:
        """Whether addresses are as files link them."""
        return all(not each.start for each in self._profile.mappings.values())


def _unpacked(packed: bytes) -> memoryview:
    if not packed.startswith(_GZIP):
        return memoryview(packed)
    unpacking = zlib.decompressobj(wbits=31)
    found = unpacking.decompress(packed, _LARGEST)
    if unpacking.unconsumed_tail:
        raise ValueError(f"it is larger than {_LARGEST >> 20} MiB, unpacked")
    if not unpacking.eof:
        raise ValueError("it is cut off")
    return memoryview(found)


class _Tables:
    """All of a profile's message but its samples, which are many."""

    def __init__(self, content: memoryview) -> None:
        """Raises ValueError for what is none of a profile's, and for more than any has."""
        self.texts: list[str] = []
        self.types: list[dict[int, int]] = []
        self.mappings: dict[int, dict[int, int]] = {}
        self.locations: dict[int, tuple[int, int]] = {}
        self.numbers: dict[int, int] = {}
        for field, value in fields_of(content):
            self._take(field, value)
            if len(self.texts) + len(self.types) + len(self.mappings) + len(self.locations) > _MOST:
                raise ValueError(f"it has more than {_MOST:,} texts, mappings and locations")

    def _take(self, field: int, value: int | memoryview) -> None:
        if isinstance(value, int):
            self.numbers[field] = value
        elif field == 1:
            self.types.append(_numbers(value))
        elif field == 3:
            told = _numbers(value)
            self.mappings[told.get(1, 0)] = told
        elif field == 4:
            told = _numbers(value)
            self.locations[told.get(1, 0)] = told.get(2, 0), told.get(3, 0)
        elif field == 6:
            self.texts.append(bytes(value).decode("utf-8", "replace"))


def _parsed(content: memoryview) -> _Profile:
    """Of a profile's message; raises ValueError and IndexError where it is none."""
    tables = _Tables(content)
    if not tables.types:
        raise ValueError("it has no samples")
    names, units = ([tables.texts[each.get(i, 0)] for each in tables.types] for i in (1, 2))
    column = _column(names, tables.texts[tables.numbers.get(14, 0)])
    period = tables.numbers.get(12, 0)
    is_time = units[column] == "nanoseconds" and period > 0
    samples: Counter[int] = Counter()
    for field, value in fields_of(content):
        if field == 2 and not isinstance(value, int):
            leaf, measured = _sample(value, column)
            samples[leaf] += max(1, measured // period) if is_time and measured else measured
    if not samples.total():
        raise ValueError("it has no samples")
    mappings = {number: _mapping(told, tables.texts) for number, told in tables.mappings.items()}
    known = None if is_time else period or None
    return _Profile(+samples, mappings, tables.locations, names[column], known)


def _column(names: Sequence[str], default: str) -> int:
    """Of the sample type that tells where a processor was."""
    for wanted in (*_OF_PROCESSORS, default):
        if wanted in names:
            return names.index(wanted)
    raise ValueError(f"it tells of {', '.join(names)}, and not of processors")


def _mapping(told: Mapping[int, int], texts: Sequence[str]) -> _Mapping:
    build_id = texts[told.get(6, 0)].lower()
    is_known = len(build_id) % 2 == 0 and all(digit in "0123456789abcdef" for digit in build_id)
    return _Mapping(
        told.get(2, 0), told.get(3, 0), told.get(4, 0), texts[told.get(5, 0)],
        build_id if build_id and is_known else None,
    )  # fmt: skip


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


def _numbers(message: memoryview) -> dict[int, int]:
    """The numbers of a message, the last of each field."""
    return {field: number for field, number in fields_of(message) if isinstance(number, int)}


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
    name="pprof",
    summary="samples of processors by Go, Parca, Pyroscope and others, for `--no-lbr`",
    references=("google/pprof: proto/profile.proto",),
    sniff=_sniff,
    open=PprofProfile,
)
