"""OpenTelemetry profiles (v1development): processor samples of the eBPF agent and others.

A message holds profiles of many processes and hosts, with tables that all share, of which entry 0
stands for none. A file is one message, or several with their lengths in front, as the collector's
file exporter writes them. Those profiles that tell best where processors were are added up. A
sample counts for its leaf, the first location of its stack.

Source: open-telemetry/opentelemetry-proto: opentelemetry/proto/profiles/v1development;
OpenTelemetry: semantic conventions, attributes of processes;
open-telemetry/opentelemetry-collector-contrib: exporter/fileexporter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from lbr2pgo.sources.base import Sniff, SourceFormat
from lbr2pgo.sources.processor_samples import (
    MOST,
    SIGN,
    Leaf,
    Leaves,
    MappedFile,
    ProcessorSamples,
    build_id_of,
    column_of,
    head_of,
    is_of_processors,
    profile_of,
    samples_of,
)
from lbr2pgo.sources.protobuf import (
    Message,
    MessageError,
    entry,
    fields_of,
    numbers_in,
    numbers_of,
    opening_of,
)

_BUILD_ID = "process.executable.build_id.gnu"
_NAME = "otlp"
_MAPPING, _LOCATION, _TEXT, _ATTRIBUTE, _STACK = 1, 2, 5, 6, 7
"""Tables of a dictionary, by their fields."""
_LENGTH = 4
"""Bytes of a message's length in front of it, the highest first."""
_OTHER_VERSION = "another version of the format than opentelemetry-proto 1.45's wrote this"


def _open(path: Path) -> ProcessorSamples:
    return profile_of(path, _NAME, _leaves)


def _leaves(content: Message) -> Leaves:
    """Of all messages of a file; raises ValueError where it has none of use."""
    samples, negative = dict[str, Counter[Leaf]](), Counter[str]()
    numbers = dict[MappedFile, int]()
    for message in _parts(content):
        tables = _Dictionary(message)
        own = [0, *(numbers.setdefault(file, len(numbers) + 1) for file in tables.files[1:])]
        for profile in (_Profile(each, tables) for each in _profiles(message)):
            found = samples.setdefault(profile.measure, Counter())
            if is_of_processors(profile.measure):
                counted, below = profile.samples()
                for (file, address), count in counted.items():
                    found[own[file] if file < len(own) else 0, address] += count
                negative[profile.measure] += below
    if not samples:
        raise ValueError("it has no profiles")
    measure = list(samples)[column_of(list(samples))]
    files = {number: file for file, number in numbers.items()}
    return Leaves(+samples[measure], files, measure, negative[measure])


def _parts(content: Message) -> Iterator[Message]:
    """The messages of a file: no field has number 0, with which a length begins."""
    if not _is_framed(content):
        yield content
        return
    whole, at, end = content
    while at < end:
        begin = at + _LENGTH
        past = begin + int.from_bytes(whole[at:begin], "big")
        if past > end or begin > end:
            raise MessageError("a message is cut off", at)
        yield Message(whole, begin, past)
        at = past


def _is_framed(content: Message) -> bool:
    return len(content.whole) > _LENGTH and content.whole[0] >> 3 == 0


class _Dictionary:
    """What profiles share."""

    def __init__(self, message: Message) -> None:
        """Raises MessageError where there is none, or are two, and for more than any has."""
        tables = {field: list[Message]() for field in range(1, 8)}
        dictionaries = list(_messages(message, 2))
        if len(dictionaries) > 1:
            what = "a second dictionary; files are not joined by writing them in a row"
            raise MessageError(what, dictionaries[1].start)
        for field, value in (pair for each in dictionaries for pair in fields_of(each)):
            if field in tables and not isinstance(value, int):
                tables[field].append(value)
        if not tables[_STACK]:
            raise MessageError(f"it has no table of stacks: {_OTHER_VERSION}", message.start)
        if sum(map(len, tables.values())) > MOST:
            raise MessageError(f"its tables have more than {MOST:,} entries", message.start)
        self._texts = [each.text for each in tables[_TEXT]]
        build_ids = [self._build_id(each) for each in tables[_ATTRIBUTE]]
        self.files = [self._file(each, build_ids) for each in tables[_MAPPING]]
        self._locations = [self._location(each) for each in tables[_LOCATION]]
        self._leaves = [self._leaf(each) for each in tables[_STACK]]

    def text(self, number: int, named_in: Message) -> str:
        """By its number."""
        return entry(self._texts, number, "text", named_in)

    def leaf(self, stack: int, named_in: Message) -> Leaf:
        """Of a stack, by its number."""
        return entry(self._leaves, stack, "stack", named_in)

    def _build_id(self, attribute: Message) -> str | None:
        (key,) = _numbers(attribute, 1)
        if self.text(key, attribute) != _BUILD_ID:
            return None
        texts = [v for each in _messages(attribute, 2) for v in _messages(each, 1)]
        return build_id_of(texts[-1].text) if texts else None

    def _file(self, message: Message, build_ids: Sequence[str | None]) -> MappedFile:
        start, limit, offset, name = _numbers(message, 1, 2, 3, 4)
        known = [entry(build_ids, i, "attribute", message) for i in _repeated(message, 5)]
        build_id = next(filter(None, known), None)
        return MappedFile(start, limit, offset, self.text(name, message), build_id)

    def _location(self, message: Message) -> Leaf:
        mapping, address = _numbers(message, 1, 2)
        if mapping:
            entry(self.files, mapping, "mapping", message)
        return mapping, address

    def _leaf(self, stack: Message) -> Leaf:
        location = next(_repeated(stack, 1), None)
        return (0, 0) if location is None else entry(self._locations, location, "location", stack)


