"""The loop that lays blocks out, against a plain one and against all orders of small functions."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.profiles.propeller._ext_tsp import layout, score

Edge = tuple[int, int, int]


@dataclass
class Function:
    """Sizes and counts of blocks, the entry first, and edges: source, target, weight."""

    sizes: list[int]
    counts: list[int]
    edges: list[Edge]
    outs: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.edges = [edge for edge in self.edges if edge[0] != edge[1]]
        self.outs = [sum(edge[0] == i for edge in self.edges) for i in range(len(self.sizes))]

    def gain(self, order: list[int], edges: list[Edge] | None = None) -> float:
        at, address = 0, {}
        for block in order:
            address[block], at = at, at + self.sizes[block]
        total = 0.0
        for source, target, weight in self.edges if edges is None else edges:
            if source not in address or target not in address:
                continue
            end, there = address[source] + self.sizes[source], address[target]
            if end == there:
                total += weight * (1.05 if self.outs[source] == 1 else 1.0)
            elif end < there and there - end <= 1024:
                total += weight * 0.1 * (1 - (there - end) / 1024)
            elif there < end and end - there <= 640:
                total += weight * 0.1 * (1 - (end - there) / 640)
        return total


def laid_out(*functions: Function) -> list[list[int]]:
    """What the loop makes of them, each with its own numbers."""
    begins = np.cumsum([0, *(len(each.sizes) for each in functions)])
    offsets = np.cumsum([0, *(len(each.edges) for each in functions)])
    edges = np.array(
        [(a + b, c + b, w) for b, f in zip(begins, functions, strict=False) for a, c, w in f.edges],
        np.int64,
    ).reshape(-1, 3)
    found = layout(
        begins,
        np.array([n for each in functions for n in each.sizes], np.uint64),
        np.array([n for each in functions for n in each.counts], np.uint64),
        offsets,
        edges[:, 0].copy(), edges[:, 1].copy(), edges[:, 2].astype(np.uint64),
    )  # fmt: skip
    parts = np.split(found, begins[1:-1])
    return [(part - begin).tolist() for part, begin in zip(parts, begins, strict=False)]


def plainly(function: Function) -> list[int]:
    """The same greedy merging, with lists, looking at every pair each time."""
    chains = {i: [i] for i in range(len(function.sizes))}

    def of(block: int) -> int:
        return next(number for number, chain in chains.items() if block in chain)

    def put(x: int, y: int, merged: list[int]) -> None:
        chains[x] = merged
        del chains[y]

    for block in range(len(function.sizes)):
        ways = [edge for edge in function.edges if edge[0] == block]
        if len(ways) == 1 and ways[0][1] != 0:
            target = ways[0][1]
            if sum(edge[1] == target for edge in function.edges) == 1 and of(block) != of(target):
                put(of(block), of(target), chains[of(block)] + chains[of(target)])
    while best := max(ways_to_merge(function, chains), default=None):
        _, x, y, merged = best
        put(-x, -y, merged)
    ordered = sorted(chains.values(), key=lambda chain: (0 not in chain, density(function, chain)))
    return [block for chain in ordered for block in chain]


def density(function: Function, chain: list[int]) -> tuple[float, int]:
    count = sum(function.counts[block] for block in chain)
    return -count / max(sum(function.sizes[block] for block in chain), 1), chain[0]


def ways_to_merge(
    function: Function, chains: dict[int, list[int]]
) -> list[tuple[float, int, int, list[int]]]:
    """Gain, the negated numbers of the chains, and what becomes of them."""
    found = []
    for x, first in chains.items():
        for y, second in chains.items():
            touching = any({a, b} & set(first) and {a, b} & set(second)
                           for a, b, _ in function.edges)  # fmt: skip
            if x != y and touching:
                found += best_merge(function, x, y, first, second)
    return found


def best_merge(
    function: Function, x: int, y: int, first: list[int], second: list[int]
) -> list[tuple[float, int, int, list[int]]]:
    edges = [edge for edge in function.edges
             if not {edge[0], edge[1]} <= set(second)]  # fmt: skip
    best, merged = 1e-8, None
    for order in ways(function, first, second):
        if 0 in order and order[0] != 0:
            continue
        gain = function.gain(order, edges) - function.gain(first)
        if gain > (best if merged is None else best + 1e-8):
            best, merged = gain, order
    return [] if merged is None else [(best, -x, -y, merged)]


def ways(function: Function, first: list[int], second: list[int]) -> list[list[int]]:
    found = [first + second]
    for a, b, _ in function.edges:
        cut = first.index(a) + 1 if b == second[0] and a in first else 0
        if 0 < cut < len(first):
            head, rest = first[:cut], first[cut:]
            found += [head + second + rest, rest + head + second]
    for a, b, _ in function.edges:
        cut = first.index(b) if a == second[-1] and b in first else 0
        if cut:
            head, rest = first[:cut], first[cut:]
            found += [head + second + rest, second + rest + head]
    return found


def of_seed(seed: int, blocks: int) -> Function:
    """Weights that no two ways of merging share, so that both loops choose alike."""
    chance = random.Random(seed)
    pairs = {(i, chance.randrange(blocks)) for i in range(blocks) for _ in range(2)}
    pairs |= {(i, i + 1) for i in range(blocks - 1) if chance.random() < 0.7}
    edges = [(a, b, chance.randrange(1, 10**9)) for a, b in sorted(pairs) if b]
    sizes = [chance.randrange(1, 400) for _ in range(blocks)]
    return Function(sizes, [chance.randrange(1, 10**6) for _ in range(blocks)], edges)


@pytest.mark.parametrize("blocks", [1, 2, 5, 12])
def test_the_plain_loop_lays_out_the_same(blocks: int) -> None:
    functions = [of_seed(seed, blocks) for seed in range(60)]
    for function, order in zip(functions, laid_out(*functions), strict=True):
        assert function.gain(order) == pytest.approx(function.gain(plainly(function)), rel=1e-9)
        assert sorted(order) == list(range(blocks))
        assert order[0] == 0


def test_little_is_missing_from_the_best_of_all_orders() -> None:
    functions = [of_seed(seed, 6) for seed in range(40)]
    best = [max(f.gain([0, *rest]) for rest in permutations(range(1, 6))) for f in functions]
    found = [f.gain(order) for f, order in zip(functions, laid_out(*functions), strict=True)]
    assert sum(found) > 0.97 * sum(best)


def test_the_score_is_that_of_the_plain_sum() -> None:
    function = of_seed(3, 9)
    address = np.concatenate(([0], np.cumsum(function.sizes)[:-1])).astype(np.uint64)
    edges = np.array(function.edges, np.int64)
    found = score(
        address, np.array(function.sizes, np.uint64), edges[:, 0].copy(), edges[:, 1].copy(),
        edges[:, 2].astype(np.uint64), np.array(function.outs),
    )  # fmt: skip
    assert found == pytest.approx(function.gain(list(range(9))))


def test_a_hot_jump_becomes_a_fall_through() -> None:
    """The entry goes to block 2 ninety times of a hundred, which comes back to block 1."""
    function = Function([8, 8, 8], [100, 100, 90], [(0, 1, 10), (0, 2, 90), (2, 1, 90)])
    assert laid_out(function) == [[0, 2, 1]]


def test_what_nothing_connects_stands_by_density() -> None:
    assert laid_out(Function([8, 80, 8], [1, 50, 50], [])) == [[0, 2, 1]]


def test_an_edge_into_another_function_is_refused() -> None:
    one = np.array([1, 1], np.uint64)
    with pytest.raises(IndexError, match="leaves its function"):
        layout(np.array([0, 1, 2]), one, one, np.array([0, 1, 1]), np.array([0]), np.array([1]),
               np.array([5], np.uint64))  # fmt: skip


@given(st.lists(st.integers(0, 2**20), max_size=6), st.randoms(use_true_random=False))
def test_any_functions_keep_their_blocks_and_entries(
    sizes: list[int], chance: random.Random
) -> None:
    functions = []
    for _ in range(chance.randrange(1, 4)):
        n = len(sizes)
        edges = [(chance.randrange(n), chance.randrange(n), chance.randrange(2**63))
                 for _ in range(chance.randrange(12))] if n else []  # fmt: skip
        functions.append(Function(sizes, [chance.randrange(5) for _ in sizes], edges))
    for order in laid_out(*functions):
        assert sorted(order) == list(range(len(sizes)))
        assert order[:1] == [0][: len(sizes)]


def test_a_hundred_thousand_blocks_take_seconds() -> None:
    """Under five where nothing else runs; the bound leaves room for a busy machine."""
    import time

    functions = [of_seed(seed, 100) for seed in range(10)] * 100
    begin = time.process_time()
    laid_out(*functions)
    assert time.process_time() - begin < 10
