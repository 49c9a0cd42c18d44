"""Reads LLVM's binary sample profiles, the extensible and the raw form.

Source: LLVM 22, llvm/lib/ProfileData/SampleProfReader.cpp.
"""

from __future__ import annotations

import os
import zlib

import numpy as np

from lbr2pgo.profiles.llvm.extbinary_layout import (
    EXTENSIBLE_MAGIC,
    RAW_MAGIC,
    SECTION,
    SECTION_COUNT,
    VERSION,
    ProfileSection,
    SectionFlag,
    SectionType,
)
from lbr2pgo.profiles.llvm.sample_names import Context, Frame, Key, Location, Name
from lbr2pgo.profiles.llvm.sample_profile import (
    LARGEST_LINE,
    FunctionSamples,
    SampleProfile,
    add_saturating,
)
from lbr2pgo.profiles.llvm.uleb import UlebPart, UlebStream, read_one
from lbr2pgo.program.pseudo_probes import DEEPEST_INLINING

_LARGEST_U32 = 0xFFFFFFFF
_UNPACKED_FLOOR = 1 << 24
_UNPACKED_RATIO = 32


def decode(data: bytes, file: str) -> SampleProfile:
    """The profile in a whole file's bytes; `file` names it in errors.

    Raises InputError, with the offset, for another format or version, and for what is cut off,
    out of range or inconsistent.
    """
    return _Decoder(data, file).decode()


