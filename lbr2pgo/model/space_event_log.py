"""Events of address spaces, as many as a recording has, in a few bytes each."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import overload

import numpy as np

from lbr2pgo.model.address_space_events import (
    KERNEL_PID,
    MEMORY,
    Comm,
    Exit,
    Fork,
    Mmap,
    SpaceEvent,
    is_file,
)
from lbr2pgo.model.code_files import CodeFiles, executable_mmaps
from lbr2pgo.support.addresses import FileOffset, RuntimeAddress
from lbr2pgo.support.arrays import I64, U64, Bools, Records
from lbr2pgo.support.distinct import begins
from lbr2pgo.support.intervals import last_at_or_below


def of_code(events: Sequence[SpaceEvent]) -> SpaceEventLog:
    """Events that can say where code of a file is: see `SpaceEventLog.code`."""
    return as_log(events).code


def as_log(events: Sequence[SpaceEvent]) -> SpaceEventLog:
    """The same in columns."""
    return events if isinstance(events, SpaceEventLog) else SpaceEventLog(events)


def of_files(events: Sequence[SpaceEvent]) -> Sequence[SpaceEvent]:
    """At least the first mapping of each path with each build-id, as code and as data."""
    return events.of_files if isinstance(events, SpaceEventLog) else events


_ROW = struct.Struct("<BBqqQQQQii")
EVENT_ROW = np.dtype(
    [
        ("kind", "u1"),
        ("flag", "u1"),  # executable, by execve
        ("pid", "<i8"),
        ("other", "<i8"),  # the tid or, of a fork, the parent's pid
        ("time", "<u8"),
        ("start", "<u8"),  # or the tid of a fork, which may be below 0
        ("length", "<u8"),
        ("file_offset", "<u8"),
        ("text", "<i4"),  # path or name
        ("build_id", "<i4"),
    ]
)
"""One event; texts by number, of which a build-id may be none."""
_LAST = (1 << 64) - 1
MMAP, FORK, COMM, EXIT = range(4)
"""Kinds of events."""
_Row = tuple[int, int, int, int, int, int, int, int, int, int]


class SpaceEventLog(Sequence[SpaceEvent]):
    """A sequence of events, ordered by time, those of one time as they were given.

    A recording may have millions, of which each would take several hundred bytes as an object:
    they are made when they are asked for.
    """

    def __init__(self, events: Iterable[SpaceEvent]) -> None:
        """Raises struct.error for numbers that no record can hold."""
        self._texts: list[str | None] = []
        self._code_files: tuple[Mapping[str, str], CodeFiles] | None = None
        numbers: dict[str | None, int] = {}
        rows = bytearray()
        for event in events:
            rows += _ROW.pack(*self._row(event, numbers))
        self._rows: Records = _by_time(np.frombuffer(rows, EVENT_ROW))

    @classmethod
    def of_rows(cls, rows: Records, texts: list[str | None]) -> SpaceEventLog:
        """Of events (n,) as `EVENT_ROW` has them, and texts by number."""
        log = cls(())
        log._rows, log._texts = _by_time(rows), texts
        return log

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> SpaceEvent: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SpaceEvent]: ...
    def __getitem__(self, index: int | slice) -> SpaceEvent | Sequence[SpaceEvent]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._event(_ROW.unpack(self._rows[index].tobytes()))

    def __iter__(self) -> Iterator[SpaceEvent]:
        return map(self._event, _ROW.iter_unpack(self._rows.view(np.uint8).data))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpaceEventLog) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as of lists

    @property
    def rows(self) -> Records:
        """Of `EVENT_ROW`, one an event."""
        return self._rows

    @property
    def are_code(self) -> Bools:
        """Which rows (n,) are mappings of code."""
        found: Bools = (self._rows["kind"] == MMAP) & (self._rows["flag"] != 0)
        return found

    def are_code_of(self, paths: Iterable[str]) -> Bools:
        """Which rows (n,) are mappings of code of the files at these paths."""
        is_path = np.zeros(len(self._texts), np.bool_)
        is_path[[number for path in paths for number in self._numbers.get(path, ())]] = True
        found = self.are_code
        found[found] = is_path[self._rows["text"][found]]
        return found

    def text(self, number: int) -> str:
        """What a row's number of a text stands for."""
        return self._texts[number] or ""

    @cached_property
    def code(self) -> SpaceEventLog:
        """The same without mappings of data and memory that no code of a file ever lay below.

        Programs that make their code as they run map a million of them. The first of each path
        stays, to tell what was mapped.
        """
        rows = self._rows
        is_memory = np.array([str(text).startswith(MEMORY) for text in self._texts], np.bool_)
        is_mapping = rows["kind"] == MMAP
        is_code = self.are_code
        is_code[is_mapping] &= ~is_memory[rows["text"][is_mapping]]
        idle = np.flatnonzero(is_mapping & ~is_code)
        idle = idle[~_touch(rows[idle], rows[is_code])]
        kinds = rows["text"][idle].astype(np.int64) << 1 | rows["flag"][idle]
        first = np.unique(kinds, return_index=True)[1]
        if len(first) == len(idle):
            return self
        return self._of(np.delete(rows, np.delete(idle, first)))

    @cached_property
    def of_files(self) -> SpaceEventLog:
        """The first mapping of each path with each build-id, as code and as data."""
        mappings = np.flatnonzero(self._rows["kind"] == MMAP)
        return self._of(self._rows[self._first_of_files(mappings)])

    def code_files(self, header: Mapping[str, str]) -> CodeFiles:
        """Files that were mapped as code, with the header's build-ids; kept for the next image."""
        if self._code_files is None or self._code_files[0] != header:
            self._code_files = header, CodeFiles(executable_mmaps(self.of_files), header)
        return self._code_files[1]

    @property
    def programs(self) -> SpaceEventLog:
        """The first file that each process mapped as code after `execve`, each of them once.

        The kernel maps it before its loader (Linux: fs/binfmt_elf.c, load_elf_binary).
        """
        rows = self._rows
        are_files = np.array([is_file(text or "") for text in self._texts], np.bool_)
        is_code = self.are_code & (rows["pid"] != KERNEL_PID)
        is_code[is_code] = are_files[rows["text"][is_code]]
        is_exec = (rows["kind"] == COMM) & (rows["flag"] != 0)
        told = np.flatnonzero(is_code | is_exec)
        told = told[np.argsort(rows["pid"][told], kind="stable")]
        is_first = begins(rows["pid"][told])
        is_first[1:] |= is_exec[told[:-1]]
        found = np.sort(told[is_first & is_code[told]])
        return self._of(rows[self._first_of_files(found)])

    def concerning(self, paths: Iterable[str], code: U64) -> SpaceEventLog:
        """Events that can change where the code is of the files at these paths.

        It lies between offsets (k, 2) in the files, half-open.
        """
        rows = self._rows
        mappings = np.flatnonzero(rows["kind"] == MMAP)
        is_shown = self.are_code_of(paths)[mappings]
        offset, length = rows["file_offset"][mappings], rows["length"][mappings]
        is_shown &= _in_any(offset, _past(offset, length), code)
        others = mappings[~is_shown]
        idle = others[~_touch(rows[others], rows[mappings[is_shown]])]
        is_kept = (rows["kind"] == FORK) | ((rows["kind"] == COMM) & (rows["flag"] != 0))
        is_kept[mappings] = True
        is_kept[idle] = False
        return self._of(rows[is_kept])

    @cached_property
    def _numbers(self) -> Mapping[str | None, list[int]]:
        """Of each text; a build-id may be spelt as a path is."""
        found: dict[str | None, list[int]] = {}
        for number, text in enumerate(self._texts):
            found.setdefault(text, []).append(number)
        return found

    def _first_of_files(self, mappings: I64) -> I64:
        """The first of these rows of each path, build-id and flag, in their order."""
        rows = self._rows
        names = rows["text"][mappings].astype(np.uint64) << np.uint64(32)
        names |= rows["build_id"][mappings].astype(np.uint64) << np.uint64(1)
        names |= rows["flag"][mappings]
        first: I64 = np.unique(names, return_index=True)[1]
        return mappings[np.sort(first)]

    def _of(self, rows: Records) -> SpaceEventLog:
        log = SpaceEventLog.of_rows(rows, self._texts)
        log._numbers = self._numbers  # of the same texts: each image asks for some of the rows
        return log

    def _row(self, event: SpaceEvent, numbers: dict[str | None, int]) -> _Row:
        def text(value: str | None) -> int:
            number = numbers.setdefault(value, len(numbers))
            if number == len(self._texts):
                self._texts.append(value)
            return number

        pid, time = event.pid, event.time
        if isinstance(event, Mmap):
            place = event.start, event.length, event.file_offset
            names = text(event.path), text(event.build_id)
            return MMAP, event.executable, pid, event.tid, time, *place, *names
        if isinstance(event, Fork):
            return FORK, 0, pid, event.parent_pid, time, event.tid & _LAST, 0, 0, 0, 0
        if isinstance(event, Comm):
            return COMM, event.is_exec, pid, event.tid, time, 0, 0, 0, text(event.name), 0
        return EXIT, 0, pid, event.tid, time, 0, 0, 0, 0, 0

    def _event(self, row: _Row) -> SpaceEvent:
        kind, flag, pid, other, time, a, b, c, name, build_id = row
        if kind == MMAP:
            path, known = self._texts[name] or "", self._texts[build_id]
            start, offset = RuntimeAddress(a), FileOffset(c)
            return Mmap(pid, other, time, start, b, offset, path, known, bool(flag))
        if kind == FORK:
            return Fork(pid, other, a - (a >> 63 << 64), time)
        if kind == COMM:
            return Comm(pid, other, time, self._texts[name] or "", bool(flag))
        return Exit(pid, other, time)


def _by_time(rows: Records) -> Records:
    """Most are in order."""
    time = rows["time"]
    if (time[1:] >= time[:-1]).all():
        return rows
    ordered: Records = rows[np.argsort(time, kind="stable")]
    return ordered


def _touch(mappings: Records, others: Records) -> Bools:
    """Whether each mapping shares an address with any of the others."""
    starts, ends = others["start"], _past(others["start"], others["length"])
    start = mappings["start"]
    return _in_any(start, _past(start, mappings["length"]), np.stack([starts, ends], axis=1))


def _in_any(start: U64, past: U64, ranges: U64) -> Bools:
    """Whether each half-open range (n,) has a number in common with any of others (k, 2)."""
    ordered = ranges[np.argsort(ranges[:, 0], kind="stable")]
    ends = np.maximum.accumulate(ordered[:, 1])
    below = last_at_or_below(ordered[:, 0], np.maximum(past, 1) - 1)
    touches: Bools = below >= 0
    touches[touches] = ends[below[touches]] > start[touches]
    return touches


def _past(start: U64, length: U64) -> U64:
    """First numbers behind; of damaged mappings that go on behind the last one, that."""
    return np.where(length > ~start, ~np.uint64(0), start + length)
