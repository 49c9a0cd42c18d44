"""pprof's `profile.proto`: processor samples of Go, Parca, Pyroscope and other profilers.

A sample counts for its leaf, the first location.

Source: google/pprof: proto/profile.proto.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from itertools import islice
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
)

_BEFORE = frozenset(range(7, 15))
"""Fields that may stand before it: times, periods, comments."""
_NAME = "pprof"


def _open(path: Path) -> ProcessorSamples:
    return profile_of(path, _NAME, _leaves)


class _Tables:
    """All of a profile's message but its samples, which are many."""

    def __init__(self, content: Message) -> None:
        """Raises MessageError for what is none of a profile's, and for more than any has."""
        self.texts: list[str] = []
        self.types: list[Message] = []
        self.mappings: dict[int, Message] = {}
        self.locations: dict[int, Leaf] = {}
        self.period = 0
        self.period_type: Message | None = None
        for field, value in fields_of(content):
            if not isinstance(value, int):
                self._take(field, value)
            elif field == 12:
                self.period = value

    def _take(self, field: int, value: Message) -> None:
        if field == 1:
            self.types.append(value)
        elif field == 3:
            self.mappings[_new(self.mappings, numbers_in(value), value)] = value
        elif field == 4:
            told = numbers_in(value)
            number = _new(self.locations, told, value)
            self.locations[number] = told.get(2, 0), told.get(3, 0)
        elif field == 6:
            self.texts.append(value.text)
        elif field == 11:
            self.period_type = value
        if len(self.texts) + len(self.types) + len(self.mappings) + len(self.locations) > MOST:
            what = f"it has more than {MOST:,} texts, mappings and locations"
            raise MessageError(what, value.start)

    def text(self, number: int, named_in: Message) -> str:
        """One of the texts; raises MessageError where there are not so many."""
        return entry(self.texts, number, "text", named_in)

    def kind(self, message: Message) -> tuple[str, str]:
        """The type and the unit of values."""
        told = numbers_in(message)
        return self.text(told.get(1, 0), message), self.text(told.get(2, 0), message)

    def file(self, message: Message) -> MappedFile:
        """What a mapping tells."""
        told = numbers_in(message)
        start, limit, offset = (told.get(field, 0) for field in (2, 3, 4))
        path, build_id = (self.text(told.get(field, 0), message) for field in (5, 6))
        return MappedFile(start, limit, offset, path, build_id_of(build_id))


def _new(table: Container[int], told: Mapping[int, int], message: Message) -> int:
    """The message's own number; raises MessageError where the table has it already."""
    number = told.get(1, 0)
    if number in table:
        what = f"number {number} is there twice: profiles are not joined by writing them in a row"
        raise MessageError(what, message.start)
    return number


def _leaves(content: Message) -> Leaves:
    """Of a profile's message; raises ValueError where it is none."""
    tables = _Tables(content)
    kinds = [tables.kind(each) for each in tables.types]
    if not kinds:
        raise ValueError("it has no samples")
    column = column_of([name for name, _ in kinds])
    samples, negative = Counter[Leaf](), 0
    for field, value in fields_of(content):
        if field == 2 and not isinstance(value, int):
            location, measured = _sample(value, column)
            negative += measured >= SIGN
            samples[tables.locations.get(location, (0, 0))] += measured if measured < SIGN else 0
    name, unit = kinds[column]
    counted = tables.kind(tables.period_type)[1] if tables.period_type else unit
    files = {number: tables.file(each) for number, each in tables.mappings.items()}
    numbers = samples_of(samples, unit, tables.period, counted)
    # The first mapping is the program, google/pprof's profile.proto says.
    program = next((each.path for each in files.values()), "")
    return Leaves(numbers, files, name, negative, (program,))


def _sample(message: Message, column: int) -> tuple[int, int]:
    """The leaf's location, 0 for none, and one of the values, 0 for none."""
    leaf, values = 0, list[int]()
    for field, value in fields_of(message):
        if field == 1:
            leaf = leaf or next(numbers_of(value), 0)
        elif field == 2:
            values += islice(numbers_of(value), column + 1 - len(values))
    return leaf, values[column] if column < len(values) else 0


def _sniff(head: bytes) -> Sniff:
    """Whether a sample type comes first: a field 1 with numbers, perhaps behind times and such."""
    try:
        for field, value in fields_of(head_of(head)):
            if field not in _BEFORE:
                return Sniff.YES if field == 1 and _is_type(value) else Sniff.NO
    except ValueError:
        pass
    return Sniff.NO


def _is_type(value: int | Message) -> bool:
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
