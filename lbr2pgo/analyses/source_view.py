"""A function's figures by source line, in whatever file: its own, or that of inlined code."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.latency import valid_cycles
from lbr2pgo.analyses.outcomes import estimate
from lbr2pgo.model.branch_counts import FROM, sum_by
from lbr2pgo.model.branch_stacks import MISSING, SATURATED
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import F64, I64, U64
from lbr2pgo.support.distinct import distinct_pairs, place_of
from lbr2pgo.support.tables import Tabular, table


@table
class LineFigures(Tabular):
    """Source lines of one function's code; columns of equal length."""

    file: I64
    """Index into `files`."""
    line: I64
    executed: U64
    """As LLVM counts a line: the most of its instructions."""
    taken: U64
    """Of its conditional branches."""
    not_taken: U64
    mispredicted: U64
    cycles: F64
    """Those of each fall-through are spread evenly over its instructions."""
    files: tuple[str, ...]
    """Paths; that of the function's own beginning first, then by how much ran."""
    has_cycles: bool
    says_predictions: bool

    def of_file(self, number: int) -> Iterator[int]:
        """Rows of a file, by line."""
        rows = np.flatnonzero(self.file == number)
        yield from rows[np.argsort(self.line[rows], kind="stable")].tolist()


def line_figures(evidence: Evidence, region: int) -> LineFigures:
    """What each source line of a function did; code without a line, or of line 0, is in none."""
    code = evidence.flow.instructions
    rows = evidence.of_function(region).rows_of(code.address)
    lines = evidence.names.raw_lines(code.address[rows])
    has_line = (lines.file >= 0) & (lines.line > 0)
    rows, file = rows[has_line], lines.file[has_line].astype(np.int64)
    of_file, line, group = distinct_pairs(file, lines.line[has_line].astype(np.int64))
    size = len(line)
    executed = np.zeros(size, np.uint64)
    np.maximum.at(executed, group, evidence.flow.executed[rows])
    known, misses = estimate(evidence.whole), evidence.whole.once(_mispredicted)
    columns = (
        _at(code.address[rows], known.address, known.taken),
        _at(code.address[rows], known.address, known.not_taken),
        _at(code.address[rows], *misses),
        cycles_by_instruction(evidence.whole)[rows],
    )
    taken, not_taken, missed, cycles = (_sums(each, group, size) for each in columns)
    first = _first_file(evidence, region, rows, file)
    order = _by_heat(of_file, executed, len(lines.files), first)
    return LineFigures(
        file=np.argsort(order)[of_file],
        line=line,
        executed=executed,
        taken=taken.astype(np.uint64),
        not_taken=not_taken.astype(np.uint64),
        mispredicted=missed.astype(np.uint64),
        cycles=cycles,
        files=tuple(lines.files[i] for i in order.tolist()),
        has_cycles=bool(cycles.any()),
        says_predictions=evidence.whole.says_predictions,
    )


def _sums(values: F64, group: I64, size: int) -> F64:
    return np.bincount(group, values, size).astype(np.float64)


def _at(addresses: PlacedAddresses, known: PlacedAddresses, values: U64) -> F64:
    """(n,): the values of known addresses (k,), which ascend; 0 at others."""
    at = place_of(addresses, known)
    return np.append(values, np.uint64(0))[at].astype(np.float64)


def _mispredicted(evidence: Evidence) -> tuple[PlacedAddresses, U64]:
    """Addresses of branches, ascending, and how often each was mispredicted."""
    branches = evidence.recorded
    known = np.flatnonzero(branches.known & FROM != 0)
    (address,), (missed,) = sum_by((branches.from_[known],), (branches.mispredicted[known],))
    return placed_addresses(address), missed


def cycles_by_instruction(evidence: Evidence) -> F64:
    """(m,): an even part of every run that covers each instruction."""
    return evidence.once(_cycles)


def _cycles(evidence: Evidence) -> F64:
    cycles, code = valid_cycles(evidence), evidence.flow.instructions
    is_measured = (cycles.cycles != MISSING) & (cycles.cycles != SATURATED)
    cycles = cycles.take(np.flatnonzero(is_measured))
    first, last = code.index_of(cycles.start), code.index_of(cycles.end)
    part = cycles.cycles.astype(np.float64) * cycles.count / (last - first + 1)
    begins = _sums(part, first, len(code) + 1)
    ends = _sums(part, last + 1, len(code) + 1)
    at_each: F64 = np.cumsum(begins - ends)[:-1]
    return np.where(at_each > 1e-6, at_each, 0.0)  # sums of floats leave crumbs


def _first_file(evidence: Evidence, region: int, rows: I64, file: I64) -> int:
    """The file that the function begins in; -1 where none is known."""
    start = evidence.program.regions.start[region]
    at = np.flatnonzero(evidence.flow.instructions.address[rows] >= start)[:1]
    return int(file[at[0]]) if len(at) else -1


def _by_heat(file: I64, executed: U64, files: int, first: int) -> I64:
    heat = np.bincount(file, executed.astype(np.float64), files)
    if first >= 0:
        heat[first] = np.inf
    order: I64 = np.argsort(-heat, kind="stable")
    return order
