"""A function's control flow as a networkx graph, with all that a recording tells of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.analyses.confidence import wilson
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.flow_graph import FlowGraph, flow_graph
from lbr2pgo.analyses.function_view import instruction_texts, kind_name
from lbr2pgo.analyses.latency import timed_blocks
from lbr2pgo.analyses.outcomes import estimate
from lbr2pgo.analyses.places import PlaceNames
from lbr2pgo.analyses.table import SIMULATED
from lbr2pgo.program.code.cfg import EdgeKind, FunctionCFG
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.block_counts import on_edges
from lbr2pgo.support.addresses import in_file, placed_array
from lbr2pgo.support.arrays import F64, U64, Bools
from lbr2pgo.support.distinct import place_of

if TYPE_CHECKING:
    import networkx as nx

PROBABILITY = ("probability", "probability_low", "probability_high")
_INDEPENDENT = "Intervals of indirect jumps take their observations as independent."


def code_network(program: Program, names: PlaceNames, cfg: FunctionCFG) -> nx.DiGraph:
    """What the code tells without a recording; see `lbr2pgo.flow_graph`."""
    import networkx as nx

    place = names.of(program.regions.start[[cfg.function]])
    file = PurePath(program.image.path).name if place.file is None else place.file[0]
    graph = nx.DiGraph(function=place.function[0], file=file)
    texts = _texts(program, names, cfg)
    entries = set(cfg.entries.tolist())
    ends = (in_file(end) for end in cfg.block_end.tolist())
    for block, (start, end) in enumerate(zip(_starts(cfg), ends, strict=True)):
        lines, instructions = texts[block]
        graph.add_node(
            start,
            address=start,
            end=end,
            is_entry=block in entries,
            lines=tuple(dict.fromkeys(filter(None, lines))),
            instructions=tuple(instructions),
        )
    kinds = defaultdict(list)
    for pair, kind in zip(_pairs(cfg), cfg.edge_kind.tolist(), strict=True):
        kinds[pair].append(kind_name(kind))
    graph.add_edges_from((*pair, {"kind": "+".join(each)}) for pair, each in kinds.items())
    return graph


def flow_network(evidence: Evidence, region: int) -> nx.DiGraph:
    """The graph of a region of the program, fragments included; see `lbr2pgo.flow_graph`."""
    import networkx as nx

    weights = flow_graph(evidence, region)
    cfg = weights.cfg
    graph = code_network(evidence.program, evidence.names, cfg)
    has_runs = not evidence.run_notes()
    is_fall = cfg.edge_kind == EdgeKind.FALLTHROUGH
    if has_runs:
        counts = dict(zip(_starts(cfg), weights.block_count.tolist(), strict=True))
        nx.set_node_attributes(graph, counts, "count")
    nx.set_node_attributes(graph, dict(_cycles(evidence, region, cfg)), "cycles")
    _set_on_edges(graph, cfg, "count", weights.edge_count, has_runs | ~is_fall)
    if evidence.says_predictions:
        missed = on_edges(evidence.flow, cfg, evidence.flow.branches.mispredicted)
        _set_on_edges(graph, cfg, "mispredicted", missed, ~is_fall)
    for name, column in zip(PROBABILITY, _probabilities(evidence, weights), strict=True):
        _set_on_edges(graph, cfg, name, column, ~np.isnan(column))
    graph.graph["notes"] = tuple(_notes(evidence, cfg))
    return graph


def _starts(cfg: FunctionCFG) -> list[int]:
    """The key of each block: its address, as the file is linked for."""
    return [in_file(start) for start in cfg.block_start.tolist()]


def _pairs(cfg: FunctionCFG) -> list[tuple[int, int]]:
    starts = _starts(cfg)
    ends = zip(cfg.edge_source.tolist(), cfg.edge_target.tolist(), strict=True)
    return [(starts[source], starts[target]) for source, target in ends]


def _texts(
    program: Program, names: PlaceNames, cfg: FunctionCFG
) -> list[tuple[list[str | None], list[str]]]:
    """Lines and instructions of each block."""
    (found,) = instruction_texts(program, [cfg.function])
    addresses = placed_array(address for address, _ in found)
    texts: list[tuple[list[str | None], list[str]]] = [([], []) for _ in range(len(cfg))]
    columns = (cfg.block_of(addresses).tolist(), names.lines(addresses), found)
    for block, line, (_, words) in zip(*columns, strict=True):
        if block >= 0:
            texts[block][0].append(line)
            texts[block][1].append(words)
    return texts


def _cycles(evidence: Evidence, region: int, cfg: FunctionCFG) -> Iterator[tuple[int, float]]:
    """Times of runs that are one block."""
    last = dict(zip(cfg.block_start.tolist(), cfg.block_last.tolist(), strict=True))
    for run in timed_blocks(evidence.of_function(region), None):
        mean = run.times.trimmed_mean
        if last.get(run.start) == run.end and mean is not None:
            yield in_file(run.start), mean


def _probabilities(evidence: Evidence, weights: FlowGraph) -> F64:
    """(3, m): how likely each edge is where its source ends, and bounds; NaN where not known.

    Of conditional branches as in `outcomes`; what a block can't but do is certain.
    """
    cfg, source = weights.cfg, weights.cfg.edge_source
    code = evidence.program.instructions_for(cfg.block_start)
    kind = code.kind[code.index_of(cfg.block_last[source])]
    found = estimate(evidence.whole)
    row = place_of(cfg.block_last[source], found.address)
    taken = np.stack((found.probability, found.low, found.high))
    taken = np.column_stack((taken, np.full(3, np.nan)))[:, row]
    past = 1 - taken[[0, 2, 1]]
    likely = np.where(cfg.edge_kind == EdgeKind.FALLTHROUGH, past, taken)
    left: F64 = np.bincount(source, weights.edge_count, len(cfg))[source].astype(np.float64)
    by_count = np.stack((weights.edge_share, *wilson(weights.edge_share, left)))
    likely = np.where(kind == Kind.INDIRECT_JUMP, by_count, likely)
    return np.where(np.isin(kind, (Kind.COND, Kind.INDIRECT_JUMP)), likely, 1.0)


def _set_on_edges(
    graph: nx.DiGraph, cfg: FunctionCFG, name: str, values: U64 | F64, known: Bools
) -> None:
    """Set what is known; of a branch to the block behind it, taken and not taken are one edge."""
    for (source, target), value, is_known in zip(
        _pairs(cfg), values.tolist(), known.tolist(), strict=True
    ):
        if is_known:
            edge = graph.edges[source, target]
            total = edge.get(name, 0) + value
            edge[name] = min(total, 1.0) if name in PROBABILITY else total


def _notes(evidence: Evidence, cfg: FunctionCFG) -> Iterator[str]:
    """What can't be known, and how to read the numbers."""
    yield from evidence.branch_notes()
    yield from evidence.run_notes()
    yield from evidence.line_notes()
    yield from evidence.sample_notes()
    if (cfg.edge_kind == EdgeKind.INDIRECT).any():
        yield _INDEPENDENT
    if evidence.limits.is_simulated:
        yield SIMULATED
