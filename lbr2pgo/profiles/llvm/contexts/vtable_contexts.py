"""In which calling contexts code loaded from which virtual tables.

A load is of the context that its call stack tells, if the instruction ran in that one. A sample
without a call stack, or with one that lacks a caller, is of all contexts in which the instruction
ran, in proportion to how often: what each gets is rounded so that the sum stays.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.evidence.vtable_loads import FROM_OUTSIDE, UNKNOWN, ReturnPaths, VtableLoads
from lbr2pgo.model.context_counts import Callers, ContextCounts, ContextRuns
from lbr2pgo.native.row_ids import RowSums
from lbr2pgo.profiles.llvm.contexts.columns import location_of
from lbr2pgo.profiles.llvm.vtable_probes import probes_of_loads
from lbr2pgo.program.code.loaded_calls import calls_through
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import ProbeTable
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.tables import Tabular, table, taken


@table
class ContextLoads(Tabular):
    """Columns of equal length."""

    node: I64
    """Of the callers (`ContextCounts`)."""
    ip: PlacedAddresses
    vtable: I64
    """Index into `names`."""
    count: U64
    names: tuple[str, ...]


def loads_by_context(loads: VtableLoads, counts: ContextCounts, program: Program) -> ContextLoads:
    """The loads of instructions that ran in any context."""
    address = distinct(loads.ip)
    at = np.searchsorted(address, loads.ip)
    node, instruction, ran = _ran(address, counts.runs)
    first = np.searchsorted(instruction, at, side="left")
    past = np.searchsorted(instruction, at, side="right")
    told = _nodes(loads.paths, counts.callers, program)[loads.path]
    rows: list[tuple[int, int, int]] = []  # load, node, count
    for load, (begin, end, count) in enumerate(
        zip(first.tolist(), past.tolist(), loads.count.tolist(), strict=True)
    ):
        nodes = node[begin:end].tolist()
        if told[load] in nodes:
            rows.append((load, int(told[load]), count))
        elif nodes:
            shares = shared(count, ran[begin:end].tolist())
            rows += [(load, *each) for each in zip(nodes, shares, strict=True) if each[1]]
    load_of, node_of, count_of = np.array(rows, np.int64).reshape(-1, 3).T
    symbols = distinct(loads.symbol)
    return ContextLoads(
        node_of.copy(), loads.ip[load_of], np.searchsorted(symbols, loads.symbol[load_of]),
        count_of.astype(np.uint64), tuple(program.symbols.names[row] for row in symbols.tolist()),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProbedLoads:
    """Loads that have a pseudo probe; columns of equal length."""

    rows: ContextLoads
    probe: I64
    """Row in the table of probes."""
    location: U64
    """As `location_of` has it."""


def probed_loads(
    loads: ContextLoads, table: ProbeTable, program: Program, debug: DebugInfo
) -> ProbedLoads:
    """The loads that have a probe in the table."""
    address = distinct(loads.ip)
    calls = calls_through(program, address)
    probe = probes_of_loads(table, address, calls, program, debug)
    probe = probe[np.searchsorted(address, loads.ip)]
    known = np.flatnonzero(probe >= 0)
    index = table.index[probe[known]].astype(np.int64)
    location = location_of(index, np.zeros_like(index))
    return ProbedLoads(taken(loads, known), probe[known], location)


def shared(count: int, weights: list[int]) -> list[int]:
    """A count in proportion to weights that are not all 0; the largest remainders get one more.

    >>> shared(10, [1, 1, 1]), shared(3, [2, 0, 5])
    ([4, 3, 3], [1, 0, 2])
    """
    total = sum(weights)
    shares, remainders = zip(*(divmod(count * weight, total) for weight in weights), strict=True)
    found = list(shares)
    largest = sorted(range(len(weights)), key=lambda i: -remainders[i])
    for i in largest[: count - sum(found)]:
        found[i] += 1
    return found


def _ran(address: PlacedAddresses, runs: ContextRuns) -> tuple[I64, I64, U64]:
    """How often each of ascending instructions ran in each node, ordered by instruction."""
    first = np.searchsorted(address, runs.start, side="left")
    last = last_at_or_below(address, runs.end)
    sums = RowSums()
    sums.add_ranges(runs.node.astype(np.uint64), first, last, runs.count)
    node, instruction, _ = sums.rows().astype(np.int64).T
    order = np.lexsort((node, instruction))
    return node[order], instruction[order], sums.counts()[order]


def _nodes(paths: ReturnPaths, callers: Callers, program: Program) -> I64:
    """The node of the calls that each path returns to, -1 where there is none."""
    calls = callers.call[1:]
    code = program.instructions_once(distinct(calls))
    row = code.index_of(calls)
    return_to = np.where(row >= 0, np.append(code.end, 0)[row], 0).tolist()
    below = {
        called: node
        for node, called in enumerate(zip(callers.parent[1:].tolist(), return_to, strict=True), 1)
    }
    found = np.zeros(len(paths.parent), np.int64)
    for path, called in enumerate(
        zip(paths.parent.tolist(), paths.return_to.tolist(), strict=True)
    ):
        if path > FROM_OUTSIDE:
            found[path] = below.get((int(found[called[0]]), called[1]), -1)
    found[UNKNOWN] = -1
    return found
