"""The hottest chains of blocks: how long, how likely, and what a straight layout would save."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lbr2pgo.analyses.chains import executed_chains, plan_paths, saved_branches
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.flow_graph import flow_graph, hottest_regions
from lbr2pgo.analyses.intervals import wilson
from lbr2pgo.analyses.table import Column, Table, Unit, Value, empty
from lbr2pgo.evidence.collector import Finding
from lbr2pgo.evidence.path_counts import PATHS, PathCounts, paths_along
from lbr2pgo.support.addresses import ImageAddresses, in_file

NAME = "hyperblocks"
TITLE = "Hyperblocks"

_COLUMNS = (
    Column("function_share", "function's share", Unit.SHARE),
    Column("share", "share in function", Unit.SHARE),
    Column("path_share", "whole way", Unit.SHARE),
    Column("path_low", "at least", Unit.SHARE),
    Column("path_high", "at most", Unit.SHARE),
    Column("blocks", "blocks", Unit.COUNT),
    Column("bytes", "bytes", Unit.COUNT),
    Column("executions", "executions", Unit.COUNT),
    Column("paths", "seen whole", Unit.COUNT),
    Column("likelihood", "by its edges", Unit.SHARE),
    Column("pieces", "pieces", Unit.COUNT),
    Column("saved", "taken branches saved", Unit.COUNT),
    Column("function", "function", Unit.FUNCTION),
    Column("line", "source line", Unit.LOCATION),
    Column("address", "address", Unit.ADDRESS),
    Column("chain", "blocks of the chain", Unit.TEXT),
)
_NOTE = (
    "Executions is how often the chain was entered at its first block; whole way is the part of "
    "these that went on to its last block, as the stacks show it, with an interval for independent "
    "observations; by its edges is how likely that is if each block decides by itself."
)
_NO_PATHS = "The input holds no samples, so how many went the whole way of a chain is not known."


def paths_followed(known: Evidence, top: int | None = TOP) -> Finding[PathCounts]:
    """What this asks the samples for: how they went along the chains of the hottest functions."""
    return paths_along(plan_paths(known, top))


def hyperblocks(evidence: Evidence, top: int | None = TOP) -> Table:
    """The hottest chains of the hottest functions."""
    if not evidence.flow.executed.any():
        return empty(NAME, TITLE, _COLUMNS, *evidence.run_notes())
    found = [
        row
        for region, share in hottest_regions(evidence, top)
        for row in _rows(evidence, region, share)
    ]
    found.sort(key=lambda row: (-row.heat, row.address))
    rows = tuple(row.values for row in found[:top])
    no_paths = () if evidence.limits.has_samples else (_NO_PATHS,)
    notes = (_NOTE, *no_paths, *evidence.line_notes())
    return Table(NAME, TITLE, _COLUMNS, rows, notes, len(found))


@dataclass(frozen=True, slots=True)
class _Row:
    heat: float
    """The chain's part of all instructions executed."""
    address: int
    values: tuple[Value, ...]


def _rows(evidence: Evidence, region: int, function_share: float) -> Iterator[_Row]:
    graph = flow_graph(evidence, region)
    cfg = graph.cfg
    weight = graph.block_count * graph.sizes
    total = float(weight.sum())
    for chain in executed_chains(evidence, graph):
        blocks, edges = np.array(chain.blocks), np.array(chain.edges)
        starts = cfg.block_start[blocks]
        address = int(starts[0])
        share = float(weight[blocks].sum()) / total
        pieces = 1 + int((cfg.block_end[blocks[:-1]] != starts[1:]).sum())
        *path, times = _paths(evidence, starts)
        values = (
            function_share,
            share,
            *path,
            len(blocks),
            int(graph.sizes[blocks].sum()),
            int(graph.block_count[blocks[0]]),
            times,
            float(np.prod(graph.edge_share[edges])),
            pieces,
            saved_branches(graph, chain),
            evidence.names.region(region),
            evidence.names.lines(starts[:1])[0],
            address,
            " ".join(f"{in_file(start):#x}" for start in starts.tolist()),
        )
        yield _Row(function_share * share, address, values)


def _paths(evidence: Evidence, starts: ImageAddresses) -> tuple[Value, Value, Value, Value]:
    """Which part of the executions of a chain went to its end, its interval, and how many did.

    The interval is that of as many observations as the rarest step has, which is too wide rather
    than too narrow.
    """
    rows = evidence.flow.instructions.index_of(starts)
    paths = evidence.found(PATHS)
    if paths is None or paths.slot[rows[0]] < 0:
        return None, None, None, None
    known, went_on = paths.along(rows)
    if not known.all():
        return None, None, None, 0  # no stack reaches so far
    share = np.prod(went_on / known, keepdims=True)
    low, high = wilson(share, known.min(keepdims=True).astype(np.float64))
    return float(share[0]), float(low[0]), float(high[0]), int(went_on[-1])
