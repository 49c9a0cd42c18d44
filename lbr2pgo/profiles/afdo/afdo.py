"""GCC's sample profile (`.afdo`, which GCC calls auto profile), read and written.

A file is a row of 32-bit numbers, the low byte first; a counter is two of them, the low one first::

    magic version 0
    [summary]                      version 3 only
    strings                        index 0 is the empty one
    functions                      head, [time of the first sample, version 3], instance
    module groups, working sets    which GCC does not use

An *instance* is a function or an inlined copy: name, positions (line and discriminator) with their
counts and call targets, and the copies inlined into it.

GCC: gcc/auto-profile.cc; google/autofdo: profile_writer.cc. Since July 2021 (GCC 12, version 2) a
string's length counts its bytes, with the NUL; before it counted words, padded with NULs.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NoReturn

from lbr2pgo.profiles.llvm.sample_names import Location, Name, order_key
from lbr2pgo.profiles.llvm.sample_profile import (
    LARGEST_COUNT,
    LARGEST_LINE,
    FunctionSamples,
    SampleProfile,
    add_saturating,
)
from lbr2pgo.profiles.llvm.sample_summary import Cutoff, Summary, summarize
from lbr2pgo.program.pseudo_probes import DEEPEST_INLINING
from lbr2pgo.support.errors import InputError, readable
from lbr2pgo.support.output import PathLike, write_pieces

MAGIC = 0x67636461
VERSIONS = (1, 2, 3)
"""GCC up to 11 reads version 1, GCC 12 to 15 read version 2, GCC 16 reads version 3."""
USUAL_VERSION = 2
_LAST_OF_WORDS = 1
"""The last version whose strings are counted in words."""
FIRST_WITH_TIMES = 3
"""The first version with a summary, names of files, and times."""
_SUMMARY, _STRINGS, _FUNCTIONS = 0xA8000000, 0xAA000000, 0xAC000000
_MODULES, _WORKING_SETS = 0xAE000000, 0xAF000000
_INDIRECT_CALL_TOPN = 7
"""Of GCC's `hist_type`: what a list of call targets is."""
_NO_FILE = 0xFFFFFFFF
_WORKING_SET_ROWS = 128
_SMALLEST_ROW = 12
"""Bytes of the shortest position, call site, function or cutoff: what a file's counts of them are
judged by."""
_WORD = struct.Struct("<I")


@dataclass(slots=True)
class GccProfile:
    """A sample profile as GCC keeps it."""

    samples: SampleProfile
    """Totals are sums of counts, as GCC works them out."""
    version: int = USUAL_VERSION
    first_seen: dict[Name, int] = field(default_factory=dict)
    """When functions were first sampled, in nanoseconds; version 3 keeps it."""
    files: dict[Name, str] = field(default_factory=dict)
    """The source files of functions, where they are known; version 3 keeps them."""


# ---------------------------------------------------------------------------- writing


def write(profile: GccProfile, destination: PathLike | BinaryIO) -> None:
    """Write a profile in its version; functions stand in the order of their names."""
    write_pieces(destination, [_encoded(profile)])


def _encoded(profile: GccProfile) -> bytes:
    functions = sorted(profile.samples.functions.values(), key=lambda each: order_key(each.name))
    names = sorted({name for each in functions for name in _names(each)} - {""}, key=order_key)
    index: dict[Name, int] = {name: i for i, name in enumerate(["", *names])}
    summary = summarize(profile.samples)
    is_newer = profile.version >= FIRST_WITH_TIMES
    parts = [_words(MAGIC, profile.version, 0)]
    if is_newer:
        parts.append(_summary(summary))
    parts.append(_section(_STRINGS, _strings([*map(str, index)], profile)))
    body = bytearray(_words(len(functions)))
    for each in functions:
        body += _counter(each.head)
        if is_newer:
            body += _counter(profile.first_seen.get(each.name, 0))
        _add_instance(body, each, index)
    parts += [_section(_FUNCTIONS, bytes(body)), _words(_MODULES, 0, 0), _working_sets(summary)]
    return b"".join(parts)


def _names(function: FunctionSamples) -> Iterator[Name]:
    yield function.name
    for targets in function.call_targets.values():
        yield from targets
    for _, callee in function.inlined():
        yield from _names(callee)


