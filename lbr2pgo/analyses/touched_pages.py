"""Which pages of code ran, and when a process first needed each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.evidence.first_times import FirstTimes
from lbr2pgo.program.process import Part, Process
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import SLOT_SIZE, PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import F64, I64, U64
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.tables import Tabular, table

PAGE = 4096
_PAGE_BITS = 12


@table
class SeenEnds(Tabular):
    """Ends of branches in processes that ran them; (n,) each, in the order in which they ran."""

    address: PlacedAddresses
    since: F64
    """Milliseconds of its process until it was first seen."""
    until: F64
    """The same until it was last seen."""
    part: F64
    """The part of its process's time that this is; 1 where the process had no time."""


@table
class CodeSections(Tabular):
    """Sections of code of all files; (s,) each, ascending."""

    start: PlacedAddresses
    end: PlacedAddresses
    names: tuple[tuple[str, str], ...]
    """Of the file and of the section; no name stands for code in no section."""

    def of(self, addresses: PlacedAddresses) -> I64:
        """The section of each address."""
        return last_at_or_below(self.start, addresses)

    def pages(self, section: int) -> int:
        """How many pages a section is in."""
        start, end = int(self.start[section]), int(self.end[section])
        return -(-end // PAGE) - start // PAGE


@table
class TouchedPages(Tabular):
    """Pages in which code ran; (n,) each, ascending."""

    address: PlacedAddresses
    """Where a branch first led or left there, or else the first instruction that ran."""
    since: F64
    """Milliseconds until it did."""
    section: I64
    """By its place in `CodeSections`."""


def seen_ends(times: FirstTimes) -> SeenEnds:
    """When ends of branches ran, counted from the first sample of their process."""
    process = times.process
    begun = np.full(process.max(initial=-1) + 1, np.iinfo(np.uint64).max)
    np.minimum.at(begun, process, times.time)
    ended = np.zeros(len(begun), np.uint64)
    np.maximum.at(ended, process, times.last)
    order = np.lexsort((times.step, times.time - begun[process]))
    process = process[order]
    first, last = times.time[order] - begun[process], times.last[order] - begun[process]
    whole = (ended - begun)[process]
    part = np.where(whole > 0, last / np.maximum(whole, 1), 1.0)
    return SeenEnds(times.address[order], first / 1e6, last / 1e6, part)


def code_sections(program: Program) -> CodeSections:
    """Of each file, behind a row for what is in no section."""
    alone = Part(program, 0, Path(program.image.path).name)
    parts = program.parts if isinstance(program, Process) else (alone,)
    rows = [row for part in parts for row in _code_of(part)]
    start, end = (placed_addresses(np.array([row[i] for row in rows], np.uint64)) for i in (0, 1))
    return CodeSections(start, end, tuple(row[2] for row in rows))


def _code_of(part: Part) -> Iterator[tuple[int, int, tuple[str, str]]]:
    base = part.slot * SLOT_SIZE
    yield base, base, (part.name, "")
    code = (each for each in part.program.image.sections if each.is_code and each.size)
    for each in sorted(code, key=lambda section: section.address):
        yield base + each.address, base + each.end, (part.name, each.name)


def touched_pages(evidence: Evidence, seen: SeenEnds, sections: CodeSections) -> TouchedPages:
    """All pages that instructions which ran have bytes in."""
    code = evidence.flow.instructions
    rows = evidence.rows_of(code.address)
    rows = rows[evidence.flow.executed[rows] > 0]
    ran = np.concatenate([code.address[rows], code.end_of(rows) - np.uint64(1)])
    page, first = np.unique(page_of(ran), return_index=True)
    of_end, earliest = np.unique(page_of(seen.address), return_index=True)
    place = np.minimum(np.searchsorted(of_end, page), len(of_end) - 1)
    has_end = of_end[place] == page
    address = placed_addresses(np.where(has_end, seen.address[earliest[place]], ran[first]))
    # What no branch led to or left was run into from the page before.
    before = np.maximum.accumulate(np.where(has_end, np.arange(len(page)), 0))
    since = seen.since[earliest[place[before]]]
    return TouchedPages(address, since, sections.of(address))


def ran_pages(flow: Flow) -> U64:
    """The numbers (n,) of pages that instructions which ran begin in."""
    return distinct(page_of(flow.instructions.address[flow.executed > 0]))


def page_of(addresses: U64 | PlacedAddresses) -> U64:
    """The number of the page (n,) that each address is in."""
    number: U64 = addresses >> np.uint64(_PAGE_BITS)
    return number
