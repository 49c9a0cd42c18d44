"""Ranges and branches as text: what create_llvm_prof and llvm-profgen write before symbols.

Each section is a line with a count and that many rows. `create_llvm_prof --profiler=text` writes
three: ranges, sampled addresses, branches; its addresses are file offsets (google/autofdo:
sample_reader.cc). `llvm-profgen --skip-symbolization` writes two, ranges and branches; its
addresses are counted from the first executable segment or, with --use-offset=0, as linked
(LLVM: llvm/tools/llvm-profgen/PerfReader.cpp writeUnsymbolizedProfile). `simpleperf inject` writes
create_llvm_prof's form for several files, each followed by its build-id and its path in comments
(simpleperf: cmd_inject.cpp, AutoFDOWriter).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lbr2pgo.model.branch_counts import (
    BRANCH,
    END,
    FROM,
    TO,
    BranchCounts,
    aggregate,
    with_unknown_predictions,
)
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources import _address_rows
from lbr2pgo.sources.base import Addresses, ShownShortly, Sniff, SourceFormat, SourceInfo
from lbr2pgo.sources.code_addresses import addresses_of_offsets, are_code, text_base
from lbr2pgo.sources.text_lines import CHUNK_SIZE, LineReader
from lbr2pgo.support.addresses import ImageAddresses, file_offsets, image_addresses
from lbr2pgo.support.arrays import U64, Bools
from lbr2pgo.support.errors import InputError

_NAME = "unsymbolized ranges and branches"

_COUNT = re.compile(rb"\s*\d{1,19}\s*")
_ROW = re.compile(rb"\s*[0-9a-fA-F]+-[0-9a-fA-F]+:\d+\s*")
_CONTEXT = re.compile(rb"\s*\[[^\]]*\]\s*")
_COMMENT = b"//"
_BUILD_ID = re.compile(rb"// build_id: 0x([0-9a-fA-F]+)\s*")
# Blanks are matched in one way only: a line of nothing else must not take quadratic time.
_BEGINNING = re.compile(rb"\s*+(?:\d*+\s*+|[0-9a-fA-F]*+-?[0-9a-fA-F]*+:?\d*+|\[[^\]\n]*+\]?)")

_ROWS_AT_ONCE = 1 << 16
_MOST_SECTIONS = 3


def _sniff(head: bytes) -> Sniff:
    """Judge the first two lines, after the context that stands before them in some files."""
    *lines, rest = [line for line in head.split(b"\n", 4) if line.strip()] or [b""]
    if head.endswith(b"\n") and rest:
        lines, rest = [*lines, rest], b""
    if lines and _CONTEXT.fullmatch(lines[0]):
        lines = lines[1:]
    if lines and not _COUNT.fullmatch(lines[0]):
        return Sniff.NO
    if len(lines) < 2:
        return Sniff.MORE if _BEGINNING.fullmatch(rest) else Sniff.NO
    form = _ROW if int(lines[0]) else _COUNT
    return Sniff.YES if form.fullmatch(lines[1]) else Sniff.NO


@dataclass(slots=True)
class _Section:
    """Rows of one section: from, to, count, u64[n, 3] in pieces."""

    wanted: int
    form: int | None = None
    """As `native.address_rows` numbers them; None until the first row shows it."""
    pieces: list[U64] = field(default_factory=list)
    lines: int = 0
    """Lines gone over so far."""

    def rows(self) -> U64:
        return np.concatenate([np.zeros((0, 3), dtype=np.uint64), *self.pieces])

    @property
    def is_full(self) -> bool:
        return self.lines >= self.wanted


@dataclass(frozen=True, slots=True)
class _Tables:
    """What is said of one file: u64[n, 3] each."""

    build_id: str | None
    ranges: U64
    addresses: U64
    branches: U64

    def is_of(self, build_id: str | None) -> bool:
        """Whether it may be of this build; build-ids are padded with zeros to 20 bytes."""
        if self.build_id is None or build_id is None:
            return True
        return self.build_id.rstrip("0") == build_id.rstrip("0")


class _Parser:
    """Goes through the sections, chunk by chunk."""

    def __init__(self, where: str) -> None:
        self.sections: list[_Section] = []
        """Of the current file."""
        self.tables: list[_Tables] = []
        self.losses: Counter[str] = Counter()
        self.has_file_offsets = False
        """Whether the file has create_llvm_prof's three sections, of which the end may lack."""
        self._where = where

    def feed(self, text: bytes, base: int) -> None:
        place = 0
        while place < len(text):
            if not self.sections or self.sections[-1].is_full:
                place = self._start_section(text, place, base)
            else:
                place = self._read_rows(self.sections[-1], text, place)

    def finish(self) -> None:
        """Note what the end of the file cut off."""
        if self.sections or not self.tables:
            self._end_file(None)

    def _end_file(self, build_id: str | None) -> None:
        from lbr2pgo.sources._address_rows import ADDRESS

        missing = sum(section.wanted - section.lines for section in self.sections)
        self.losses[Doubt("rows missing at the end of the file")] += missing
        if len(self.sections) > 2 or any(s.form == ADDRESS for s in self.sections):
            self.has_file_offsets = True
        tables = [section.rows() for section in self.sections]
        nothing = np.zeros((0, 3), dtype=np.uint64)
        if not self.has_file_offsets:
            tables.insert(1, nothing)
        ranges, addresses, branches = [*tables, nothing, nothing, nothing][:3]
        self.tables.append(_Tables(build_id, ranges, addresses, branches))
        self.sections = []

    def _start_section(self, text: bytes, place: int, base: int) -> int:
        """Read the line with a section's count; lines that are none are told."""
        line, after = _line(text, place)
        if line.startswith(_COMMENT):
            build_id = _BUILD_ID.fullmatch(line)
            if build_id and self.sections:
                self._end_file(build_id[1].decode().lower())
            return after
        if _CONTEXT.fullmatch(line):
            raise _context_error(self._where)
        if _COUNT.fullmatch(line) and len(self.sections) < _MOST_SECTIONS:
            self.sections.append(_Section(int(line)))
        elif not self.sections and line.strip():
            what = "the first line is no number of ranges"
            raise InputError(what, where=f"{self._where}@{base + place:#x}", cure=_CURE)
        elif line.strip():
            self.losses[Doubt("lines after the last section")] += 1
        return after

    def _read_rows(self, section: _Section, text: bytes, place: int) -> int:

        if section.form is None:
            section.form = self._form(_line(text, place)[0])
        rows = np.zeros((min(section.wanted - section.lines, _ROWS_AT_ONCE), 3), dtype=np.uint64)
        place, lines, found = _address_rows.read_rows(text, place, section.form, rows)
        section.lines += lines
        section.pieces.append(rows[:found].copy())
        self.losses[Doubt("rows that can't be read")] += lines - found
        return place

    def _form(self, line: bytes) -> int:
        """The form of a section's rows, as its first row and its place in the file show it."""
        if b"->" in line or len(self.sections) > 2:
            return _address_rows.BRANCH
        if b"-" in line or len(self.sections) == 1:
            return _address_rows.RANGE
        return _address_rows.ADDRESS


