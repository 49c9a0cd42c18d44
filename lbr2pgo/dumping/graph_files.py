"""A function's networkx graph as files that other programs read: GraphML, and JSON.

Both hold plain values alone: addresses are `0x…` as in all files, and several texts are lines of
one. What is not known is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from lbr2pgo.support.printable import printable

if TYPE_CHECKING:
    import networkx as nx

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
