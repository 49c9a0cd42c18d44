from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from builders.preinliner_oracle import Node, Samples, inline
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.profiles.llvm.contexts._preinliner import (
    SHOULD_BE_INLINED,
    WAS_INLINED,
    ContextTrie,
    FunctionSizes,
)

FUNCTIONS = 4
COUNTS = st.sampled_from((0, 1, 2, 9, 10, 50))
TOTALS = COUNTS | st.sampled_from((600, 3000, 4000))
NO_LINE = 2**64 - 1


@st.composite
def tries(draw: st.DrawFn) -> list[Node]:
    """Contexts, callers first; no function is so large that callers stop to grow."""
    nodes = [Node(-1, 0)]
    for _ in range(draw(st.integers(0, 9))):
        parent = draw(st.sampled_from(nodes))
        function = draw(st.integers(0, FUNCTIONS - 1))
        location = 0 if parent is nodes[0] else draw(st.integers(1, 2))
        if (location, function) in parent.children:
            continue
        node = Node(function, location)
        node.hang(parent)
        nodes.append(node)
        if draw(st.integers(0, 4)):
            lines = draw(st.dictionaries(st.integers(0, 2), COUNTS, max_size=2))
            bits = draw(st.sampled_from((0, WAS_INLINED)))
            node.samples = Samples(draw(TOTALS), draw(COUNTS), bits, lines)
            if parent.samples is not None and draw(st.booleans()):
                parent.samples.calls[location, function] = draw(COUNTS)
    return nodes


def trie_of(nodes: list[Node]) -> ContextTrie:
    number = {id(node): i for i, node in enumerate(nodes)}
    samples = [node.samples or Samples(0, 0, 0, {}) for node in nodes]

    def column(values: Iterator[int], kind: type = np.uint64) -> np.ndarray:
        return np.array(list(values), kind)

    trie = ContextTrie(
        column((-1 if n.parent is None else number[id(n.parent)] for n in nodes), np.int64),
        column(n.location for n in nodes),
        column(max(n.function, 0) for n in nodes),
        column((n.samples is not None for n in nodes), np.uint8),
        column(s.head for s in samples),
        column(s.total for s in samples),
        column(min(s.lines, default=NO_LINE) for s in samples),
        column(s.lines[min(s.lines)] if s.lines else 0 for s in samples),
        column((s.attributes for s in samples), np.uint8),
    )
    calls = [(i, *key, n) for i, s in enumerate(samples) for key, n in s.calls.items()]
    rows = np.array(calls, np.uint64).reshape(-1, 4)
    trie.add_calls(rows[:, 0].astype(np.int64), *(rows[:, k].copy() for k in (1, 2, 3)))
    return trie


def sizes_of(sizes: list[int]) -> FunctionSizes:
    """Functions of which only the size without callers is known."""
    nodes, zeros = RowIds(), np.zeros(len(sizes), np.uint64)
    nodes.number_rows(zeros[:1], zeros[:1], ~zeros[:1])
    nodes.number_rows(zeros, zeros, np.arange(len(sizes), dtype=np.uint64))
    return FunctionSizes(nodes, np.array([-1, *sizes]), np.full(len(sizes) + 1, -1))


def left(trie: ContextTrie, nodes: list[Node]) -> dict[tuple[int, ...], tuple[int, int, int]]:
    """What the trie says, as the oracle says it."""
    kept, outer, samples, _ = (column.tolist() for column in trie.result())
    paths: list[tuple[int, ...]] = [()]
    found = {}
    for node, parent, own in zip(kept[1:], outer[1:], samples[1:], strict=True):
        paths.append((*paths[parent], int(trie.locations[node]), nodes[node].function))
        if own >= 0:
            found[paths[-1]] = (
                int(trie.totals[own]), int(trie.heads[own]), int(trie.attribute_bits[own]),
            )  # fmt: skip
    return found


def marked(
    nodes: list[Node], function: int, sizes: list[int], *, as_llvm: bool = False
) -> list[bool]:
    """Which nodes are to be inlined, once that is decided for a function."""
    trie, every = trie_of(nodes), range(len(sizes))
    contexts = [[i for i, n in enumerate(nodes) if n.function == f and n.samples] for f in every]
    trie.inline(
        np.array([function]), np.cumsum([0, *map(len, contexts)]), np.concatenate(contexts),
        sizes_of(sizes), np.array(every, np.uint64), 0, 1, as_llvm,
    )  # fmt: skip
    return [bool(bits & SHOULD_BE_INLINED) for bits in trie.attribute_bits.tolist()]


