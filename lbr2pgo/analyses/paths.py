"""The hottest ways through the program across calls and returns: from block to block as they ran.

Blocks are cut behind calls here, so that what is called runs between two of them. They are those
that ran, as branches show them: each begins where some branch led, or behind one. Ways grow as
chains of one function do (`chains`), and samples say how often all of one was gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from lbr2pgo.analyses.chains import Chain, ChainEdges, grown, pieces, went
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.flow_graph import hottest_regions
from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Table, Unit, Value, build, empty
from lbr2pgo.evidence.collector import Finding
from lbr2pgo.evidence.path_counts import CROSSING, ChainPlan, PathCounts, paths_along
from lbr2pgo.evidence.sample_runs import marked_before
from lbr2pgo.model.branch_counts import FROM, TO
from lbr2pgo.program.code.instructions import CALLS, Kind
from lbr2pgo.support.addresses import shown
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.distinct import distinct_pairs
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.tables import table

NAME = "hyperblocks-across-calls"
TITLE = "Paths across calls"
LONGEST = 64
"""Blocks of a path that are written."""
_COLUMNS = (
    Column("share", "share of instructions", Unit.SHARE, FIGURE),
    Column("path_share", "whole way", Unit.SHARE, FIGURE),
    Column("path_low", "at least", Unit.SHARE, SPARE),
    Column("path_high", "at most", Unit.SHARE, SPARE),
    Column("executions", "executions", Unit.COUNT),
    Column("paths", "seen whole", Unit.COUNT),
    Column("blocks", "blocks", Unit.COUNT),
    Column("functions", "functions", Unit.TEXT, FIGURE),
    Column("line", "source line", Unit.LOCATION),
    Column("address", "address", Unit.ADDRESS),
    Column("chain", "blocks of the chain", Unit.TEXT, SPARE),
    Column("instructions", "instructions of each", Unit.TEXT, SPARE),
)
_NOTE = (
    "Blocks end at calls here, so that what was called stands between them. Executions, whole way "
    "and its interval are as of hyperblocks, which stay in one function."
)


@table
class Segments:
    """Blocks that ran, by address; columns of length n."""

    first: I64
    """Rows of the instruction table; so is `last`."""
    last: I64
    count: I64
    """How often each ran."""

    @property
    def sizes(self) -> I64:
        """(n,): instructions of each."""
        size: I64 = self.last - self.first + 1
        return size


def segments(evidence: Evidence) -> Segments:
    """The blocks of all code that ran."""
    flow, code = evidence.flow, evidence.flow.instructions
    starts = _starts(evidence)
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(code))[: len(first)] - 1
    ran = flow.executed[first] > 0
    return Segments(first[ran], last[ran], flow.executed[first[ran]].astype(np.int64))


def _starts(evidence: Evidence) -> Bools:
    """(m,): instructions to which some branch led, and those behind a branch."""
    code, branches = evidence.flow.instructions, evidence.flow.branches
    starts = np.ones(len(code), np.bool_)
    starts[1:] = (code.kind[:-1] != Kind.OTHER) | (np.diff(code.run) != 0)
    target = code.index_of(branches.to[branches.known & TO != 0])
    starts[target[target >= 0]] = True
    return starts


def ways(evidence: Evidence, found: Segments) -> ChainEdges:
    """Ways between blocks: branches that were taken, and executions that went on."""
    flow, code, branches = evidence.flow, evidence.flow.instructions, evidence.flow.branches
    known = branches.known & (FROM | TO) == FROM | TO
    source, target = (code.index_of(end[known]) for end in (branches.from_, branches.to))
    of_source, of_target = (_segment_of(found, rows) for rows in (source, target))
    is_way = (of_source >= 0) & (of_target >= 0)
    is_way &= (source == found.last[of_source]) & (target == found.first[of_target])
    goes_on = np.flatnonzero(
        (found.first[1:] == found.last[:-1] + 1)
        & (code.run[found.first[1:]] == code.run[found.last[:-1]])
        & ~code.ends_line[found.last[:-1]]
        & ~np.isin(code.kind[found.last[:-1]], CALLS)
    )
    last = found.last[goes_on]
    passed = (flow.executed[last] - flow.ended[last]).astype(np.int64)
    sources = np.concatenate([of_source[is_way], goes_on])
    targets = np.concatenate([of_target[is_way], goes_on + 1])
    counts = np.concatenate([branches.count[known][is_way].astype(np.int64), passed])
    source, target, place = distinct_pairs(sources, targets)
    total = np.zeros(len(source), np.int64)
    np.add.at(total, place, counts)
    left = np.bincount(source, total, len(found.first)) if len(total) else np.zeros(0)
    return ChainEdges(source, target, total, total / np.maximum(left[source], 1))


def _segment_of(found: Segments, rows: I64) -> I64:
    at = last_at_or_below(found.first, rows)
    inside = (rows >= 0) & (at >= 0)
    inside[inside] = rows[inside] <= found.last[at[inside]]
    return np.where(inside, at, -1)


def crossing(evidence: Evidence, top: int | None) -> tuple[Segments, list[Chain]]:
    """All blocks, and chains of those of so many of the hottest functions that lead into others."""
    found = segments(evidence)
    if not len(found.first):
        return found, []
    regions = evidence.program.regions
    owner = regions.parent[regions.containing(evidence.flow.instructions.address[found.first])]
    hottest = [region for region, _ in hottest_regions(evidence, top)]
    edges = ways(evidence, found)
    is_hot = np.isin(owner, regions.parent[np.array(hottest, np.int64)])
    kept = np.flatnonzero(is_hot[edges.source] & is_hot[edges.target])
    chosen = ChainEdges(
        edges.source[kept], edges.target[kept], edges.count[kept], edges.share[kept]
    )
    chains = grown(np.where(is_hot, found.count, 0), chosen)
    return found, [chain for chain in chains if len(set(owner[list(chain.blocks)].tolist())) > 1]


def plan(evidence: Evidence, top: int | None = None) -> ChainPlan:
    """What to follow samples along; to it, all code is one function."""
    size = len(evidence.flow.instructions)
    found, chains = crossing(evidence, top)
    slot, slots = np.full(size, -1, np.int32), 1
    for chain in chains:
        slot[found.first[list(chain.blocks)]] = slots + np.arange(len(chain.blocks))
        slots += len(chain.blocks) + 1  # the one between parts it from the next chain
    before = marked_before(_starts(evidence))
    owner, is_entry = np.zeros(before[-1], np.int64), np.zeros(before[-1], np.bool_)
    return ChainPlan(1, slots, before, owner, slot, is_entry)


def paths_followed(known: Evidence, top: int | None = TOP) -> Finding[PathCounts]:
    """What this asks the samples for."""
    return paths_along(plan(known, top), CROSSING)


def paths_across_calls(evidence: Evidence, top: int | None = TOP) -> Table:
    """The hottest paths through several functions, by the instructions in them."""
    if not evidence.flow.executed.any():
        return empty(NAME, TITLE, _COLUMNS, *evidence.run_notes())
    found, chains = crossing(evidence, top)
    paths = evidence.found(CROSSING)
    weight = found.count * found.sizes
    total = max(float(weight.sum()), 1.0)
    parts = []
    for chain in _cut(found, chains, paths):
        blocks = list(chain.blocks)
        names = _functions(evidence, found.first[blocks])
        if len(set(names)) > 1:
            parts.append((float(weight[blocks].sum()) / total, blocks, names))
    parts.sort(key=lambda part: -part[0])
    kept = parts[:top]
    first = found.first[np.array([blocks[0] for _, blocks, _ in kept], np.int64)]
    lines = evidence.names.lines(evidence.flow.instructions.address[first])
    values = [
        _row(evidence, found, *part, line, paths) for part, line in zip(kept, lines, strict=True)
    ]
    columns = [(column, [row[i] for row in values]) for i, column in enumerate(_COLUMNS)]
    notes = (_NOTE, *evidence.line_notes())
    return build(NAME, TITLE, columns, notes=notes, found=len(parts))


def _cut(found: Segments, chains: list[Chain], paths: PathCounts | None) -> Iterator[Chain]:
    for chain in chains:
        if paths is None:
            yield chain
        else:
            yield from pieces(chain, found.first[list(chain.blocks)], paths)


def _functions(evidence: Evidence, rows: I64) -> list[str]:
    """Functions along a path, each as often as it is entered or come back to."""
    names = evidence.names.functions(evidence.flow.instructions.address[rows])
    return [name for name, _ in groupby(names)]


def _row(
    evidence: Evidence,
    found: Segments,
    share: float,
    blocks: list[int],
    names: list[str],
    line: str | None,
    paths: PathCounts | None,
) -> tuple[Value, ...]:
    starts = evidence.flow.instructions.address[found.first[blocks]]
    more = " …" if len(blocks) > LONGEST else ""
    *whole, times = went(paths, found.first[blocks])
    return (
        share,
        *whole,
        int(found.count[blocks[0]]),
        times,
        len(blocks),
        " → ".join(names),
        line,
        int(starts[0]),
        " ".join(map(shown, starts[:LONGEST].tolist())) + more,
        " ".join(map(str, found.sizes[blocks[:LONGEST]].tolist())) + more,
    )
