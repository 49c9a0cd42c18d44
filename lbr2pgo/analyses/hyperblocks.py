"""The hottest chains of blocks: how long, how likely, and what a straight layout would save."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.analyses.chains import Chain, executed_chains, plan_paths, saved_branches, went
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.flow_graph import FlowGraph, flow_graphs, hottest_regions
from lbr2pgo.analyses.function_view import texts_in
from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Table, Unit, Value, build, empty
from lbr2pgo.evidence.collector import Finding
from lbr2pgo.evidence.path_counts import PATHS, PathCounts, paths_along
from lbr2pgo.support.addresses import ByteRanges, placed_array, shown
from lbr2pgo.support.dataclass import dataclass

NAME = "hyperblocks"
TITLE = "Hyperblocks"

_COLUMNS = (
    Column("function_share", "function's share", Unit.SHARE),
    Column("share", "share in function", Unit.SHARE, FIGURE),
    Column("path_share", "whole way", Unit.SHARE, FIGURE),
    Column("path_low", "at least", Unit.SHARE, SPARE),
    Column("path_high", "at most", Unit.SHARE, SPARE),
    Column("blocks", "blocks", Unit.COUNT),
    Column("bytes", "bytes", Unit.COUNT, SPARE),
    Column("executions", "executions", Unit.COUNT),
    Column("paths", "seen whole", Unit.COUNT),
    Column("likelihood", "by its edges", Unit.SHARE, SPARE),
    Column("pieces", "pieces", Unit.COUNT),
    Column("saved", "taken branches saved", Unit.COUNT, FIGURE),
    Column("function", "function", Unit.FUNCTION, FIGURE),
    Column("line", "source line", Unit.LOCATION, FIGURE),
    Column("address", "address", Unit.ADDRESS),
    Column("chain", "blocks of the chain", Unit.TEXT, SPARE),
    Column("instructions", "instructions of each", Unit.TEXT, SPARE),
)
_CODE_COLUMNS = (
    Column("block", "block", Unit.COUNT),
    Column("count", "executed", Unit.COUNT, FIGURE),
    Column("address", "address", Unit.ADDRESS),
    Column("instruction", "instruction", Unit.TEXT, FIGURE),
    Column("line", "source line", Unit.LOCATION),
)
_NOTE = (
    "Executions is how often the chain was entered at its first block; whole way is the part of "
    "these that went on to its last block, as the stacks show it, with an interval for independent "
    "observations; by its edges is how likely that is if each block decides by itself."
)
_NO_PATHS = "The input holds no samples, so how many went the whole way of a chain is not known."


def paths_followed(known: Evidence, top: int | None = TOP) -> Finding[PathCounts]:
    """What this asks the samples for: how they went along the chains of the hottest functions."""
    return paths_along(plan_paths(known, top), PATHS)


def hyperblocks(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """The hottest chains of the hottest functions, and the code of the hottest one."""
    if not evidence.flow.executed.any():
        return (empty(NAME, TITLE, _COLUMNS, *evidence.run_notes()),)
    hottest = hottest_regions(evidence, top)
    graphs = flow_graphs(evidence, [region for region, _ in hottest])
    found = [
        row
        for (region, share), graph in zip(hottest, graphs, strict=True)
        for row in _rows(evidence, region, share, graph)
    ]
    found.sort(key=lambda row: (-row.heat, row.address))
    kept = found[:top]
    lines = evidence.names.lines(placed_array(row.address for row in kept))
    rows = tuple(_values(evidence, *each) for each in zip(kept, lines, strict=True))
    no_paths = () if evidence.limits.has_samples else (_NO_PATHS,)
    notes = (_NOTE, *no_paths, *evidence.line_notes())
    table = Table(NAME, TITLE, _COLUMNS, rows, notes, len(found))
    return (table, _code(evidence, found[0])) if found else (table,)


def _code(evidence: Evidence, row: _Row) -> Table:
    """A chain's instructions, block after block as it runs."""
    cfg, flow = row.graph.cfg, evidence.flow
    blocks = np.array(row.chain.blocks)
    ranges = ByteRanges(cfg.block_start[blocks], cfg.block_end[blocks])
    lines = [
        (number, *line)
        for number, code in enumerate(texts_in(evidence.program, ranges), 1)
        for line in code
    ]
    addresses = placed_array(address for _, address, _ in lines)
    executed = np.append(flow.executed, np.uint64(0))[flow.instructions.index_of(addresses)]
    numbers, places, texts = zip(*lines, strict=True)
    columns = list(
        zip(
            _CODE_COLUMNS,
            (numbers, executed.tolist(), places, texts, evidence.names.lines(addresses)),
            strict=True,
        )
    )
    name = evidence.names.region(row.region)
    return build(f"{NAME}-code", f"Code of the hottest hyperblock, in {name}", columns)


@dataclass(frozen=True, slots=True)
class _Row:
    """A chain, and where it runs."""

    region: int
    function_share: float
    share: float
    """Of the function's instructions executed."""
    graph: FlowGraph
    chain: Chain

    @property
    def heat(self) -> float:
        """Part of all instructions executed."""
        return self.function_share * self.share

    @property
    def address(self) -> int:
        return int(self.graph.cfg.block_start[self.chain.blocks[0]])


def _rows(
    evidence: Evidence, region: int, function_share: float, graph: FlowGraph
) -> Iterator[_Row]:
    weight = graph.block_count * graph.sizes
    total = float(weight.sum())
    for chain in executed_chains(evidence, graph):
        share = float(weight[list(chain.blocks)].sum()) / total
        yield _Row(region, function_share, share, graph, chain)


def _values(evidence: Evidence, row: _Row, line: str | None) -> tuple[Value, ...]:
    graph, cfg, code = row.graph, row.graph.cfg, evidence.flow.instructions
    blocks, edges = np.array(row.chain.blocks), np.array(row.chain.edges)
    starts = cfg.block_start[blocks]
    first, last = code.index_of(starts), code.index_of(cfg.block_last[blocks])
    *path, times = went(evidence.found(PATHS), first)
    return (
        row.function_share,
        row.share,
        *path,
        len(blocks),
        int(graph.sizes[blocks].sum()),
        int(graph.block_count[blocks[0]]),
        times,
        float(np.prod(graph.edge_share[edges])),
        1 + int((cfg.block_end[blocks[:-1]] != starts[1:]).sum()),
        saved_branches(graph, row.chain),
        evidence.names.region(row.region),
        line,
        row.address,
        " ".join(map(shown, starts.tolist())),
        " ".join(map(str, (last - first + 1).tolist())),
    )
