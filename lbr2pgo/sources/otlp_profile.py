"""OpenTelemetry profiles (v1development): processor samples of the eBPF agent and others.

One file holds profiles of many processes and hosts, with tables that all share, of which entry 0
stands for none. Those that tell best where processors were are added up. A sample counts for its
leaf, the first location of its stack.

Source: open-telemetry/opentelemetry-proto: opentelemetry/proto/profiles/v1development;
OpenTelemetry: semantic conventions, attributes of processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from lbr2pgo.sources.base import Sniff, SourceFormat
from lbr2pgo.sources.processor_samples import (
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
from lbr2pgo.sources.protobuf import fields_of, numbers_in, numbers_of, opening_of

_BUILD_ID = "process.executable.build_id.gnu"
_SIGN = 1 << 63
_NAME = "otlp"
_MAPPING, _LOCATION, _TEXT, _ATTRIBUTE, _STACK = 1, 2, 5, 6, 7
"""Tables of a dictionary, by their fields."""


def _open(path: Path) -> ProcessorSamples:
    return profile_of(path, _NAME, lambda content: _leaves(memoryview(content)))


def _leaves(content: memoryview) -> Leaves:
    """Of a `ProfilesData`; raises ValueError and IndexError where it is none."""
    tables = _Dictionary(_messages(content, 2))
    profiles = [_Profile(each, tables) for each in _profiles(content)]
    if not profiles:
        raise ValueError("it has no profiles")
    measures = list(dict.fromkeys(each.measure for each in profiles))
    measure = measures[column_of(measures)]
    chosen = [each for each in profiles if each.measure == measure]
    samples: Counter[Leaf] = Counter()
    for each in chosen:
        samples.update(each.samples())
    periods = {None if each.is_time else each.period or None for each in chosen}
    period = periods.pop() if len(periods) == 1 else None
    files = dict(enumerate(tables.files[1:], 1))
    return Leaves(+samples, files, measure, period)


class _Dictionary:
    """What profiles share."""

    def __init__(self, messages: Iterator[memoryview]) -> None:
        """Raises ValueError where there is none, and for more than any has."""
        tables = {field: list[memoryview]() for field in range(1, 8)}
        for field, value in chain.from_iterable(map(fields_of, messages)):
            if field in tables and not isinstance(value, int):
                tables[field].append(value)
        if not tables[_STACK]:
            raise ValueError("it has no table of stacks: another version than v1development's")
        if sum(map(len, tables.values())) > MOST:
            raise ValueError(f"its tables have more than {MOST:,} entries")
        self.texts = [bytes(each).decode("utf-8", "replace") for each in tables[_TEXT]]
        build_ids = [self._build_id(each) for each in tables[_ATTRIBUTE]]
        self.files = [self._file(each, build_ids) for each in tables[_MAPPING]]
        locations = [_numbers(each, 1, 2) for each in tables[_LOCATION]]
        self._locations: list[Leaf] = [(mapping, address) for mapping, address in locations]
        self.leaves = [self._leaf(each) for each in tables[_STACK]]
        """Of each stack."""

    def _build_id(self, attribute: memoryview) -> str | None:
        (key,) = _numbers(attribute, 1)
        if self.texts[key] != _BUILD_ID:
            return None
        texts = [v for each in _messages(attribute, 2) for v in _messages(each, 1)]
        return build_id_of(bytes(texts[-1]).decode("utf-8", "replace")) if texts else None

    def _file(self, message: memoryview, build_ids: Sequence[str | None]) -> MappedFile:
        start, limit, offset, name = _numbers(message, 1, 2, 3, 4)
        known = [build_ids[i] for i in _repeated(message, 5)]
        build_id = next(filter(None, known), None)
        return MappedFile(start, limit, offset, self.texts[name], build_id)

    def _leaf(self, stack: memoryview) -> Leaf:
        location = next(_repeated(stack, 1), None)
        return (0, 0) if location is None else self._locations[location]


class _Profile:
    """One profile of many."""

    def __init__(self, message: memoryview, tables: _Dictionary) -> None:
        kind = next(_messages(message, 1), memoryview(b""))
        name, unit = (tables.texts[each] for each in _numbers(kind, 1, 2))
        self.measure, self.is_time = name, unit == "nanoseconds"
        (self.period,) = _numbers(message, 6)
        self._message, self._leaves = message, tables.leaves

    def samples(self) -> Counter[Leaf]:
        """How often each leaf was interrupted."""
        found: Counter[Leaf] = Counter()
        for sample in _messages(self._message, 2):
            (stack,) = _numbers(sample, 1)
            found[self._leaves[stack]] += _measured(sample)
        return counted_times(found, self.period) if self.is_time else found


def _measured(sample: memoryview) -> int:
    """The sum of a sample's values; where it has times alone, how many."""
    values = [value for value in _repeated(sample, 4) if value < _SIGN]
    if values:
        return sum(values)
    return sum(
        1 if isinstance(value, int) else len(value) // 8
        for field, value in fields_of(sample)
        if field == 5
    )


def _profiles(content: memoryview) -> Iterator[memoryview]:
    for resource in _messages(content, 1):
        for scope in _messages(resource, 2):
            yield from _messages(scope, 2)


def _messages(message: memoryview, wanted: int) -> Iterator[memoryview]:
    for field, value in fields_of(message):
        if field == wanted:
            if isinstance(value, int):
                raise ValueError(f"field {wanted} holds a number")
            yield value


def _numbers(message: memoryview, *fields: int) -> list[int]:
    """One for each of these fields, 0 where it lacks."""
    told = numbers_in(message)
    return [told.get(field, 0) for field in fields]


def _repeated(message: memoryview, wanted: int) -> Iterator[int]:
    for field, value in fields_of(message):
        if field == wanted:
            yield from numbers_of(value)


def _sniff(head: bytes) -> Sniff:
    """Whether profiles of a resource, or the tables, come first: messages in a message."""
    try:
        outer = opening_of(memoryview(head), 0)
        inner = opening_of(memoryview(head), outer.begin)
        is_whole = inner.begin == inner.past
        third = inner if is_whole else opening_of(memoryview(head), inner.begin)
    except ValueError:
        return Sniff.NO
    known = _INSIDE.get(outer.field, range(0))
    is_nested = outer.has_bytes and inner.has_bytes and third.past <= inner.past <= outer.past
    return Sniff.YES if is_nested and inner.field in known and third.field else Sniff.NO


_INSIDE = {1: range(1, 4), 2: range(1, 8)}
"""Fields in the first two of a `ProfilesData`."""

FORMAT = SourceFormat(
    name=_NAME,
    summary="samples of processors by OpenTelemetry's profilers (v1development), for `--no-lbr`",
    references=("open-telemetry/opentelemetry-proto: profiles/v1development/profiles.proto",),
    sniff=_sniff,
    open=_open,
)
