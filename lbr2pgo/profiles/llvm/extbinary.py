"""LLVM's binary sample profiles: the extensible form, read and written; the raw form, read.

A file of the extensible form begins with a magic number (the bytes `SPROF42` and 4 as one ULEB128)
and the version 103, then a table of sections: summary, names, calling contexts, offsets of
functions, samples, symbols of the binary, metadata. Nearly everything is ULEB128 numbers.

Source: LLVM 22, llvm/lib/ProfileData/SampleProfWriter.cpp.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from lbr2pgo.profiles.llvm import extbinary_reader, uleb
from lbr2pgo.profiles.llvm.extbinary_layout import (
    EXTENSIBLE_MAGIC,
    FILE_ORDER,
    RAW_MAGIC,
    SECTION,
    SECTION_COUNT,
    TABLE_ORDER,
    VERSION,
    ProfileSection,
    SectionFlag,
    SectionType,
)
from lbr2pgo.profiles.llvm.sample_names import (
    UNIQUE_SUFFIX,
    Context,
    Location,
    Name,
    context_order_key,
    guid,
    order_key,
)
from lbr2pgo.profiles.llvm.sample_profile import Counts, FunctionSamples, SampleProfile
from lbr2pgo.profiles.llvm.sample_summary import summarize
from lbr2pgo.support.errors import OutputError, readable
from lbr2pgo.support.output import PathLike, write_pieces


@dataclass(frozen=True)
class Options:
    """How to write an extensible binary profile."""

    md5_names: bool = False
    """Store hashes of names: smaller, but no tool can tell the names any more."""
    compress: bool = False
    """Compress all sections with zlib."""


def read(path: PathLike) -> SampleProfile:
    """Read a binary profile. InputError names the offset of what is wrong."""
    with readable(path):
        data = Path(path).read_bytes()
    return extbinary_reader.decode(data, str(path))


def write(
    profile: SampleProfile, destination: PathLike | BinaryIO, options: Options | None = None
) -> None:
    """Write the extensible form to a path or a binary stream, byte for byte as LLVM 22 does.

    Profiles whose names are hashes are written with hashes. Raises OutputError for a name that
    holds a NUL byte.
    """
    write_pieces(destination, [_Encoder(profile, options or Options()).encode()])


def is_binary_profile(head: bytes) -> bool:
    """Whether a file that begins with these bytes is of the extensible or the raw form."""
    return head.startswith(tuple(uleb.encode([m])[0] for m in (EXTENSIBLE_MAGIC, RAW_MAGIC)))


class _Encoder:
    def __init__(self, profile: SampleProfile, options: Options) -> None:
        self.profile = profile
        self.options = options
        self.ordered = profile.ordered()
        everything = [f for function in self.ordered for f in _with_inlined(function)]
        self.has_vtables = any(f.vtables for f in everything)
        self.names = sorted(_all_names(everything), key=order_key)
        self.name_numbers = {name: i for i, name in enumerate(self.names)}
        contexts = (f.context for f in self.ordered if f.context is not None)
        self.contexts = sorted(contexts, key=context_order_key)
        self.context_numbers = {context: i for i, context in enumerate(self.contexts)}
        self.md5_names = options.md5_names or any(isinstance(name, int) for name in self.names)
        self.offsets: dict[int, int] = {}
        """Offset of each function (by `_number`) in the section of samples."""

    def encode(self) -> bytes:
        head = uleb.encode([EXTENSIBLE_MAGIC, VERSION])[0] + SECTION_COUNT.pack(len(TABLE_ORDER))
        position = len(head) + SECTION.size * len(TABLE_ORDER)
        sections, bodies = {}, []
        for kind in FILE_ORDER:
            body = self._body(kind)
            flags = self._flags(kind)
            if flags & SectionFlag.COMPRESSED:
                body = _compressed(body)
            sections[kind] = ProfileSection(kind, flags, position, len(body))
            bodies.append(body)
            position += len(body)
        rows = (sections[kind] for kind in TABLE_ORDER)
        table = (SECTION.pack(row.type, row.flags, row.offset, row.size) for row in rows)
        return b"".join((head, *table, *bodies))

    def _body(self, kind: SectionType) -> bytes:
        makers = {
            SectionType.SUMMARY: self._summary,
            SectionType.NAMES: self._name_table,
            SectionType.CONTEXTS: self._context_table,
            SectionType.SAMPLES: self._samples,
            SectionType.SYMBOLS: self._symbols,
            SectionType.FUNCTION_OFFSETS: self._function_offsets,
            SectionType.METADATA: self._metadata,
        }
        return makers[kind]()

    def _flags(self, kind: SectionType) -> int:
        profile = self.profile
        has_attributes = profile.is_cs or profile.is_preinlined
        wanted: dict[SectionType, list[tuple[bool, SectionFlag]]] = {
            SectionType.SUMMARY: [
                (profile.is_partial, SectionFlag.SUMMARY_PARTIAL),
                (profile.is_cs, SectionFlag.SUMMARY_CONTEXTS),
                (profile.is_preinlined, SectionFlag.SUMMARY_PREINLINED),
                (profile.is_fs, SectionFlag.SUMMARY_FS),
                (self.has_vtables, SectionFlag.SUMMARY_VTABLES),
            ],
            SectionType.NAMES: [
                (self.md5_names, SectionFlag.NAMES_MD5 | SectionFlag.NAMES_FIXED_LENGTH),
                (not self.md5_names and self._has_unique_suffix(), SectionFlag.NAMES_UNIQUE_SUFFIX),
            ],
            SectionType.FUNCTION_OFFSETS: [(profile.is_cs, SectionFlag.OFFSETS_ORDERED)],
            SectionType.METADATA: [
                (profile.is_probe_based, SectionFlag.METADATA_CHECKSUMS),
                (has_attributes, SectionFlag.METADATA_ATTRIBUTES),
            ],
        }
        flags = [(self.options.compress, SectionFlag.COMPRESSED), *wanted.get(kind, [])]
        return sum(int(flag) for is_set, flag in flags if is_set)

    def _has_unique_suffix(self) -> bool:
        return any(UNIQUE_SUFFIX in str(name) for name in self.names)

    def _summary(self) -> bytes:
        s = summarize(self.profile)
        values = [s.total_count, s.max_count, s.max_function_count, s.counts, s.functions]
        values.append(len(s.detailed))
        for cutoff in s.detailed:
            values += cutoff
        return uleb.encode(values)[0]

    def _name_table(self) -> bytes:
        count = uleb.encode([len(self.names)])[0]
        if self.md5_names:
            return count + struct.pack(f"<{len(self.names)}Q", *map(guid, self.names))
        return count + _joined(str(name) for name in self.names)

    def _context_table(self) -> bytes:
        values = [len(self.contexts)]
        for context in self.contexts:
            values.append(len(context))
            for frame in context:
                values += (self.name_numbers[frame.function], *frame.location)
        return uleb.encode(values)[0]

    def _number(self, function: FunctionSamples) -> int:
        """The number by which other sections know a function."""
        if function.context is None:
            return self.name_numbers[function.name]
        return self.context_numbers[function.context]

    def _samples(self) -> bytes:
        values: list[int] = []
        first = []
        for function in self.ordered:
            first.append(len(values))
            values.append(function.head)
            self._add_function(function, values)
        encoded, starts = uleb.encode(values)
        for function, index in zip(self.ordered, first, strict=True):
            self.offsets[self._number(function)] = int(starts[index])
        return encoded

    def _add_function(self, function: FunctionSamples, values: list[int]) -> None:
        locations = function.locations()
        values += (self._number(function), function.total, len(locations))
        for location in locations:
            values += (*location, function.body.get(location, 0))
            self._add_counts(function.calls(location), values)
        inlined = list(function.inlined())
        values.append(len(inlined))
        for location, callee in inlined:
            values += location
            self._add_function(callee, values)
        if self.has_vtables:
            self._add_vtables(function.vtables, values)

    def _add_counts(self, counts: list[tuple[Name, int]], values: list[int]) -> None:
        values.append(len(counts))
        for name, count in counts:
            values += (self.name_numbers[name], count)

    def _add_vtables(self, vtables: dict[Location, Counts], values: list[int]) -> None:
        values.append(len(vtables))
        for location in sorted(vtables):
            values += location
            counts = sorted(vtables[location].items(), key=lambda item: order_key(item[0]))
            self._add_counts(counts, values)

    def _function_offsets(self) -> bytes:
        numbers = [self._number(function) for function in self.ordered]
        if self.profile.is_cs:
            numbers.sort()  # contexts are numbered in their order
        values = [len(numbers)]
        for number in numbers:
            values += (number, self.offsets[number])
        return uleb.encode(values)[0]

    def _metadata(self) -> bytes:
        values: list[int] = []
        profile = self.profile
        if profile.is_probe_based or profile.is_cs or profile.is_preinlined:
            for function in self._metadata_order():
                self._add_metadata(function, values)
        return uleb.encode(values)[0]

    def _metadata_order(self) -> list[FunctionSamples]:
        """As llvm-profdata's tables have functions: that of its reader, then that of its writer.

        Those of calling contexts, whose hashes are LLVM's private matter, stay as they are.
        """
        if self.profile.is_cs:
            return list(self.profile.functions.values())
        order = self.ordered
        for _ in ("reader", "writer"):
            order = [order[i] for i in table_order([guid(f.name) for f in order])]
        return order

    def _add_metadata(self, function: FunctionSamples, values: list[int]) -> None:
        values.append(self._number(function))
        if self.profile.is_probe_based:
            values.append(function.checksum)
        if self.profile.is_cs or self.profile.is_preinlined:
            values.append(function.attributes)
        if self.profile.is_cs:
            return
        inlined = list(function.inlined())
        values.append(len(inlined))
        for location, callee in inlined:
            values += location
            self._add_metadata(callee, values)

    def _symbols(self) -> bytes:
        return _joined(sorted(self.profile.symbols or (), key=os.fsencode))


def _with_inlined(function: FunctionSamples) -> Iterator[FunctionSamples]:
    yield function
    for callees in function.callsites.values():
        for callee in callees.values():
            yield from _with_inlined(callee)


def _all_names(functions: Iterable[FunctionSamples]) -> set[Name]:
    names: set[Name] = set()
    for function in functions:
        context: Context = function.context or ()
        names.add(function.name)
        names.update(frame.function for frame in context)
        for counts in (*function.call_targets.values(), *function.vtables.values()):
            names.update(counts)
    return names


def _joined(names: Iterable[str]) -> bytes:
    """Names, each ended by a NUL byte."""
    encoded = [os.fsencode(name) for name in names]
    for name in encoded:
        if b"\0" in name:
            raise OutputError(f"a binary profile can't hold a name with a NUL byte: {name!r}")
    return b"".join(name + b"\0" for name in encoded)


def _compressed(body: bytes) -> bytes:
    if not body:
        return body
    packed = zlib.compress(body, zlib.Z_BEST_COMPRESSION)
    return uleb.encode([len(body), len(packed)])[0] + packed


# Numbers of buckets of a table that grows one by one, as g++ 12 was seen to choose them.
_SIZES = (
    0, 13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061,
    712697, 1447153, 2938679, 5967347, 12117689, 24607243, 49969847, 101473717,
)  # fmt: skip


def table_order(hashes: Sequence[int]) -> list[int]:
    """Indices of the hashes as a table gives them after they were put into it one by one.

    LLVM's tools walk their hash table of functions so, and it shows in the metadata section. The
    table is libstdc++'s `std::unordered_map` under the 64-bit hashes of names: a new bucket's nodes
    come before all others, a new node before the others of its bucket; a full table is filled anew,
    in this order, into one with the next number of buckets.

    >>> table_order([1, 2, 14, 3])  # 1 and 14 share a bucket of the first 13
    [3, 1, 2, 0]
    """
    order: list[int] = []
    for full, size in pairwise(_SIZES):
        if len(order) == len(hashes):
            break
        order = _filled(order + list(range(full, min(size, len(hashes)))), hashes, size)
    return order


def _filled(order: Sequence[int], hashes: Sequence[int], size: int) -> list[int]:
    buckets: dict[int, list[int]] = {}
    for index in order:
        buckets.setdefault(hashes[index] % size, []).append(index)
    return [index for bucket in reversed(buckets.values()) for index in reversed(bucket)]
