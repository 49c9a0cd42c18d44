"""Pseudo probes: what clang's -fpseudo-probe-for-profiling leaves of the source in a program.

`.pseudo_probe_desc` names the functions and tells by a checksum whether their control flow is
still the same; `.pseudo_probe` says at which instruction which probe of which function is, and
what that function was inlined into. A *record* of it holds one function's code with all that was
inlined there; code that was split off a function has a record of its own.

Source: LLVM 22: lib/MC/MCPseudoProbe.cpp, include/llvm/IR/PseudoProbe.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cached_property

import numpy as np

from lbr2pgo.program.code.regions import code_ranges
from lbr2pgo.program.elf.debug_files import DebugFiles
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.symbols import STT_NOTYPE, Symbols
from lbr2pgo.support.addresses import ByteRanges, ImageAddresses, PlacedAddresses, image_addresses
from lbr2pgo.support.arrays import I32, I64, U8, U32, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import begins, place_of
from lbr2pgo.support.intervals import first_at_or_above, last_at_or_below
from lbr2pgo.support.tables import Tabular, ascending, table, taken

DESCRIPTORS, PROBES = ".pseudo_probe_desc", ".pseudo_probe"

DEEPEST_INLINING = 100
"""Deeper nests are refused: no compiler makes them, and walking them would not end well."""

ENTRY_INDEX = 1
"""The probe at a function's entry."""


class ProbeKind(IntEnum):
    """What a probe marks (LLVM: PseudoProbeType)."""

    BLOCK = 0
    INDIRECT_CALL = 1
    DIRECT_CALL = 2


def guid(name: bytes) -> int:
    """LLVM's 64-bit hash of a name: the low half of its MD5 (LLVM: Function::getGUID)."""
    import hashlib  # which takes long to load, and few programs have probes

    return int.from_bytes(hashlib.md5(name, usedforsecurity=False).digest()[:8], "little")


@table
class Descriptors(Tabular):
    """Functions that had probes when they were compiled; (n,) each, ordered by GUID, each once.

    Where several functions have one name, as static ones may, this is the first in the file.
    """

    guid: U64
    checksum: U64
    """Of the control flow: probes of one build fit another one where it is the same."""
    text: memoryview
    name_start: I64
    name_end: I64
    """Where in `text` each name is."""
    is_ambiguous: Bools
    """Whether functions of this name differ in their checksums."""

    def __post_init__(self) -> None:
        ascending(self, "guid")

    def name(self, row: int) -> str:
        """A function's name in the source, as the linker would see it."""
        return self.names(np.array([row]))[0]

    def names(self, rows: I64) -> list[str]:
        """The names of these rows."""
        spans = zip(self.name_start[rows].tolist(), self.name_end[rows].tolist(), strict=True)
        return [str(self.text[start:end], "utf-8", "surrogateescape") for start, end in spans]

    def rows(self, guids: U64) -> I64:
        """The row of each GUID, -1 for those without a descriptor."""
        return place_of(guids, self.guid)


@table
class InlineTree(Tabular):
    """Functions, and functions inlined into them, as records nest them; (m,) each.

    Each is followed by all that is inlined into it. A function has a node for each record: one, and
    another one for each piece of code that was split off it.
    """

    guid: U64
    parent: I32
    """Node of the function that it was inlined into; -1 for one with code of its own."""
    site: U32
    """Index of the call probe in the parent at which it was inlined; 0 where `parent` is -1."""
    function: I64
    """Row of `descriptors`, -1 where there is none."""
    descriptors: Descriptors

    def path(self, node: int) -> list[int]:
        """Nodes from the outermost caller to this one."""
        path = [node]
        while (node := int(self.parent[node])) >= 0:
            path.append(node)
        return path[::-1]

    def outermost(self) -> I64:
        """(m,): the node of the function around each that is not inlined; itself, where it is none.

        What is inlined into a function follows it, up to the next one.
        """
        number = np.arange(len(self))
        outermost: I64 = np.maximum.accumulate(np.where(self.parent < 0, number, 0))
        return outermost

    def name(self, node: int) -> str:
        """A function's name; its GUID where that is all that is known."""
        row = int(self.function[node])
        return str(self.guid[node]) if row < 0 else self.descriptors.name(row)