def _words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def _counter(value: int) -> bytes:
    return struct.pack("<Q", min(value, LARGEST_COUNT))


def _section(tag: int, content: bytes) -> bytes:
    """Its length is in words, which all readers pass over."""
    return _words(tag, -(-len(content) // _WORD.size)) + content


def _summary(summary: Summary) -> bytes:
    """It has no length (GCC: autofdo_source_profile::read)."""
    totals = (summary.total_count, summary.max_count, summary.max_function_count)
    rows = (
        _words(row.cutoff) + _counter(row.minimum) + _counter(row.counts)
        for row in summary.detailed
    )
    sizes = (summary.counts, summary.functions, len(summary.detailed))
    return b"".join((_words(_SUMMARY), *map(_counter, totals), *map(_counter, sizes), *rows))


def _strings(names: Sequence[str], profile: GccProfile) -> bytes:
    if profile.version < FIRST_WITH_TIMES:
        unit = _WORD.size if profile.version <= _LAST_OF_WORDS else 1
        return _words(len(names)) + b"".join(_string(name, unit) for name in names)
    files = sorted({profile.files[name] for name in names if name in profile.files})
    index = {file: i for i, file in enumerate(files)}
    rows = (
        _string(name) + _words(index.get(profile.files.get(name, ""), _NO_FILE)) for name in names
    )
    return b"".join((_words(len(files)), *map(_string, files), _words(len(names)), *rows))


def _string(text: str, unit: int = 1) -> bytes:
    """Its length counts units of so many bytes."""
    encoded = os.fsencode(text) + b"\0"
    units = -(-len(encoded) // unit)
    return _words(units) + encoded.ljust(units * unit, b"\0")


def _add_instance(body: bytearray, function: FunctionSamples, index: dict[Name, int]) -> None:
    locations, inlined = function.locations(), list(function.inlined())
    body += _words(index[function.name], len(locations), len(inlined))
    for location in locations:
        calls = function.calls(location)
        body += _words(_offset(location), len(calls))
        body += _counter(function.body.get(location, 0))
        for name, count in calls:
            body += _words(_INDIRECT_CALL_TOPN) + struct.pack("<QQ", index[name], count)
    for location, callee in inlined:
        body += _words(_offset(location))
        _add_instance(body, callee, index)


def _offset(location: Location) -> int:
    """Sixteen bits each, as GCC cuts them (GCC: get_combined_location)."""
    line, discriminator = location
    return (line & LARGEST_LINE) << 16 | discriminator & LARGEST_LINE


def _working_sets(summary: Summary) -> bytes:
    """As gcov's: how many of the largest counts make up each 128th of the sum."""
    rows = [_working_set(summary.detailed, k) for k in range(_WORKING_SET_ROWS)]
    content = b"".join(_words(n) + _counter(least) for n, least in rows)
    return _words(_WORKING_SETS, len(content) // _WORD.size) + content


def _working_set(cutoffs: Sequence[Cutoff], k: int) -> tuple[int, int]:
    share = (k + 1) * 1_000_000 // _WORKING_SET_ROWS
    row = next((each for each in cutoffs if each.cutoff >= share), cutoffs[-1])
    return row.counts // 10, row.minimum


# ---------------------------------------------------------------------------- reading


def is_afdo(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a profile for GCC."""
    return head[:4] == _WORD.pack(MAGIC)


def read(path: Path) -> GccProfile:
    """Read a profile of a version that GCC reads.

    Both ways of writing strings are read. Raises InputError, with the offset: no such file,
    another version, cut off, a name that is not there.
    """
    with readable(path):
        data = path.read_bytes()
    return decode(data, str(path))


def decode(data: bytes, where: str) -> GccProfile:
    """As `read`, from bytes; `where` names them in errors."""
    return _Decoder(data, where).profile()


class _Decoder:
    def __init__(self, data: bytes, where: str) -> None:
        self.data, self.where, self.at = data, where, 0
        self.version = 0
        self.names: list[str] = []
        self.first_seen: dict[Name, int] = {}
        self.files: dict[Name, str] = {}

    def profile(self) -> GccProfile:
        if self.word() != MAGIC:
            self.fail("this is no profile for GCC", 0)
        self.version = self.word()
        if self.version not in VERSIONS:
            known = ", ".join(map(str, VERSIONS))
            self.fail(f"version {self.version} of the format, known are {known}", 4)
        self.word()
        if self.version >= FIRST_WITH_TIMES:
            self.pass_summary()
        self.tag(_STRINGS, "table of strings")
        self.word()
        self.names = self.strings()
        self.tag(_FUNCTIONS, "functions")
        self.word()
        samples = SampleProfile()
        for _ in range(self.rows("functions")):
            self.function(samples)
        return GccProfile(samples, self.version, self.first_seen, self.files)

    def pass_summary(self) -> None:
        self.tag(_SUMMARY, "summary")
        for _ in range(5):
            self.counter()
        for _ in range(self.counter()):
            self.word()
            self.counter()
            self.counter()

    def strings(self) -> list[str]:
        """The table in whichever of the two encodings ends where the functions begin."""
        begin = self.at
        for unit in (1, _WORD.size):
            self.at, self.files = begin, {}
            try:
                names = [*self.string_table(unit)]
                end = self.at
                self.tag(_FUNCTIONS, "functions")
            except InputError:
                continue
            self.at = end
            return names
        return self.fail("the table of strings is broken", begin)

    def string_table(self, unit: int) -> Iterator[str]:
        is_newer = self.version >= FIRST_WITH_TIMES
        files = [self.string(unit) for _ in range(self.rows("files", 5))] if is_newer else []
        for _ in range(self.rows("strings", 5)):
            name = self.string(unit)
            file = self.word() if is_newer else _NO_FILE
            if file < len(files):
                self.files[name] = files[file]
            yield name

    def string(self, unit: int) -> str:
        size = self.word() * unit
        raw = self.data[self.at : self.at + size]
        if not raw.endswith(b"\0") or len(raw) < size:
            self.fail("a string is cut off", self.at)
        self.at += size
        return os.fsdecode(raw.rstrip(b"\0"))

    def function(self, samples: SampleProfile) -> None:
        head = self.counter()
        time = self.counter() if self.version >= FIRST_WITH_TIMES else 0
        name = self.name()
        function = samples.function(name)
        if time:
            self.first_seen[name] = time
        function.head = add_saturating(function.head, head)
        self.instance(function, 0)

    def instance(self, function: FunctionSamples, depth: int) -> int:
        """Read into `function`; gives what was added to its total."""
        if depth > DEEPEST_INLINING:
            self.fail(f"functions are inlined more than {DEEPEST_INLINING} deep", self.at)
        positions, callsites = self.rows("positions"), self.rows("call sites")
        added = sum(self.position(function) for _ in range(positions))
        for _ in range(callsites):
            location = self.location()
            added += self.instance(function.callee(location, self.name()), depth + 1)
        function.total = add_saturating(function.total, added)
        return added

    def position(self, function: FunctionSamples) -> int:
        location, targets = self.location(), self.rows("call targets")
        count = self.counter()
        function.add_body(location, count)
        for _ in range(targets):
            self.word()
            function.add_call(location, self.name(self.counter()), self.counter())
        return count

    def location(self) -> Location:
        offset = self.word()
        return offset >> 16, offset & LARGEST_LINE

    def name(self, index: int | None = None) -> str:
        index = self.word() if index is None else index
        if index >= len(self.names):
            self.fail(f"name {index} of a table of {len(self.names)}", self.at)
        return self.names[index]

    def rows(self, what: str, smallest: int = _SMALLEST_ROW) -> int:
        number = self.word()
        if number * smallest > len(self.data) - self.at:
            self.fail(f"cut off in {number} {what}", self.at)
        return number

    def tag(self, wanted: int, what: str) -> None:
        if self.word() != wanted:
            self.fail(f"expected the {what} here", self.at - _WORD.size)

    def word(self) -> int:
        if self.at + _WORD.size > len(self.data):
            self.fail("cut off", self.at)
        (value,) = _WORD.unpack_from(self.data, self.at)
        self.at += _WORD.size
        return int(value)

    def counter(self) -> int:
        low = self.word()
        return low | self.word() << 32

    def fail(self, what: str, offset: int) -> NoReturn:
        cure = "Write it again: lbr2pgo convert --afdo."
        raise InputError(what, where=f"{self.where}@{offset:#x}", cure=cure)