_CURE = "Give the file as create_llvm_prof --profiler=text or llvm-profgen wrote it."


def _context_error(where: str) -> InputError:
    return InputError(
        "a context-sensitive profile, whose ranges stand below calling contexts",
        where=where,
        cure="Write it without contexts: llvm-profgen --skip-symbolization --ignore-stack-samples.",
    )


def _line(text: bytes, place: int) -> tuple[bytes, int]:
    """The line at a place, and where the next one starts."""
    end = text.find(b"\n", place)
    if end < 0:
        end = len(text)
    return text[place:end], min(end + 1, len(text))


class AutoFdoText(ShownShortly):
    """A file of ranges and branches. Implements `CountSource`."""

    def __init__(self, path: Path, chunk_size: int = CHUNK_SIZE) -> None:
        reader, parser = LineReader(path, chunk_size), _Parser(str(path))
        for text, base in reader.chunks():
            parser.feed(text, base)
        parser.finish()
        self._tables = parser.tables
        self._has_file_offsets = parser.has_file_offsets
        self._losses = parser.losses
        addresses = sum(len(tables.addresses) for tables in self._tables)
        self._losses["sampled addresses, which tell of no branch"] = addresses
        self._losses[Doubt("bytes in lines too long to be read")] = reader.overlong_bytes
        self._health: Counter[str] = Counter()
        writer = "create_llvm_prof" if self._has_file_offsets else "llvm-profgen"
        self.info = SourceInfo(str(path), _NAME, Addresses.IMAGE, details={"written by": writer})
        """The file's name, and which tool's form it has."""

    def health(self) -> Mapping[str, int]:
        """What can't be read, and what the last `counts` left out."""
        return dict(self._losses + self._health)

    def counts(self, layout: ImageLayout) -> BranchCounts:
        """The counts of the image with this layout, which is the one that the file is about.

        Raises InputError if the file says of which builds it is, and this is none of them.
        """
        own = [tables for tables in self._tables if tables.is_of(layout.build_id)]
        if not own:
            known = ", ".join(tables.build_id or "" for tables in self._tables)
            raise InputError(
                f"holds no counts of {layout.path} (build-id {layout.build_id})",
                where=self.info.path,
                cure=f"Give the binary that was recorded; the file is of {known}.",
            )
        all_ranges = np.concatenate([tables.ranges for tables in own])
        all_branches = np.concatenate([tables.branches for tables in own])
        base = self._base(layout, np.concatenate([all_ranges[:, :2], all_branches[:, :2]]))
        ranges, ranges_known = self._place(all_ranges, layout, base)
        branches, branches_known = self._place(all_branches, layout, base)
        run = np.where(ranges_known.all(axis=1), TO | END, 0).astype(np.uint8)
        bits = np.where(branches_known, (FROM, TO), 0).sum(axis=1)
        edge = np.where(bits > 0, bits | BRANCH, 0).astype(np.uint8)
        lost = np.count_nonzero(run == 0) + np.count_nonzero(edge == 0)
        self._health = Counter({"ranges and branches outside the image": int(lost)})
        is_run, is_edge = run > 0, edge > 0
        count = np.concatenate([all_ranges[is_run, 2], all_branches[is_edge, 2]])
        nothing = np.zeros(len(count), dtype=np.uint64)
        nowhere = image_addresses(nothing)
        runs, edges = ranges[is_run], branches[is_edge]
        counts = aggregate(
            from_=np.concatenate([nowhere[: len(runs)], edges[:, 0]]),
            to=np.concatenate([runs[:, 0], edges[:, 1]]),
            end=np.concatenate([runs[:, 1], nowhere[: len(edges)]]),
            known=np.concatenate([run[is_run], edge[is_edge]]),
            count=count,
            mispredicted=nothing,
            build_id=layout.build_id,
        )
        return with_unknown_predictions(counts)

    def _place(self, rows: U64, layout: ImageLayout, base: int) -> tuple[ImageAddresses, Bools]:
        """Image addresses (n, 2) of rows, and which of them are code."""
        if self._has_file_offsets:
            return addresses_of_offsets(layout, file_offsets(rows[:, :2]))
        addresses = image_addresses(rows[:, :2] + np.uint64(base))
        return addresses, are_code(layout, addresses)

    def _base(self, layout: ImageLayout, used: U64) -> int:
        """What to add to llvm-profgen's addresses, which may be offsets or addresses as linked.

        The file does not say; taken is what puts more of them into code, or offsets, its default.
        """
        base = text_base(layout)
        as_offsets, as_linked = (
            np.count_nonzero(are_code(layout, image_addresses(used + np.uint64(each))))
            for each in (base, 0)
        )
        return base if as_offsets >= as_linked else 0


FORMAT = SourceFormat(
    name=_NAME,
    summary="ranges and branches of create_llvm_prof --profiler=text or llvm-profgen "
    "--skip-symbolization",
    references=(
        "google/autofdo: sample_reader.cc TextSampleReaderWriter",
        "LLVM: llvm/tools/llvm-profgen/PerfReader.cpp UnsymbolizedProfileReader",
    ),
    sniff=_sniff,
    open=AutoFdoText,
)