@table
class ProbeTable(Tabular):
    """Probes by image address, those of one address in the order of the section; (k,) each.

    The function of a probe is that of its node: `tree.guid[node]`.
    """

    address: ImageAddresses
    node: I32
    """Node of `tree`."""
    index: U32
    """Number in its function, from 1 (`ENTRY_INDEX`) on."""
    kind: U8
    """`ProbeKind`, or a number that no compiler is known to write."""
    attributes: U8
    """Three bits (LLVM: PseudoProbeAttributes)."""
    discriminator: U32
    """Tells copies of the code apart that the optimizer made; 0 for most."""
    tree: InlineTree

    @cached_property
    def is_call(self) -> Bools:
        """Whether the probe marks a call."""
        return np.isin(self.kind, (ProbeKind.INDIRECT_CALL, ProbeKind.DIRECT_CALL))

    def within(self, start: int, end: int) -> ProbeTable:
        """The probes in a half-open range."""
        first, behind = np.searchsorted(self.address, np.array([start, end], np.uint64))
        kept = slice(first, behind)
        return ProbeTable(
            self.address[kept], self.node[kept], self.index[kept], self.kind[kept],
            self.attributes[kept], self.discriminator[kept], self.tree,
        )  # fmt: skip

    def at(self, addresses: PlacedAddresses) -> tuple[I64, I64]:
        """First row of each address, and the one behind its last."""
        first = first_at_or_above(self.address, addresses)
        return first, last_at_or_below(self.address, addresses) + 1

    def call_at(self, addresses: PlacedAddresses) -> I64:
        """Row of the call probe at each address, the first of several; -1 where there is none."""
        calls = np.flatnonzero(self.is_call)
        at = place_of(addresses, self.address[calls])
        return np.append(calls, -1)[at]


@table
class Records(Tabular):
    """Records whose code is known, in the order of the section; (r,) each."""

    offset: I64
    """Where each starts in the section."""
    guid: U64
    """Of the function that the code is of."""
    start: U64
    """The running address where the record starts."""
    low: U64
    high: U64
    """Addresses of the lowest and of the highest probe, both 0 in a record without probes."""
    nodes: I64
    probes: I64
    depth: I64
    """How deep functions nest in it."""

    def take(self, rows: I64 | Bools) -> Records:
        """These rows."""
        return taken(self, rows)

    def touching(self, ranges: ByteRanges) -> Records:
        """Those that touch any of these ranges."""
        return self.take(self.touch(ranges))

    def touch(self, ranges: ByteRanges) -> Bools:
        """(r,): whether any code from the first probe to the last one is in these ranges.

        The ranges are ordered and disjoint.
        """
        if not len(ranges):
            return np.zeros(len(self), np.bool_)
        # The first range that ends above the lowest probe.
        at = np.searchsorted(ranges.end, self.low, side="right")
        start = ranges.start[np.minimum(at, len(ranges) - 1)]
        return (at < len(ranges)) & (self.probes > 0) & (start <= self.high)


class PseudoProbes:
    """The probes of a program. What is asked for is decoded, and not kept.

    `records(...)` are read quickly; `table(records)` costs time and memory by what they hold.
    """

    def __init__(
        self,
        image: Image,
        symbols: Symbols,
        code: ByteRanges,
        problems: Mapping[str, int] | None = None,
    ) -> None:
        """Of a file that holds the sections, with the symbols of its code, and where that is.

        `problems` are those of finding both: a reason in words, and how many.
        """
        self._data = _bytes_of(image, PROBES)
        self._described = _bytes_of(image, DESCRIPTORS)
        self.symbols = symbols
        self._code = code
        self._health = dict(problems or {})

    @property
    def present(self) -> bool:
        """Whether there are any."""
        return len(self._data) > 0 and len(self._described) > 0

    def health(self) -> Mapping[str, int]:
        """What of the records that were asked for can't be used: a reason in words, how many."""
        return {reason: count for reason, count in self._health.items() if count}

    @cached_property
    def descriptors(self) -> Descriptors:
        """Functions that had probes when they were compiled."""
        from lbr2pgo.program._pseudo_probes import read_descriptors

        found, end = read_descriptors(self._described)
        self._health[f"bytes of {DESCRIPTORS} that make no sense"] = len(self._described) - end
        guids, first, row = np.unique(found[:, 0], return_index=True, return_inverse=True)
        is_ambiguous = np.zeros(len(guids), np.bool_)
        is_ambiguous[row[found[:, 1] != found[first[row], 1]]] = True
        kept = found[first]
        spans = kept[:, 2:].astype(np.int64)
        names = spans[:, 0].copy(), spans[:, 1].copy()
        return Descriptors(guids, kept[:, 1].copy(), self._described.data, *names, is_ambiguous)

    def records(self, *, of_last_namesake: bool = False) -> Records:
        """All records whose code is known.

        Functions of one name, as static ones may be, have records of one GUID, which follow each
        other as the functions do. Records behind those are of copies that the linker dropped.
        With `of_last_namesake`, all are taken for the last function's, as llvm-profgen does.
        """
        survey = self._survey
        start, is_placed = _starts(survey, self._symbol_starts, of_last_namesake)
        is_deep = survey.depth > DEEPEST_INLINING
        self._lose("of functions without a symbol", survey.probes[~is_placed])
        self._lose("that are encoded in no known way", survey.probes[is_placed & survey.is_odd])
        self._lose("of functions inlined too deep", survey.probes[is_placed & is_deep])
        kept = is_placed & ~survey.is_odd & ~is_deep
        low, high = start + survey.low, start + survey.high
        records = Records(
            survey.offset, survey.guid, start, low, high, survey.nodes, survey.probes, survey.depth
        )
        records = records.take(kept)
        is_outside = (records.probes > 0) & ~records.touch(self._code)
        self._lose("that lie outside all code", records.probes[is_outside])
        return records.take(~is_outside)

    def _lose(self, why: str, probes: I64) -> None:
        self._health[f"pseudo probes {why}"] = int(probes.sum())

    def table(self, records: Records | None = None) -> ProbeTable:
        """The probes of these records, or of all."""
        from lbr2pgo.program._pseudo_probes import read_records

        if records is None:
            records = self.records()
        nodes, probes = read_records(
            self._data, records.offset, records.start, int(records.nodes.sum()),
            int(records.probes.sum()), int(records.depth.max(initial=0)),
        )  # fmt: skip
        order = np.argsort(probes[0], kind="stable")
        rows = self.descriptors.rows(nodes[0])
        tree = InlineTree(*nodes, rows, self.descriptors)
        address, node, index, kind, attributes, discriminator = probes
        return ProbeTable(
            image_addresses(address[order]), node[order], index[order], kind[order],
            attributes[order],
            discriminator[order], tree,
        )  # fmt: skip

    @cached_property
    def _survey(self) -> _Survey:
        from lbr2pgo.program._pseudo_probes import survey_records

        found, end = survey_records(self._data)
        self._health[f"bytes of {PROBES} that make no sense"] = len(self._data) - end
        columns = np.ascontiguousarray(found.T)
        numbers = columns.view(np.int64)
        return _Survey(
            offset=numbers[0],
            guid=columns[1],
            base_guid=columns[2],
            start=columns[3],
            is_absolute=columns[4] != 0,
            is_odd=columns[5] != 0,
            nodes=numbers[6],
            probes=numbers[7],
            low=columns[8],
            high=columns[9],
            depth=numbers[10],
        )

    @cached_property
    def _symbol_starts(self) -> tuple[U64, U64]:
        """GUIDs of the code's symbols and where they are: sorted, no pair twice."""
        symbols = self.symbols
        rows = np.flatnonzero(symbols.is_function | (symbols.kind == STT_NOTYPE))
        guids = np.array([guid(symbols.names.raw(row)) for row in rows.tolist()], np.uint64)
        pairs = np.unique(np.stack((guids, symbols.start[rows]), axis=1), axis=0)
        return pairs[:, 0].copy(), pairs[:, 1].copy()


