"""One file's DWARF: its sections, its units and single attributes of its DIEs.

Imports the compiled loops: reach it through `debug_info`, which imports it when it is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lbr2pgo.native import dwarf_forms as forms_of
from lbr2pgo.native.dwarf_units import (
    ALL_SLOTS,
    DECLARATION,
    FUNCTION_SLOTS,
    UNIT,
    UT_SPLIT_TYPE,
    UT_TYPE,
    Sections,
    read_dies,
    read_roots,
    scan_units,
)
from lbr2pgo.native.rows import row_type
from lbr2pgo.program.dwarf.abbreviations import Abbreviations
from lbr2pgo.support.arrays import I64, U64, Bytes, Records
from lbr2pgo.support.errors import InputError

CONTRIBUTION = row_type([(n, np.int64) for n in ("info", "abbrev", "str_offsets", "rnglists")])

Forms = npt.NDArray[np.int16]


class SectionSource(Protocol):
    """What holds sections: an image, or a file of debug information beside it."""

    def section_view(self, name: str) -> memoryview | None:
        """Content of a section, unpacked, None if there is none."""


@dataclass
class SectionReader:
    """Sections of a file as (n,) u8, read-only; empty where absent or damaged, which is counted."""

    source: SectionSource
    problems: Counter[str]
    pattern: str = ".debug_{}"

    def __call__(self, name: str) -> Bytes:
        """The section whose name completes the pattern."""
        try:
            view = self.source.section_view(self.pattern.format(name))
        except InputError:
            self.problems["sections of debug info that can't be unpacked"] += 1
            view = None
        return np.frombuffer(b"" if view is None else view, np.uint8)


def numbers_at(data: Bytes, positions: I64, size: int) -> tuple[U64, npt.NDArray[np.bool_]]:
    """Little-endian numbers of `size` bytes: (values, which of them lie within the data)."""
    inside = (positions >= 0) & (positions <= len(data) - size)
    values = np.zeros(len(positions), np.uint64)
    at = positions[inside]
    for i in range(size):
        values[inside] |= data[at + i].astype(np.uint64) << np.uint64(8 * i)
    return values, inside


@dataclass
class StringSection:
    """NUL-terminated strings of a section.

    What is decoded in all is bounded, because hostile offsets may share one endless string.
    """

    data: Bytes
    _known: dict[int, str | None] = field(default_factory=dict)
    _spent: int = 0

    def text(self, offset: int) -> str | None:
        """The string at an offset; None if there is none."""
        if offset not in self._known:
            self._known[offset] = self._decode(offset)
        return self._known[offset]

    def _decode(self, offset: int) -> str | None:
        size = 128
        while 0 <= offset < len(self.data) and self._spent < 16 * len(self.data) + 4096:
            chunk = self.data[offset : offset + size].tobytes()
            end = chunk.find(b"\0")
            self._spent += len(chunk) if end < 0 else end
            if end >= 0:
                return chunk[:end].decode("utf-8", "surrogateescape")
            if offset + size >= len(self.data):
                break
            size *= 4
        return None


@dataclass(frozen=True)
class Container:
    """The DWARF of one file, or of the split half of one (its `.dwo` sections)."""

    path: str
    sections: Sections
    lines: Bytes
    str_offsets: Bytes
    strings: dict[int, StringSection]
    """By the form that refers to the section."""
    aranges: Bytes
    supplement: Container | None = None
    """The file to which dwz moved what several programs share."""
    package: Records | None = None
    """Of a `.dwp` file: where each unit's parts of the sections start, rows of `CONTRIBUTION`."""

    @classmethod
    def open(cls, path: str, get: SectionReader, supplement: Container | None = None) -> Container:
        """The DWARF that a file holds itself."""
        sections = Sections(*map(get, ("info", "abbrev", "addr", "ranges", "rnglists")))
        return cls._of(path, sections, get, aranges=get("aranges"), supplement=supplement)

    @classmethod
    def open_split(
        cls, path: str, get: SectionReader, skeleton: Container, package: Records | None
    ) -> Container:
        """The DWARF of a `.dwo` or `.dwp` file, which shares sections with its skeleton."""
        shared = skeleton.sections
        sections = Sections(get("info"), get("abbrev"), shared.addr, shared.ranges, get("rnglists"))
        return cls._of(path, sections, get, aranges=np.zeros(0, np.uint8), package=package)

    @classmethod
    def _of(
        cls,
        path: str,
        sections: Sections,
        get: SectionReader,
        aranges: Bytes,
        supplement: Container | None = None,
        package: Records | None = None,
    ) -> Container:
        data = {
            forms_of.STRING: sections.info,
            forms_of.STRP: get("str"),
            forms_of.LINE_STRP: get("line_str"),
        }
        strings = {form: StringSection(section) for form, section in data.items()}
        if supplement is not None:
            for form in (forms_of.GNU_STRP_ALT, forms_of.STRP_SUP):
                strings[form] = supplement.strings[forms_of.STRP]
        return cls(
            path=path,
            sections=sections,
            lines=get("line"),
            str_offsets=get("str_offsets"),
            strings=strings,
            aranges=aranges,
            supplement=supplement,
            package=package,
        )

    @cached_property
    def _scanned(self) -> tuple[Records, int]:
        """Unit headers, and where in .debug_info reading them ended."""
        parts = [np.zeros(0, UNIT)]
        info, position = self.sections.info, 0
        while position < len(info):
            part = np.zeros(64 << min(len(parts), 12), UNIT)
            count, position = scan_units(info, position, part)
            parts.append(part[:count])
            if count < len(part):
                break
        return np.concatenate(parts), position

    @property
    def unread(self) -> int:
        """Bytes of .debug_info behind the last header that makes sense."""
        return len(self.sections.info) - self._scanned[1]

    @cached_property
    def _read(self) -> tuple[Records, Forms, U64]:
        """Units, and forms and values of their root DIEs."""
        units = self._scanned[0].copy()
        units["abbrev"] += self._contribution(units, "abbrev")
        forms = np.zeros((len(units), ALL_SLOTS), np.int16)
        values = np.zeros((len(units), ALL_SLOTS), np.uint64)
        budget = 64 * len(self.sections.abbrev) + (1 << 20)
        read_roots(self.sections, units, np.zeros(1, DECLARATION), forms, values, budget)
        units["str_offsets_base"] += self._contribution(units, "str_offsets")
        units["rnglists_base"] += self._contribution(units, "rnglists")
        return units, forms, values

    def _contribution(self, units: Records, section: str) -> I64:
        """Where each unit's part of a section starts: 0 outside of packages."""
        if self.package is None or len(self.package) == 0:
            return np.zeros(len(units), np.int64)
        at = np.searchsorted(self.package["info"], units["offset"])
        at = np.minimum(at, len(self.package) - 1)
        known = self.package["info"][at] == units["offset"]
        return np.where(known, self.package[section][at], 0)

    @property
    def units(self) -> Records:
        """(n,) rows of `UNIT`, in the order of the file."""
        return self._read[0]

    @property
    def roots(self) -> tuple[Forms, U64]:
        """Attributes of the root DIEs: (n, ALL_SLOTS) forms and values."""
        return self._read[1:]

    @cached_property
    def is_compile_unit(self) -> npt.NDArray[np.bool_]:
        """(n,): not a type unit."""
        return ~np.isin(self.units["kind"], (UT_TYPE, UT_SPLIT_TYPE))

    def unit_at(self, offsets: I64) -> I64:
        """Index of the unit that contains each offset of .debug_info, -1 where there is none."""
        at = np.searchsorted(self.units["offset"], offsets, side="right") - 1
        if len(self.units) == 0:
            return np.full(len(offsets), -1)
        return np.where((at >= 0) & (offsets < self.units["end"][at]), at, -1)

    @cached_property
    def _abbreviations(self) -> Abbreviations:
        return Abbreviations(self.sections.abbrev)

    def declarations(self, unit: int) -> Records:
        """A unit's abbreviations: rows of `DECLARATION`, sorted by code."""
        return self._abbreviations.table(self.units[unit])

    def function_attributes(self, unit_of: I64, offsets: I64) -> tuple[Forms, U64]:
        """Attributes of DIEs: (n, FUNCTION_SLOTS) forms and values; `unit_of` must be sorted."""
        forms = np.zeros((len(offsets), FUNCTION_SLOTS), np.int16)
        values = np.zeros((len(offsets), FUNCTION_SLOTS), np.uint64)
        for unit, start, end in runs(unit_of):
            if unit >= 0:
                read_dies(
                    self.sections, self.units[unit], self.declarations(unit),
                    offsets[start:end], forms[start:end], values[start:end],
                )  # fmt: skip
        return forms, values

    def root_text(self, unit: int, slot: int) -> str | None:
        """A string attribute of a unit's root DIE."""
        forms, values = self.roots
        return self.texts(np.array([unit]), forms[[unit], slot], values[[unit], slot])[0]

    def texts(
        self, unit_of: I64, forms: Forms, values: U64, inline: StringSection | None = None
    ) -> list[str | None]:
        """The strings that (n,) attributes refer to; None where one can't be read.

        Strings in place stand in .debug_info unless another section is given.
        """
        sections = self.strings | {forms_of.STRING: inline or self.strings[forms_of.STRING]}
        values = values.copy()
        forms = forms.copy()
        indexed = np.flatnonzero(is_string_index(forms))
        sizes = self.units["offset_size"][unit_of[indexed]]
        for size in (4, 8):
            rows = indexed[sizes == size]
            if len(rows) == 0:
                continue
            base = self.units["str_offsets_base"][unit_of[rows]]
            index = np.minimum(values[rows], len(self.str_offsets)).astype(np.int64)
            values[rows], inside = numbers_at(self.str_offsets, base + size * index, size)
            forms[rows] = np.where(inside, forms_of.STRP, 0)
        return [
            sections[form].text(value) if form in sections else None
            for form, value in zip(forms.tolist(), values.tolist(), strict=True)
        ]


def runs(values: I64) -> Iterator[tuple[int, int, int]]:
    """Runs of equal values: (value, start, end).

    >>> [*runs(np.array([7, 7, 9]))]
    [(7, 0, 2), (9, 2, 3)]
    """
    starts = np.flatnonzero(np.diff(values, prepend=values[:1] - 1)).tolist()
    for start, end in pairwise([*starts, len(values)]):
        yield int(values[start]), start, end


def is_string_index(forms: Forms) -> npt.NDArray[np.bool_]:
    """Which forms are indices into .debug_str_offsets."""
    sized = (forms >= forms_of.STRX1) & (forms <= forms_of.STRX4)
    either: npt.NDArray[np.bool_] = (
        sized | (forms == forms_of.STRX) | (forms == forms_of.GNU_STR_INDEX)
    )
    return either
