"""Instructions that a sample profile speaks of, whatever names their places, and their counts."""

from __future__ import annotations

import numpy as np

from lbr2pgo.model.branch_counts import TO
from lbr2pgo.profiles.llvm.entry_calls import EXTERNAL, EntryCalls
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import ByteRanges, PlacedAddresses
from lbr2pgo.support.arrays import U8, U64, Bools
from lbr2pgo.support.distinct import among, distinct
from lbr2pgo.support.sums import multiplied
from lbr2pgo.support.tables import table


def starts(flow: Flow) -> PlacedAddresses:
    """Where a function may have begun to run: starts of valid runs, and targets of branches."""
    runs = flow.judged.runs.start[flow.judged.valid]
    return distinct(np.concatenate((runs, flow.branches.to[flow.branches.known & TO != 0])))


@table
class CountedCode:
    """Instructions that the profile speaks of, ordered by address; columns of equal length."""

    address: PlacedAddresses
    size: U8
    """Bytes."""
    count: U64
    is_body: Bools
    """False for instructions that are only the place of a call."""

    def weight(self) -> U64:
        """Counts times bytes."""
        return multiplied(self.count, self.size.astype(np.uint64))


def counted_code(
    flow: Flow, program: Program, functions: DwarfFunctions, calls: EntryCalls
) -> CountedCode:
    """What ran, all of the functions that ran, and where calls were made."""
    ran = functions.containing(distinct(flow.judged.runs.start[flow.judged.valid]))
    owners = distinct(functions.function[ran[ran >= 0]])
    rows_of_owners = np.flatnonzero(among(functions.function, owners))
    ranges = functions.ranges.take(rows_of_owners)
    sources = calls.source[calls.has_source]
    table = program.instructions_with(distinct(np.concatenate((ranges.start, sources))))
    count = flow.executed
    if table is not flow.instructions:
        count = np.zeros(len(table), dtype=np.uint64)
        count[table.index_of(flow.instructions.address)] = flow.executed
    is_body = (count > 0) | _in_ranges(table.address, ranges)
    called = table.index_of(sources)
    is_told = is_body.copy()
    is_told[called[called >= 0]] = True
    rows = slice(None) if is_told.all() else is_told  # of a large program columns are large
    code = CountedCode(table.address[rows], table.size[rows], count[rows], is_body[rows])
    return _with_external(code) if EXTERNAL in sources else code


def _with_external(code: CountedCode) -> CountedCode:
    """The same with a place for calls from outside, below all code."""
    return CountedCode(
        address=np.append(EXTERNAL, code.address),
        size=np.append(np.uint8(0), code.size),
        count=np.append(np.uint64(0), code.count),
        is_body=np.append(False, code.is_body),
    )


def _in_ranges(addresses: PlacedAddresses, ranges: ByteRanges) -> Bools:
    """Which ascending addresses lie in any of the ranges, which may overlap."""
    depth = np.zeros(len(addresses) + 1, dtype=np.int32)
    np.add.at(depth, np.searchsorted(addresses, ranges.start), 1)
    np.add.at(depth, np.searchsorted(addresses, ranges.end), -1)
    return np.cumsum(depth[:-1], dtype=np.int32) > 0


def located(flow: Flow, addresses: PlacedAddresses) -> Bools:
    """Which runs cover at least one of the instructions at these addresses."""
    is_located = np.zeros(len(flow.instructions), dtype=np.bool_)
    place = flow.instructions.index_of(addresses)
    is_located[place[place >= 0]] = True
    return covering_any(flow, is_located)


def covering_any(flow: Flow, is_meant: Bools) -> Bools:
    """Which runs cover at least one of the flow's instructions that are meant."""
    before = np.zeros(len(is_meant) + 1, np.int32)
    np.cumsum(is_meant, out=before[1:])
    judged = flow.judged
    known = judged.valid
    found = np.zeros(len(known), dtype=np.bool_)
    found[known] = before[judged.last[known] + 1] > before[judged.first[known]]
    return found
