"""Minimum-cost flow, against networkx."""

from __future__ import annotations

from typing import NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.native.min_cost_flow import solve
from lbr2pgo.support.arrays import I64


class Network(NamedTuple):
    """Nodes are numbered from 0; supply is what some flow within the rooms moves."""

    nodes: int
    arcs: I64
    """(m, 4): tail, head, room, cost."""
    supply: I64


@st.composite
def networks(draw: st.DrawFn) -> Network:
    nodes = draw(st.integers(1, 9))
    node = st.integers(0, nodes - 1)
    amounts = st.integers(0, 12)
    rows = draw(st.lists(st.tuples(node, node, amounts, amounts, amounts), max_size=24))
    arcs = np.array([row[:4] for row in rows], np.int64).reshape(-1, 4)
    carried = np.array([min(row[2], row[4]) for row in rows], np.int64)
    return Network(nodes, arcs, _moved(nodes, arcs, carried))


def _moved(nodes: int, arcs: I64, flow: I64) -> I64:
    supply = np.zeros(nodes, np.int64)
    np.add.at(supply, arcs[:, 0], flow)
    np.subtract.at(supply, arcs[:, 1], flow)
    return supply


def solved(*networks: Network) -> list[I64]:
    nodes = np.cumsum([0, *(each.nodes for each in networks)])
    bounds = np.cumsum([0, *(len(each.arcs) for each in networks)])
    arcs = np.concatenate([each.arcs for each in networks])
    shift = np.repeat(nodes[:-1], np.diff(bounds))
    tail, head, room, cost = map(np.ascontiguousarray, arcs.T)
    supply = np.concatenate([each.supply for each in networks])
    return np.split(
        solve(nodes, bounds, supply, tail + shift, head + shift, room, cost), bounds[1:-1]
    )


def cheapest(network: Network) -> int:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from((i, {"demand": -int(n)}) for i, n in enumerate(network.supply))
    for tail, head, room, cost in network.arcs.tolist():
        graph.add_edge(tail, head, capacity=room, weight=cost)
    return int(nx.network_simplex(graph)[0])


@given(st.lists(networks(), min_size=1, max_size=3))
def test_the_flow_meets_all_supply_within_the_rooms_at_the_least_cost(
    several: list[Network],
) -> None:
    for network, flow in zip(several, solved(*several), strict=True):
        assert (flow >= 0).all()
        assert (flow <= network.arcs[:, 2]).all()
        assert (_moved(network.nodes, network.arcs, flow) == network.supply).all()
        assert int((flow * network.arcs[:, 3]).sum()) == cheapest(network)


def test_a_large_network_has_the_cost_that_networkx_finds() -> None:
    random = np.random.default_rng(1)
    arcs = np.column_stack([random.integers(0, 150, (900, 2)), random.integers(0, 99, (900, 2))])
    supply = _moved(150, arcs, random.integers(0, arcs[:, 2] + 1))
    network = Network(150, arcs, supply)
    (flow,) = solved(network)
    assert int((flow * arcs[:, 3]).sum()) == cheapest(network)


def test_a_network_with_rooms_without_limit_is_solved() -> None:
    arcs = np.array([[0, 1, 1 << 62, 3], [0, 1, 5, 1], [1, 0, 1 << 62, 0]], np.int64)
    (flow,) = solved(Network(2, arcs, np.array([9, -9])))
    assert flow.tolist() == [4, 5, 0]


@pytest.mark.parametrize(
    ("arc", "what"),
    [
        ((0, 2, 1, 1), "arc 0 leaves its network"),
        ((0, 1, -1, 1), "arc 0 leaves its network, or is negative"),
        ((0, 1, 1, -1), "arc 0 leaves its network, or is negative"),
        ((1, 0, 9, 1), "of the supply can't be carried"),
        ((0, 1, 2, 1), "of the supply can't be carried"),
    ],
)
def test_what_is_no_network_is_refused(arc: tuple[int, int, int, int], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        solved(Network(2, np.array([arc], np.int64), np.array([3, -3])))
