"""One function's code with its counts, and its control-flow graph with weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.flow_graph import FlowGraph, flow_graphs
from lbr2pgo.analyses.outcomes import estimate
from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Table, Unit, Value
from lbr2pgo.evidence.cycle_counts import CYCLES
from lbr2pgo.evidence.duplicates import DUPLICATES
from lbr2pgo.evidence.effective_samples import SPREAD
from lbr2pgo.evidence.single_branches import SINGLE_BRANCHES
from lbr2pgo.program.code.cfg import EdgeKind
from lbr2pgo.program.code.decode import texts
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ByteRanges, PlacedAddress, PlacedAddresses, placed_array
from lbr2pgo.support.dataclass import dataclass

NAME = "function"
NEEDS = (SINGLE_BRANCHES, SPREAD, DUPLICATES, CYCLES)
"""What it asks the samples for: as `outcomes` does, and for figures by source line."""

_COLUMNS = (
    Column("count", "executed", Unit.COUNT, FIGURE),
    Column("block", "block", Unit.COUNT, SPARE),
    Column("address", "address", Unit.ADDRESS),
    Column("instruction", "instruction", Unit.TEXT, FIGURE),
    Column("line", "source line", Unit.LOCATION),
    Column("taken_share", "taken", Unit.SHARE, FIGURE),
    Column("leads_to", "leads to", Unit.TEXT),
)


Lines = list[tuple[PlacedAddress, str]]
"""Instructions: address and text of each."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """A function's code as a table, and its graph."""

    name: str
    start: PlacedAddress
    code: Table
    graph: FlowGraph


def function_view(evidence: Evidence, region: int) -> Annotated:
    """Annotate a region of the program with its fragments; see `function_views`."""
    (view,) = function_views(evidence, [region])
    return view


def function_views(evidence: Evidence, regions: Sequence[int]) -> Iterator[Annotated]:
    """Annotate regions of the program, of different functions, with their fragments.

    Taken is the share in which a conditional branch was taken; “leads to” names blocks with the
    share of what left for them.
    """
    notes = (*evidence.run_notes(), *evidence.line_notes())
    graphs = flow_graphs(evidence, regions)
    code = instruction_texts(evidence.program, regions)
    for region, graph, lines in zip(regions, graphs, code, strict=True):
        name = evidence.names.region(region)
        rows = tuple(_code(evidence, region, graph, lines))
        table = Table(NAME, f"Function {name}", _COLUMNS, rows, notes)
        start = PlacedAddress(evidence.program.regions.start[region])
        yield Annotated(name, start, table, graph)


def instruction_texts(program: Program, regions: Sequence[int]) -> list[Lines]:
    """The instructions of regions, of different functions, and their fragments; of each region."""
    code, families = program.regions, [program.regions.families(np.array([r])) for r in regions]
    pieces = np.concatenate([np.empty(0, np.int64), *families])
    found = iter(texts_in(program, ByteRanges(code.start[pieces], code.end[pieces])))
    return [[line for _ in family for line in next(found)] for family in families]


def texts_in(program: Program, ranges: ByteRanges) -> list[Lines]:
    """The instructions of ranges that don't overlap; of each."""
    files: dict[int, tuple[Program, list[int]]] = {}
    for row, (start, _) in enumerate(ranges.pairs()):
        file, in_file = program.file_of(PlacedAddress(start))
        files.setdefault(start - in_file, (file, []))[1].append(row)
    found: list[Lines] = [[] for _ in range(len(ranges))]
    for moved, (file, rows) in files.items():
        chosen = np.array(rows)
        own = ByteRanges(*(each[chosen] - np.uint64(moved) for each in (ranges.start, ranges.end)))
        for row, lines in zip(rows, texts(file.image, own), strict=True):
            found[row] = [(PlacedAddress(address + moved), words) for address, _, words in lines]
    return found


def _code(
    evidence: Evidence, region: int, graph: FlowGraph, lines: Lines
) -> list[tuple[Value, ...]]:
    addresses = placed_array(address for address, _ in lines)
    flow = evidence.flow
    row = flow.instructions.index_of(addresses)
    counts = np.append(flow.executed, np.uint64(0))[row].tolist()
    is_last = np.isin(addresses, graph.cfg.block_last).tolist()
    blocks = graph.cfg.block_of(addresses).tolist()
    shares = _taken_shares(evidence.of_function(region), addresses)
    exits = _exits(graph)
    source = evidence.names.lines(addresses)
    return [
        (
            counts[i],
            blocks[i] if blocks[i] >= 0 else None,
            address,
            words,
            source[i],
            shares[i],
            exits.get(blocks[i], "") if is_last[i] else "",
        )
        for i, (address, words) in enumerate(lines)
    ]


def _taken_shares(evidence: Evidence, addresses: PlacedAddresses) -> list[float | None]:
    """Of conditional branches that ran, as in `outcomes`; None for all else."""
    found = estimate(evidence)
    known = dict(zip(found.address.tolist(), found.probability.tolist(), strict=True))
    return [known.get(address) for address in addresses.tolist()]


def _exits(graph: FlowGraph) -> dict[int, str]:
    """Where each block goes on, with shares, as text."""
    cfg = graph.cfg
    found: dict[int, list[str]] = {}
    for source, target, share in zip(
        cfg.edge_source.tolist(), cfg.edge_target.tolist(), graph.edge_share.tolist(), strict=True
    ):
        part = "" if np.isnan(share) else f" {share:.1%}"
        found.setdefault(source, []).append(f"{target}{part}")
    return {block: ", ".join(parts) for block, parts in found.items()}


@cache
def kind_name(kind: int) -> str:
    """`fallthrough`, `taken`, `jump` or `indirect`."""
    return EdgeKind(kind).name.lower()
