"""The flow nearest to counts, against networkx."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.replay.inference._min_cost_flow import merged, nearest_flow
from lbr2pgo.support.arrays import I64

WIDTHS, PRICES = (1.0, 2.0, np.inf), (10.0, 30.0, 70.0)


class Network(NamedTuple):
    """Nodes are numbered from 0."""

    nodes: int
    counts: I64
    """(m, 4): tail, head, count or -1, deviation."""


@st.composite
def networks(draw: st.DrawFn) -> Network:
    nodes = draw(st.integers(1, 7))
    node = st.integers(0, nodes - 1)
    row = st.tuples(node, node, st.integers(-1, 12), st.integers(1, 5))
    rows = draw(st.lists(row, max_size=16))
    return Network(nodes, np.array(rows, np.int64).reshape(-1, 4))


def solved(*networks: Network) -> list[I64]:
    nodes = np.cumsum([0, *(each.nodes for each in networks)])
    bounds = np.cumsum([0, *(len(each.counts) for each in networks)])
    shift = np.repeat(nodes[:-1], np.diff(bounds))
    tail, head, count, deviation = np.concatenate([each.counts for each in networks]).T
    flow = nearest_flow(
        nodes, bounds, tail + shift, head + shift, count.copy(), deviation.astype(float),
        np.array(WIDTHS), np.array(PRICES),
    )  # fmt: skip
    return np.split(flow, bounds[1:-1])


def steps(deviation: int) -> list[tuple[int, int]]:
    """Room and price of each step."""
    return [
        (10**6 if width == np.inf else max(round(width * deviation), 1),
         max(round(price / deviation), 1))
        for width, price in zip(WIDTHS, PRICES, strict=True)
    ]  # fmt: skip


def price(change: int, deviation: int) -> int:
    total, left = 0, abs(change)
    for room, each in steps(deviation):
        total += min(room, left) * each
        left -= min(room, left)
    return total


def cost(network: Network, flow: I64) -> int:
    total = 0
    for (*_, count, deviation), carried in zip(network.counts.tolist(), flow.tolist(), strict=True):
        known = count >= 0
        total += price(carried - count, deviation) if known else round(carried / deviation)
    return total


def cheapest(network: Network) -> int:
    """The cost that networkx finds."""
    graph = nx.MultiDiGraph()
    demand = np.zeros(network.nodes, np.int64)
    graph.add_nodes_from(range(network.nodes))
    for tail, head, count, deviation in network.counts.tolist():
        if count < 0:
            graph.add_edge(tail, head, weight=round(1 / deviation))
            continue
        demand[head] -= count
        demand[tail] += count
        left = count
        for room, each in steps(deviation):
            graph.add_edge(tail, head, capacity=room, weight=each)
            graph.add_edge(head, tail, capacity=min(room, left), weight=each)
            left -= min(room, left)
    nx.set_node_attributes(graph, dict(enumerate(demand.tolist())), "demand")
    return int(nx.network_simplex(graph)[0])


def adds_up(network: Network, flow: I64) -> bool:
    sums = np.zeros(network.nodes, np.int64)
    np.add.at(sums, network.counts[:, 1], flow)
    np.subtract.at(sums, network.counts[:, 0], flow)
    return not sums.any() and bool((flow >= 0).all())


@given(st.lists(networks(), min_size=1, max_size=3))
def test_flows_add_up_and_take_the_cheapest_changes(several: list[Network]) -> None:
    for network, flow in zip(several, solved(*several), strict=True):
        assert adds_up(network, flow)
        known = network.counts[network.counts[:, 2] >= 0]
        if len(known) == len(network.counts):  # networkx rounds prices that aren't whole
            assert cost(network, flow) == cheapest(network)


def test_a_large_network_has_the_cost_that_networkx_finds() -> None:
    random = np.random.default_rng(1)
    counts = np.column_stack([
        random.integers(0, 150, (900, 2)), random.integers(0, 99, 900), random.integers(1, 9, 900)
    ])  # fmt: skip
    network = Network(150, counts)
    (flow,) = solved(network)
    assert adds_up(network, flow)
    assert cost(network, flow) == cheapest(network)


def test_what_is_not_known_carries_what_is() -> None:
    counts = np.array([[0, 1, 1 << 40, 1], [1, 0, -1, 1], [0, 1, 0, 1]], np.int64)
    (flow,) = solved(Network(2, counts))
    assert flow.tolist() == [1 << 40, 1 << 40, 0]


@pytest.mark.parametrize("row", [(0, 2, 1, 1), (-1, 0, 1, 1), (0, 1, 1, 0), (0, 1, 1, -2)])
def test_what_is_no_network_is_refused(row: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="count 0 leaves its network, or is not positive"):
        solved(Network(2, np.array([row], np.int64)))


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=15))
def test_nodes_are_merged_as_networkx_finds_components(pairs: list[tuple[int, int]]) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(range(12))
    graph.add_edges_from(pairs)
    a, b = np.array(pairs, np.int64).reshape(-1, 2).T
    labels = merged(12, a.copy(), b.copy()).tolist()
    groups = sorted(map(sorted, nx.connected_components(graph)))
    assert [{labels[node] for node in group} for group in groups] == [
        {number} for number in range(len(groups))
    ]


def test_a_node_that_is_not_there_cant_be_merged() -> None:
    for pair in pairwise((0, 12, -1)):
        with pytest.raises(ValueError, match="there is no node"):
            merged(12, *(np.array([node]) for node in pair))