class _Profile:
    """One profile of many."""

    def __init__(self, message: Message, tables: _Dictionary) -> None:
        """Raises MessageError where the format's version is another."""
        _refuse_bytes(message, 3)
        self.measure, self._unit = _kind(message, 1, tables)
        _, counted = _kind(message, 5, tables)
        self._counted = counted or self._unit
        (self._period,) = _numbers(message, 6)
        self._message, self._tables = message, tables

    def samples(self) -> tuple[Counter[Leaf], int]:
        """How often each leaf was interrupted, and how many values are below 0."""
        found, negative = Counter[Leaf](), 0
        for sample in _messages(self._message, 2):
            _refuse_bytes(sample, 3)
            (stack,) = _numbers(sample, 1)
            values = _values(sample)
            negative += sum(value >= SIGN for value in values)
            found[self._tables.leaf(stack, sample)] += sum(v for v in values if v < SIGN)
        return samples_of(found, self._unit, self._period, self._counted), negative


def _kind(message: Message, field: int, tables: _Dictionary) -> tuple[str, str]:
    """The type and the unit that a profile tells in a field."""
    kind = next(_messages(message, field), Message.of(b""))
    name, unit = (tables.text(each, message) for each in _numbers(kind, 1, 2))
    return name, unit


def _values(sample: Message) -> list[int]:
    """A sample's values; where it has times alone, how many."""
    times = sum(
        1 if isinstance(value, int) else (value.end - value.start) // 8
        for field, value in fields_of(sample)
        if field == 5
    )
    return list(_repeated(sample, 4)) or [times]


def _profiles(content: Message) -> Iterator[Message]:
    for resource in _messages(content, 1):
        for scope in _messages(resource, 2):
            yield from _messages(scope, 2)


def _messages(message: Message, wanted: int) -> Iterator[Message]:
    for field, value in fields_of(message):
        if field == wanted:
            if isinstance(value, int):
                raise MessageError(f"field {wanted} holds a number", message.start)
            yield value


def _refuse_bytes(message: Message, field: int) -> None:
    """A field that holds a number, and in earlier versions other things."""
    for found, value in fields_of(message):
        if found == field and not isinstance(value, int):
            raise MessageError(_OTHER_VERSION, value.start)


def _numbers(message: Message, *fields: int) -> list[int]:
    """One for each of these fields, 0 where it lacks."""
    told = numbers_in(message)
    return [told.get(field, 0) for field in fields]


def _repeated(message: Message, wanted: int) -> Iterator[int]:
    for field, value in fields_of(message):
        if field == wanted:
            yield from numbers_of(value)


def _sniff(head: bytes) -> Sniff:
    """Whether profiles of a resource, or the tables, come first: messages in a message."""
    content = head_of(head)
    begin = _LENGTH if _is_framed(content) else 0
    try:
        outer = opening_of(content, begin)
        inner = opening_of(content, outer.begin)
        is_whole = inner.begin == inner.past
        third = inner if is_whole else opening_of(content, inner.begin)
    except MessageError:
        return Sniff.NO
    known = _INSIDE.get(outer.field, range(0))
    past = begin + int.from_bytes(content.content[:begin], "big") if begin else outer.past
    is_nested = outer.has_bytes and inner.has_bytes
    is_nested &= third.past <= inner.past <= outer.past <= past
    return Sniff.YES if is_nested and inner.field in known and third.field else Sniff.NO


_INSIDE = {1: range(1, 4), 2: range(1, 8)}
"""Fields in the first two of a `ProfilesData`."""

FORMAT = SourceFormat(
    name=_NAME,
    summary="samples of processors by OpenTelemetry's profilers (v1development), also as a "
    "collector's file exporter writes them (`format: proto`), for `--no-lbr`",
    references=("open-telemetry/opentelemetry-proto: profiles/v1development/profiles.proto",),
    sniff=_sniff,
    open=_open,
)