class _Decoder:
    def __init__(self, data: bytes, file: str) -> None:
        self.whole = UlebPart(memoryview(data), file)
        self.profile = SampleProfile()
        self.names: list[Name] = []
        self.contexts: list[Context] = []
        self.has_vtables = False
        self.may_unpack = max(_UNPACKED_FLOOR, _UNPACKED_RATIO * len(data))

    def decode(self) -> SampleProfile:
        magic, offset = read_one(self.whole, 0)
        if magic not in (EXTENSIBLE_MAGIC, RAW_MAGIC):
            self.whole.fail("this is no binary sample profile", 0)
        version, offset = read_one(self.whole, offset)
        if version != VERSION:
            self.whole.fail(f"version {version} of the format, expected {VERSION}", offset)
        if magic == RAW_MAGIC:
            self._read_raw(offset)
        else:
            self._read_sections(self._section_table(offset))
        return self.profile

    # The extensible form

    def _section_table(self, offset: int) -> list[ProfileSection]:
        data = self.whole.data
        if len(data) < offset + SECTION_COUNT.size:
            self.whole.fail("cut off before the table of sections", offset)
        (count,) = SECTION_COUNT.unpack_from(data, offset)
        start = offset + SECTION_COUNT.size
        if count * SECTION.size > len(data) - start:
            self.whole.fail(f"cut off in the table of {count} sections", offset)
        rows = SECTION.iter_unpack(data[start : start + count * SECTION.size])
        table = [ProfileSection(*row) for row in rows]
        for i, section in enumerate(table):
            if section.offset + section.size > len(data):
                self.whole.fail(f"section {i} lies beyond the end", start + i * SECTION.size)
        if sum(section.size for section in table) > len(data):
            self.whole.fail("sections overlap", start)
        return table

    def _read_sections(self, table: list[ProfileSection]) -> None:
        types = {section.type for section in table}
        if SectionType.SAMPLES not in types and types - set(SectionType):
            self.whole.fail("the samples are in a section of a newer LLVM", 0)
        for section in table:
            if section.size:
                part = self.whole.sub(section.offset, section.offset + section.size)
                if section.flags & SectionFlag.COMPRESSED:
                    part = self._unpack(part)
                self._read_section(section, part)

    def _unpack(self, part: UlebPart) -> UlebPart:
        size, offset = read_one(part, 0)
        packed_size, offset = read_one(part, offset)
        if packed_size > len(part.data) - offset:
            part.fail("cut off in a compressed section", offset)
        self.may_unpack -= size
        if self.may_unpack < 0:
            part.fail(f"sections unpack to too much, {size} bytes here", 0)
        stream = zlib.decompressobj()
        try:
            data = stream.decompress(part.data[offset : offset + packed_size], size + 1)
        except zlib.error:
            part.fail("a compressed section is damaged", offset)
        if len(data) != size or not stream.eof:
            part.fail(f"a compressed section does not hold {size} bytes", offset)
        return UlebPart(memoryview(data), part.file, part.start, unpacked=True)

    def _read_section(self, section: ProfileSection, part: UlebPart) -> None:
        match section.type:
            case SectionType.SUMMARY:
                self._read_summary_flags(section.flags)
            case SectionType.NAMES:
                self._read_names(section.flags, part)
            case SectionType.CONTEXTS:
                self._read_contexts(UlebStream(part))
            case SectionType.SAMPLES:
                self._read_functions(UlebStream(part))
            case SectionType.SYMBOLS:
                symbols = _split_names(part, 0, None)[0]
                self.profile.symbols = (self.profile.symbols or frozenset()).union(symbols)
            case SectionType.METADATA:
                self._read_metadata(section.flags, UlebStream(part))

    def _read_summary_flags(self, flags: int) -> None:
        profile = self.profile
        profile.is_partial = bool(flags & SectionFlag.SUMMARY_PARTIAL)
        profile.is_cs = bool(flags & SectionFlag.SUMMARY_CONTEXTS)
        profile.is_preinlined = bool(flags & SectionFlag.SUMMARY_PREINLINED)
        profile.is_fs = bool(flags & SectionFlag.SUMMARY_FS)
        self.has_vtables = bool(flags & SectionFlag.SUMMARY_VTABLES)

    def _read_names(self, flags: int, part: UlebPart) -> None:
        count, offset = read_one(part, 0)
        if flags & SectionFlag.NAMES_FIXED_LENGTH:
            if count * 8 != len(part.data) - offset:
                part.fail(f"the table does not hold {count} hashes of names", offset)
            self.names = list(np.frombuffer(part.data[offset:], "<u8").tolist())
        elif flags & SectionFlag.NAMES_MD5:
            stream = UlebStream(part.sub(offset))
            self.names = []
            while not stream.at_end:
                self.names.append(stream.take())
            if len(self.names) != count:
                part.fail(f"the table does not hold {count} hashes of names", offset)
        else:
            names, end = _split_names(part, offset, count)
            if end != len(part.data):
                part.fail(f"the table holds more than {count} names", end)
            self.names = list(names)

    def _read_contexts(self, stream: UlebStream) -> None:
        self.contexts = []
        for _ in range(stream.take()):
            frames = []
            for _ in range(stream.take()):
                name = self._name(stream)
                frames.append(Frame(name, _location(stream)))
            if not frames:
                stream.fail("a calling context is empty")
            self.contexts.append(tuple(frames))
        if not stream.at_end:
            stream.fail("the table of calling contexts goes on after its end")

    # Samples

    def _name(self, stream: UlebStream) -> Name:
        number = stream.take()
        if number >= len(self.names):
            stream.fail(f"there is no name {number} in the table of {len(self.names)}")
        return self.names[number]

    def _key(self, stream: UlebStream) -> Key:
        if not self.profile.is_cs:
            return self._name(stream)
        number = stream.take()
        if number >= len(self.contexts):
            stream.fail(f"there is no context {number} in the table of {len(self.contexts)}")
        return self.contexts[number]

    def _read_functions(self, stream: UlebStream) -> None:
        while not stream.at_end:
            head = stream.take()
            function = self.profile.function(self._key(stream))
            function.head = add_saturating(function.head, head)
            self._read_function(function, stream, 0)

    def _read_function(self, function: FunctionSamples, stream: UlebStream, depth: int) -> None:
        if depth > DEEPEST_INLINING:
            stream.fail(f"functions are inlined more than {DEEPEST_INLINING} deep")
        function.total = add_saturating(function.total, stream.take())
        for _ in range(stream.take()):
            location = _location(stream)
            function.add_body(location, stream.take())
            for _ in range(stream.take()):
                function.add_call(location, self._name(stream), stream.take())
        for _ in range(stream.take()):
            location = _location(stream)
            callee = function.callee(location, self._name(stream))
            self._read_function(callee, stream, depth + 1)
        if self.has_vtables:
            self._read_vtables(function, stream)

    def _read_vtables(self, function: FunctionSamples, stream: UlebStream) -> None:
        for _ in range(stream.take()):
            location = _location(stream)
            for _ in range(stream.take()):
                function.add_vtable(location, self._name(stream), stream.take())

    # Metadata

    def _read_metadata(self, flags: int, stream: UlebStream) -> None:
        """Read checksums and attributes; functions of contexts are written back in this order."""
        self.profile.is_probe_based = bool(flags & SectionFlag.METADATA_CHECKSUMS)
        functions = self.profile.functions
        ordered = {}
        while not stream.at_end:
            key = self._key(stream)
            function = functions.get(key)
            if function is not None:
                ordered[key] = function
            self._read_function_metadata(function, flags, stream, 0)
        self.profile.functions = ordered | functions

    def _read_function_metadata(
        self, function: FunctionSamples | None, flags: int, stream: UlebStream, depth: int
    ) -> None:
        if depth > DEEPEST_INLINING:
            stream.fail(f"functions are inlined more than {DEEPEST_INLINING} deep")
        checksum = stream.take() if flags & SectionFlag.METADATA_CHECKSUMS else 0
        attributes = 0
        if flags & SectionFlag.METADATA_ATTRIBUTES:
            attributes = stream.take_at_most(_LARGEST_U32)
        if function is not None:
            function.checksum, function.attributes = checksum, attributes
        for _ in range(0 if self.profile.is_cs else stream.take()):
            location, name = _location(stream), self._name(stream)
            callee = None
            if function is not None:
                callee = function.callsites.get(location, {}).get(name)
            self._read_function_metadata(callee, flags, stream, depth + 1)

    # The raw form

    def _read_raw(self, offset: int) -> None:
        """Read what has no sections: summary, names, functions."""
        for _ in range(5):
            _, offset = read_one(self.whole, offset)
        cutoffs, offset = read_one(self.whole, offset)
        for _ in range(3 * cutoffs):
            _, offset = read_one(self.whole, offset)
        count, offset = read_one(self.whole, offset)
        names, offset = _split_names(self.whole, offset, count)
        self.names = list(names)
        self._read_functions(UlebStream(self.whole.sub(offset)))


def _location(stream: UlebStream) -> Location:
    return stream.take_at_most(LARGEST_LINE), stream.take_at_most(_LARGEST_U32)


def _split_names(part: UlebPart, offset: int, count: int | None) -> tuple[list[str], int]:
    """`count` names (all if None), each ended by a NUL byte, and the offset behind them."""
    data = bytes(part.data[offset:])
    pieces = data.split(b"\0") if count is None else data.split(b"\0", min(count, len(data)))
    rest = pieces.pop()
    if (count is None and rest) or (count is not None and len(pieces) != count):
        part.fail("cut off in a table of names", len(part.data) - len(rest))
    return [os.fsdecode(piece) for piece in pieces], len(part.data) - len(rest)