@settings(max_examples=400, deadline=None)
@given(
    tries(), st.permutations(range(FUNCTIONS)),
    st.lists(st.integers(0, 9), min_size=FUNCTIONS, max_size=FUNCTIONS),
    st.sampled_from((0, 1, 9)), st.sampled_from((1, 10, 50)),
)  # fmt: skip
def test_contexts_are_merged_and_inlined_as_plain_trees_are(
    nodes: list[Node], order: list[int], sizes: list[int], cold: int, more: int
) -> None:
    trie, functions = trie_of(nodes), [node.function for node in nodes]
    contexts = [[n for n in nodes[0].below() if n.function == f and n.samples] for f in range(4)]
    number = {id(node): i for i, node in enumerate(nodes)}
    trie.inline(
        np.array(order), np.cumsum([0, *map(len, contexts)]),
        np.array([number[id(node)] for row in contexts for node in row], np.int64),
        sizes_of(sizes), np.arange(FUNCTIONS, dtype=np.uint64), cold, cold + more, False,
    )  # fmt: skip
    names = [Node(function, 0) for function in functions]
    found = left(trie, names)
    assert found == inline(nodes[0], order, dict(enumerate(sizes)), cold, cold + more)


def test_a_function_grows_to_its_limit_with_what_is_called_most() -> None:
    """That is twelve times its 50 bytes, which the second callee of 290 passes."""
    root, base = Node(-1, 0), Node(0, 0)
    base.hang(root)
    base.samples = Samples(9, 9, 0, {1: 9})
    nodes = [root, base]
    for location, count in ((1, 10), (2, 40), (3, 30), (4, 20)):
        node = Node(1, location)
        node.hang(base)
        node.samples = Samples(count, count, 0, {})
        nodes.append(node)
    taken = marked(nodes, 0, [50, 290])
    assert [nodes[row].location for row in np.flatnonzero(taken)] == [2, 3]


@pytest.mark.parametrize(
    ("total", "bits", "as_llvm", "is_taken"),
    [
        (2999, 0, False, True),
        (3300, 0, False, False),
        (3300, 0, True, True),
        (3300, WAS_INLINED, False, True),
    ],
)
def test_a_call_that_runs_hundreds_of_blocks_stays_a_call(
    total: int, bits: int, as_llvm: bool, is_taken: bool
) -> None:
    """Of ten calls, each runs a tenth of the total."""
    nodes = [Node(-1, 0), Node(0, 0), Node(1, 1)]
    for node, parent, own in ((nodes[1], nodes[0], 9), (nodes[2], nodes[1], total)):
        node.hang(parent)
        node.samples = Samples(own, 10, bits if parent is nodes[1] else 0, {})
    assert marked(nodes, 0, [50, 50], as_llvm=as_llvm)[2] == is_taken


@pytest.mark.parametrize(
    ("bits", "as_llvm", "most"), [(0, False, 2), (0, True, 4), (WAS_INLINED, False, 2)]
)
def test_a_function_is_inlined_into_itself_but_once(bits: int, as_llvm: bool, most: int) -> None:
    """It calls itself at two places in turn, and another function calls it."""
    nodes = [Node(-1, 0), Node(1, 0)]
    nodes[1].hang(nodes[0])
    nodes[1].samples = Samples(50, 50, 0, {})
    for level in range(4):
        node = Node(0, 1 + level % 2)
        node.hang(nodes[-1])
        node.samples = Samples(50, 50, bits, {})
        nodes.append(node)
    assert sum(marked(nodes, 1, [5, 5], as_llvm=as_llvm)) == most


def test_merged_counts_end_at_the_largest_one() -> None:
    nodes = [Node(-1, 0), Node(0, 0), Node(1, 1), Node(1, 0)]
    for node, parent in zip(nodes[1:], (nodes[0], nodes[1], nodes[0]), strict=True):
        node.hang(parent)
        node.samples = Samples(2**63, 2**63, 0, {1: 2**63})
    trie = trie_of(nodes)
    trie.inline(
        np.array([1]), np.array([0, 0, 2]), np.array([2, 3]), sizes_of([1, 1]),
        np.arange(2, dtype=np.uint64), 0, 1, False,
    )  # fmt: skip
    assert left(trie, nodes) == {
        (0, 0): (2**63, 2**63, 0),
        (0, 1): (2**64 - 1, 2**64 - 1, 0),
    }