@dataclass(frozen=True, slots=True)
class _Survey:
    """The columns of `program._pseudo_probes.survey_records`."""

    offset: I64
    guid: U64
    base_guid: U64
    start: U64
    is_absolute: Bools
    is_odd: Bools
    nodes: I64
    probes: I64
    low: U64
    high: U64
    depth: I64


def _starts(survey: _Survey, symbols: tuple[U64, U64], of_last_namesake: bool) -> tuple[U64, Bools]:
    """Running addresses where records start, and whether these are known."""
    guids, starts = symbols
    first = np.searchsorted(guids, survey.base_guid, side="left")
    end = np.searchsorted(guids, survey.base_guid, side="right")
    last = end - 1
    row = last if of_last_namesake else first + _copy(survey)
    is_placed = survey.is_absolute | (row < end)
    known = is_placed & ~survey.is_absolute
    start = survey.start.copy()
    start[known] = starts[row[known]]
    return start, is_placed


def _copy(survey: _Survey) -> I64:
    """Which of the functions of its symbol's name the code of each record is, from 0 on.

    Code that was inlined has a record beside its caller's where the compiler had no debug
    information to tell of the call; records of one function's code stand together, by GUID.
    """
    is_first = begins(survey.base_guid)
    is_first[1:] |= survey.guid[1:] <= survey.guid[:-1]
    first = np.flatnonzero(is_first)
    copy: I64 = _rank(survey.base_guid[first])[np.cumsum(is_first) - 1]
    return copy


def _rank(keys: U64) -> I64:
    """How many of the same stand before each key."""
    order = np.argsort(keys, kind="stable")
    is_first = begins(keys[order])
    number = np.arange(len(keys))
    rank: I64 = np.empty(len(keys), np.int64)
    rank[order] = number - np.maximum.accumulate(np.where(is_first, number, 0))
    return rank


def _bytes_of(image: Image, name: str) -> U8:
    return np.frombuffer(image.section_view(name) or b"", np.uint8)


def has_probes(image: Image) -> bool:
    """Whether a file holds both sections."""
    sections = map(image.section, (DESCRIPTORS, PROBES))
    return all(section and image.holds(section) and section.size for section in sections)


def open_probes(files: DebugFiles, symbols: Symbols) -> PseudoProbes:
    """The probes of a program with these symbols, or of the debug file that was split off it."""
    holder = files.holder(has_probes) or files.image
    return PseudoProbes(holder, symbols, code_ranges(files.image), files.health())
