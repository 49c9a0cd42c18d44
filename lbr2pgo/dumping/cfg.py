"""A function's control-flow graph with counts from a recording: as text, or for other programs.

GraphML and JSON hold plain values alone: addresses are `0x…` as in all files, and several texts
are lines of one. What is not known is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.dumping.labels import BranchLabels
from lbr2pgo.program.code.cfg import EdgeKind, FunctionCFG, Transfers
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.block_counts import BlockCounts, count_blocks
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.counted import counted
from lbr2pgo.support.printable import printable

if TYPE_CHECKING:
    import networkx as nx


_KINDS = {
    EdgeKind.FALLTHROUGH: "falls through to",
    EdgeKind.TAKEN: "branches to",
    EdgeKind.JUMP: "jumps to",
    EdgeKind.INDIRECT: "jumps indirectly to",
}
_STYLES = {
    EdgeKind.FALLTHROUGH: "solid",
    EdgeKind.TAKEN: "bold",
    EdgeKind.JUMP: "bold",
    EdgeKind.INDIRECT: "dashed",
}


class CfgDump:
    """One region of a program, with the pieces that were split off it."""

    def __init__(self, program: Program, function: int, flow: Flow | None = None) -> None:
        targets = {} if flow is None else flow.indirect_targets()
        self._labels = BranchLabels(program)
        self._cfg: FunctionCFG = program.cfg(function, targets)
        self._counts: BlockCounts | None = None
        if flow is not None:
            self._counts = count_blocks(flow, self._cfg)
        self._name = self._labels.name(int(program.regions.start[self._cfg.function]))
        self._loops = {block for loop in self._cfg.loops for block in loop}

    def lines(self) -> Iterator[str]:
        """Blocks in the order of their addresses; below each its edges, calls and ways out."""
        cfg = self._cfg
        yield (
            f"{self._name}: {counted(len(cfg), 'block')}, {counted(len(cfg.edge_source), 'edge')}, "
            f"{counted(len(cfg.calls), 'call')}, {counted(len(cfg.exits), 'way')} out, "
            f"{counted(len(cfg.loops), 'loop')}"
        )
        for block in range(len(cfg)):
            yield self._block_text(block)
            for edge in np.flatnonzero(cfg.edge_source == block).tolist():
                kind = _KINDS[EdgeKind(cfg.edge_kind[edge])]
                yield f"    {kind} block {cfg.edge_target[edge]}{self._edge_count(edge)}"
            yield from self._transfers("calls", cfg.calls, block)
            yield from self._transfers("leaves", cfg.exits, block)

    def _block_text(self, block: int) -> str:
        cfg = self._cfg
        start, end = int(cfg.block_start[block]), int(cfg.block_end[block])
        marks = [word for word, is_true in (
            ("entry", block in cfg.entries), ("in a loop", block in self._loops),
        ) if is_true]  # fmt: skip
        count = (
            [] if self._counts is None else [f"ran {counted(self._counts.block[block], 'time')}"]
        )
        facts = "".join(f", {fact}" for fact in (*count, *marks))
        return f"block {block}: {self._labels.of(start)} to {end:#x}{facts}"

    def _edge_count(self, edge: int) -> str:
        return "" if self._counts is None else f": {self._counts.edge[edge]:,}"

    def _transfers(self, verb: str, transfers: Transfers, block: int) -> Iterator[str]:
        for i in np.flatnonzero(transfers.block == block).tolist():
            kind = Kind(transfers.kind[i]).name.lower().replace("_", " ")
            known = transfers.has_target[i]
            target = self._labels.of(int(transfers.target[i])) if known else "target unknown"
            yield f"    {verb} at {int(transfers.address[i]):#x} ({kind}): {target}"

    def dot(self) -> Iterator[str]:
        """The graph in Graphviz's language (dot -Tsvg)."""
        cfg = self._cfg
        yield f"digraph {_quoted(self._name)} {{"
        yield '  node [shape=box, fontname="monospace"];'
        for block in range(len(cfg)):
            label = self._labels.of(int(cfg.block_start[block]))
            if self._counts is not None:
                label += f"\n{self._counts.block[block]:,}"
            yield f"  b{block} [label={_quoted(label)}];"
        for edge, (source, target) in enumerate(
            zip(cfg.edge_source.tolist(), cfg.edge_target.tolist(), strict=True)
        ):
            style = _STYLES[EdgeKind(cfg.edge_kind[edge])]
            label = self._edge_count(edge).removeprefix(": ")
            yield f"  b{source} -> b{target} [style={style}, label={_quoted(label)}];"
        yield "}"


def _quoted(text: str) -> str:
    r"""A string of Graphviz; line breaks stay line breaks, all else that could steer is shown.

    >>> print(_quoted('a"b\x1b') + _quoted("1\n2"))
    "a\"b\\x1b""1\n2"
    """
    shown = (printable(line) for line in text.split("\n"))
    return '"' + r"\n".join(s.replace("\\", "\\\\").replace('"', '\\"') for s in shown) + '"'


_ADDRESSES = ("address", "end")


def plain(graph: nx.DiGraph) -> nx.DiGraph:
    """The graph of `lbr2pgo.flow_graph` with texts, numbers and truth values only."""
    import networkx as nx

    found = nx.DiGraph(**_plain(graph.graph))
    found.add_nodes_from((f"{node:#x}", _plain(data)) for node, data in graph.nodes(data=True))
    found.add_edges_from(
        (f"{source:#x}", f"{target:#x}", _plain(data))
        for source, target, data in graph.edges(data=True)
    )
    return found


def _plain(attributes: Mapping[str, object]) -> dict[str, object]:
    made = {name: _value(name, value) for name, value in attributes.items()}
    return {name: value for name, value in made.items() if value != ""}


def _value(name: str, value: object) -> object:
    if name in _ADDRESSES:
        return f"{value:#x}"
    if isinstance(value, tuple):
        return "\n".join(map(printable, value))
    return printable(value) if isinstance(value, str) else value


def _graphml(graph: nx.DiGraph) -> Iterator[str]:
    import networkx as nx

    yield from nx.generate_graphml(plain(graph))


def _json(graph: nx.DiGraph) -> Iterator[str]:
    import networkx as nx

    yield from json.dumps(nx.node_link_data(plain(graph), edges="edges"), indent=1).split("\n")


GRAPH_FILES: Mapping[str, Callable[[nx.DiGraph], Iterator[str]]] = {
    "graphml": _graphml,
    "json": _json,
}
"""Lines of each format."""
