"""Functions and inlined calls of a unit: where they are, and what their DIEs say of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.native.text_numbers import TextNumbers
from lbr2pgo.program.dwarf import _functions as native
from lbr2pgo.program.dwarf._frames import chain_offsets, chains, scopes
from lbr2pgo.program.dwarf._units import (
    DAMAGED,
    NO_DECLARATION,
    ODD_FORM,
    TOO_MANY_RANGES,
    Sections,
)
from lbr2pgo.program.dwarf.section import DebugTexts
from lbr2pgo.program.dwarf.unit import Dwarf
from lbr2pgo.support.addresses import ByteRanges, ImageAddresses, PlacedAddresses, image_array
from lbr2pgo.support.arrays import I32, I64, U64, Bools, Records
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.intervals import interval_of
from lbr2pgo.support.tables import joined, table
from lbr2pgo.support.texts import Texts

ENDINGS = {
    DAMAGED: "units cut off by damage in .debug_info",
    NO_DECLARATION: "units cut off by an abbreviation that is not declared",
    TOO_MANY_RANGES: "units cut off by more address ranges than the file can hold",
    ODD_FORM: "units cut off by an attribute form that is not known",
}
"""In words, how reading a unit ended if not at its end."""

_LONGEST_WAY = 8
"""Units that are followed from one to the next at most: compilers need three."""
_DEEPEST = 256
"""Frames of one address that are kept at most; compilers stop inlining long before."""


@table
class DwarfFunctions:
    """Where the functions are that DWARF knows, as llvm-profgen sees them.

    A function may have several ranges. Of functions folded to one address the first in the file
    stays, and ranges below the image's first code segment, which linkers leave of dropped code,
    are left out (LLVM: ProfiledBinary.cpp loadSymbolsFromDWARFUnit).
    """

    range_start: ImageAddresses
    """(k,), sorted, no two the same."""
    range_end: ImageAddresses
    """(k,), behind the last byte."""
    function: I32
    """(k,), index into `names`."""
    names: Sequence[str]
    """Each once, and only of functions with a range here."""

    @classmethod
    def none(cls) -> DwarfFunctions:
        """No function."""
        addresses = image_array(())
        return cls(addresses, addresses, np.zeros(0, np.int32), ())

    @property
    def ranges(self) -> ByteRanges:
        """All ranges."""
        return ByteRanges(self.range_start, self.range_end)

    def containing(self, addresses: PlacedAddresses) -> I64:
        """Index of the range around each address, -1 where there is none."""
        return self.ranges.around(addresses)


class NumberedTexts:
    """Texts, each once, numbered in the order in which they came."""

    def __init__(self) -> None:
        self._known = TextNumbers()

    def numbers(self, texts: Iterable[str]) -> I32:
        """Number of each text."""
        encoded = (text.encode("utf-8", "surrogateescape") for text in texts)
        return np.array([self._known.number(text) for text in encoded], np.int32)

    def at(self, texts: DebugTexts, places: I64) -> I32:
        """Number of the text at each place, -1 where there is none."""
        used = RowIds()
        place = places.astype(np.uint64)
        back = used.number_rows(place, np.zeros_like(place))
        return texts.number(used.rows()[:, 0].astype(np.int64), self._known).astype(np.int32)[back]

    @property
    def texts(self) -> Texts:
        """The texts by their numbers."""
        return Texts(*self._known.texts())


class Around(NamedTuple):
    """The functions of a unit around some addresses."""

    dies: Records
    """(n,) rows of `DIE`."""
    leaves: I64
    """(k,): row of the innermost function around each address, -1 where there is none."""
    ending: int
    """`COMPLETE`, or a key of `ENDINGS`."""

    def chains(self, leaves: I64) -> tuple[I64, I32, int]:
        """DIEs from each leaf out: (offsets (n + 1,), rows outermost first, chains cut)."""
        offsets, cut = chain_offsets(leaves, self.dies, _DEEPEST)
        return offsets, chains(leaves, self.dies, offsets), cut

    def scopes(self, leaves: I64) -> tuple[Bools, I32, I32, int]:
        """DIEs around the leaves: (which (n,), parent of each, that of each leaf, leaves cut)."""
        return scopes(leaves, self.dies, _DEEPEST)


def functions_around(dwarf: Dwarf, unit: int, sections: Sections, addresses: U64) -> Around:
    """Decode the functions that hold some of (k,) ascending addresses."""
    dies, ranges, ending = native.functions_around(
        sections, dwarf.units, unit, dwarf.abbreviations, addresses, dwarf.range_limit
    )
    bounds = distinct(np.concatenate([ranges["low"], ranges["high"]]))
    return Around(dies, native.innermost(ranges, bounds, addresses), ending)


def subprogram_ranges(dwarf: Dwarf, unit: int, sections: Sections) -> tuple[Records, int]:
    """Ranges of a unit's functions that are not inlined, and how reading ended (see `Around`).

    (m,) rows of `RANGE`, each with the offset of its DIE, in the order of the DIEs.
    """
    return native.subprogram_ranges(
        sections, dwarf.units, unit, dwarf.abbreviations, dwarf.range_limit
    )


def describe(dwarf: Dwarf, unit: int, sections: Sections, offsets: I64) -> Records:
    """What the DIEs at (n,) offsets of .debug_info say, all in one unit: rows of `DESCRIPTION`."""
    return native.describe(sections, dwarf.units, unit, dwarf.abbreviations, offsets)


def describe_all(
    parts: Sequence[tuple[Dwarf, Records]], names: NumberedTexts
) -> tuple[I32, Records]:
    """Number of the name, -1 for none, and `DESCRIPTION` of what each file describes, in order."""
    if not parts:
        return np.zeros(0, np.int32), np.zeros(0, native.DESCRIPTION)
    named, rows = [], []
    for _, same in groupby(parts, key=lambda part: id(part[0])):
        together = list(same)
        rows.append(joined([described for _, described in together]))
        named.append(name_all(together[0][0], rows[-1], names))
    return np.concatenate(named), joined(rows)


def name_all(dwarf: Dwarf, rows: Records, names: NumberedTexts, ways: int = _LONGEST_WAY) -> I32:
    """Number of the name of each of (n,) rows of `DESCRIPTION`, which are completed meanwhile.

    The linkage name if there is one, else the plain one; -1 where a DIE has neither. Other units
    and the supplementary file are asked for what is there, which may refer to others again:
    `ways` bounds how often.
    """
    name = names.at(dwarf.texts, rows["linkage_name"])
    nameless = np.flatnonzero(name < 0)
    name[nameless] = names.at(dwarf.texts, rows["name"][nameless])
    for way, file in (("elsewhere", dwarf), ("moved", dwarf.supplement)):
        away = np.flatnonzero(rows[way] >= 0)
        if file is not None and len(away) and ways:
            offsets, back = np.unique(rows[way][away], return_inverse=True)
            there = _describe_anywhere(file, offsets)
            name_there = name_all(file, there, names, ways - 1)[back]
            name[away] = np.where(name[away] < 0, name_there, name[away])
            line = rows["decl_line"]
            line[away] = np.where(line[away] == 0, there["decl_line"][back], line[away])
    return name


def _describe_anywhere(dwarf: Dwarf, offsets: I64) -> Records:
    """As `describe`, of (n,) ascending offsets in any unit."""
    unit_of = interval_of(dwarf.units["offset"], dwarf.units["end"], offsets)
    rows = np.full(len(offsets), native.UNDESCRIBED)
    for unit in distinct(unit_of[unit_of >= 0]).tolist():
        dwarf.load([unit])
        rows[unit_of == unit] = describe(
            dwarf, unit, dwarf.with_dies(unit), offsets[unit_of == unit]
        )
    return rows
