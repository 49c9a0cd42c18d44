"""Copies of hot paths, so that more branches fall through than any order of blocks allows.

A block that several others lead to can stand behind one of them only; the others jump there. A path
is a block and, behind it, blocks that are cloned for it alone: they stand behind it, down to where
control leaves the function, or leaves the path as it left these blocks before. What a path gains is
estimated from edges and, as far as a run that a jump led to shows it, from how those samples went
on. The best for their bytes are taken; whether a function keeps its clones is decided by its layout
with and without them.

google/llvm-propeller calls it path cloning (path_clone_evaluator.h). What clang can clone: LLVM:
lib/CodeGen/BasicBlockPathCloning.cpp, IsValidCloning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TypeVar

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO
from lbr2pgo.profiles.propeller.block_flow import BlockFlow, containing
from lbr2pgo.profiles.propeller.block_layout import Layout
from lbr2pgo.program.block_map import INDIRECT_BRANCH, LANDING_PAD, BlockMap
from lbr2pgo.program.code.instructions import CALLS
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import Bools

MOST_GROWTH = 0.03
"""Of the bytes of all blocks."""
LONGEST = 6
"""Blocks that are cloned for one path."""
_LEAST_PER_BYTE = 1e-6
"""Part of all taken branches that a byte has to save: what it costs the instruction cache."""
_LIKELY = 0.3
"""How likely a path has to go on."""
_FEWEST = 10
"""Samples of a path: of fewer, chance decides."""

Node = tuple[int, int]
"""A row of the block map, and which copy of it: 0 is the block itself."""
_Edges = dict[int, dict[int, float]]
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class ClonedPath:
    """A block, and those behind it that are cloned for it; rows of the block map."""

    before: int
    cloned: tuple[int, ...]
    shares: tuple[Mapping[int, float], ...]
    """Where each of these goes then, as parts of how often it ran."""
    gain: float
    """Taken branches less, as blocks stand."""
    size: int
    """Bytes of the clones."""

    @property
    def ratio(self) -> float:
        """What a byte gains."""
        return self.gain / max(self.size, 1)


@dataclass(frozen=True, slots=True)
class ClonedFunction:
    """A function with copies of some blocks."""

    paths: tuple[tuple[int, ...], ...]
    """Rows of the block map: the block before a path, and those that are cloned."""
    order: tuple[Node, ...]
    """All blocks and copies that are laid out; a block's copies are numbered as paths come."""
    count: Mapping[Node, int]
    """How often each ran: a block and its copies together as often as the block did before."""
    edges: Mapping[Node, Mapping[Node, int]]
    """Where each led then, and how often, ordered; added up over copies, the edges before."""


def clone_paths(
    flow: Flow, blocks: BlockMap, found: BlockFlow, layout: Layout
) -> dict[int, ClonedFunction]:
    """Functions that gain by clones, by their places in the layout."""
    paths = _Paths(flow, blocks, found, layout)
    least = _LEAST_PER_BYTE * float(flow.branches.count.sum())
    chosen: dict[int, list[ClonedPath]] = defaultdict(list)
    for path in _best_first(paths, least, MOST_GROWTH * int(blocks.size.sum())):
        chosen[paths.owner[path.before]].append(path)
    made = {place: _Function(paths, place) for place in chosen}
    cloned = {place: function.with_clones(chosen[place]) for place, function in made.items()}
    return {place: each for place, each in cloned.items() if each is not None}


def _best_first(paths: _Paths, least: float, room: float) -> Iterator[ClonedPath]:
    """Those that gain at least so much a byte and are no larger than the room, the best first.

    A path gains less, if anything, once those that it crosses were taken: it is asked again when
    its turn comes.
    """
    heap = [(-path.ratio, path.before, path.cloned[0]) for path in paths]
    heapify(heap)
    while heap:
        _, before, block = heappop(heap)
        path = paths.best(before, block)
        if path is None or path.ratio < least or path.size > room:
            continue
        if heap and -path.ratio > heap[0][0]:
            heappush(heap, (-path.ratio, before, block))
            continue
        room -= path.size
        paths.behind[before] = block
        yield path


class _Onward:
    """How runs went on behind a jump, in the order that blocks lie in now."""

    def __init__(self, flow: Flow, blocks: BlockMap) -> None:
        counts = flow.counts
        rows = np.flatnonzero(counts.has(FROM | TO | END | BRANCH))
        addresses = (counts.from_[rows], counts.to[rows], counts.end[rows])
        source, target, last = (containing(each, blocks) for each in addresses)
        known = (source >= 0) & (target >= 0) & (last >= target)
        known[known] = blocks.function[last[known]] == blocks.function[target[known]]
        columns = (source, target, last - target, counts.count[rows])
        self._runs: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
        for one, other, length, count in zip(*(c[known].tolist() for c in columns), strict=True):
            self._runs[one, other][length] += count

    def share_past(self, before: int, block: int, depth: int) -> float | None:
        """Of runs that came so many blocks past a jump's target, how many went on to the next."""
        runs = self._runs.get((before, block), Counter())
        there = sum(count for length, count in runs.items() if length >= depth)
        past = sum(count for length, count in runs.items() if length > depth)
        return past / there if there else None


class _Paths:
    """Paths that would gain, one for each edge that is a jump as blocks stand."""

    def __init__(self, flow: Flow, blocks: BlockMap, found: BlockFlow, layout: Layout) -> None:
        self.layout, self.onward = layout, _Onward(flow, blocks)
        self.size, self.count = blocks.size.tolist(), found.count.tolist()
        calls = _with_calls(flow, blocks)
        self._calls, self._stays = calls.tolist(), _that_stay(calls, blocks).tolist()
        self._ends = (blocks.metadata & INDIRECT_BRANCH != 0).tolist()
        self.owner: dict[int, int] = {}
        """The function that each block is laid out in, by its place there."""
        self.behind: dict[int, int] = {}
        """The block that stands behind each, or whose clone does."""
        for place in range(len(layout)):
            rows = self.rows(place)
            self.owner |= dict.fromkeys(rows, place)
            self.behind |= dict(pairwise(rows))
        edges = found.edges
        self.edges: _Edges = {row: {} for row in self.owner}
        columns = (edges.source, edges.target, edges.count.astype(np.float64))
        for source, target, count in zip(*(each.tolist() for each in columns), strict=True):
            if source in self.owner and target in self.owner:
                self.edges[source][target] = count

    def rows(self, place: int) -> list[int]:
        """Blocks of a function as they stand."""
        begin, end = self.layout.offsets[place : place + 2].tolist()
        rows: list[int] = self.layout.blocks[begin:end].tolist()
        return rows

    def __iter__(self) -> Iterator[ClonedPath]:
        begun = (
            self.best(before, block)
            for before, leads in self.edges.items()
            for block in leads
            if self._may_begin(before, block)
        )
        return (path for path in begun if path is not None)

    def _may_begin(self, before: int, block: int) -> bool:
        """Whether control often jumps from a block to one that can be cloned for it."""
        is_jump = self.behind.get(before) != block and not self._ends[before]
        is_frequent = self.edges[before][block] >= _FEWEST
        return is_jump and is_frequent and self._can_be_cloned(block, (before,))

    def _can_be_cloned(self, block: int, path: Sequence[int]) -> bool:
        return not self._stays[block] and block not in path

    def best(self, before: int, block: int) -> ClonedPath | None:
        """The path that gains most of all that begin so; None if none does."""
        count = self.edges[before][block]
        saved = count - self.edges[before].get(self.behind.get(before, -1), 0.0)
        path, shares, size = [block], [self._shares(before, [block])], self.size[block]
        best: ClonedPath | None = None
        while True:
            last, told = path[-1], shares[-1]
            falls = self.behind.get(last, -1)
            lost = count * told.get(falls, 0.0)
            if saved - lost > (best.gain if best else 0.0):
                best = ClonedPath(before, tuple(path), tuple(shares), saved - lost, size)
            following = max(told, key=lambda each: told[each], default=-1)
            if len(path) == LONGEST or self._ends[last] or following < 0:
                break
            if told[following] < _LIKELY or not self._can_be_cloned(following, (before, *path)):
                break
            if following != falls:
                saved += count * told[following] - lost
            count *= told[following]
            path.append(following)
            shares.append(self._shares(before, path))
            size += self.size[following]
        return best

    def _shares(self, before: int, path: list[int]) -> dict[int, float]:
        """Where the last block of a path goes, as parts of how often it runs.

        Runs tell it, but not of a block with a call: there they end.
        """
        block, leads = path[-1], self.edges[path[-1]]
        total = max(self.count[block], sum(leads.values()), 1)
        shares = {to: count / total for to, count in leads.items()}
        is_run = all(after == each + 1 for each, after in pairwise(path)) and not self._calls[block]
        past = self.onward.share_past(before, path[0], len(path) - 1) if is_run else None
        if past is None or block + 1 not in shares:
            return shares
        others = 1 - shares[block + 1]
        scale = (1 - past) / others if others > 0 else 0.0
        return {to: past if to == block + 1 else part * scale for to, part in shares.items()}


def _with_calls(flow: Flow, blocks: BlockMap) -> Bools:
    """(b,): blocks in which there are calls."""
    code = flow.instructions
    at = containing(code.address[np.isin(code.kind, CALLS)], blocks)
    calls = np.zeros(len(blocks), np.bool_)
    calls[at[at >= 0]] = True
    return calls


def _that_stay(calls: Bools, blocks: BlockMap) -> Bools:
    """(b,): blocks that can't be cloned: entries, landing pads, and calls that may lead to one.

    Labels stand around such calls, which clang can't have twice (LLVM: EH_LABEL). Which calls are
    meant the map does not say: in a function that has landing pads, any may be.
    """
    is_pad = blocks.metadata & LANDING_PAD != 0
    has_pads = np.isin(blocks.function, blocks.function[is_pad])
    stays: Bools = blocks.is_entry | is_pad | (calls & has_pads)
    return stays


class _Function:
    """Blocks of one function, and how often they lead where, while paths are cloned."""

    def __init__(self, paths: _Paths, place: int) -> None:
        rows = paths.rows(place)
        self._size, self._rows = paths.size, rows
        self._count = {(row, 0): float(paths.count[row]) for row in rows}
        self._edges: dict[Node, dict[Node, float]] = {
            (row, 0): {(to, 0): count for to, count in paths.edges[row].items()} for row in rows
        }
        self._copies: Counter[int] = Counter()

    def with_clones(self, paths: Sequence[ClonedPath]) -> ClonedFunction | None:
        """The function with these paths cloned; None where it takes as many branches then."""
        before = _taken([(row, 0) for row in self._rows], self._edges)
        cloned = [(path.before, *path.cloned) for path in _ordered(paths) if self._clone(path)]
        order = self._laid_out()
        if not cloned or _taken(order, self._edges) >= before:
            return None
        return ClonedFunction(tuple(cloned), tuple(order), *self._rounded())

    def _rounded(self) -> tuple[dict[Node, int], dict[Node, dict[Node, int]]]:
        """Whole counts of nodes and edges; those of one block or of one edge add up as before."""
        parts = {(node, to): n for node, leads in self._edges.items() for to, n in leads.items()}
        edges: dict[Node, dict[Node, int]] = {node: {} for node in self._count}
        for (node, to), times in sorted(
            _whole(parts, lambda edge: (edge[0][0], edge[1][0])).items()
        ):
            if times:
                edges[node][to] = times
        return _whole(self._count, lambda node: node[0]), edges

    def _clone(self, path: ClonedPath) -> bool:
        """Clone a path, unless most of what it was chosen for has gone with another one."""
        previous, first = (path.before, 0), (path.cloned[0], 0)
        count = self._edges[previous].get(first, 0.0)
        if 2 * count < path.gain:
            return False
        del self._edges[previous][first]
        for i, (row, shares) in enumerate(zip(path.cloned, path.shares, strict=True)):
            self._copies[row] += 1
            plain, clone = (row, 0), (row, self._copies[row])
            self._edges[previous][clone] = self._count[clone] = count
            self._count[plain] -= count
            moved = self._moved(plain, {to: count * share for to, share in shares.items()})
            if i + 1 < len(path.cloned):
                count = moved.pop((path.cloned[i + 1], 0))
            self._edges[clone], previous = moved, clone
        return True

    def _moved(self, plain: Node, wanted: Mapping[int, float]) -> dict[Node, float]:
        """What now leads on from a clone in place of its block; never more than led on there.

        A clone goes where its block goes by then, be it to another clone (LLVM:
        lib/CodeGen/BasicBlockPathCloning.cpp, CloneMachineBasicBlock).
        """
        left = self._edges[plain]
        moved = {to: min(wanted.get(to[0], 0.0), there) for to, there in left.items()}
        for to, times in moved.items():
            left[to] -= times
        return moved

    def _laid_out(self) -> list[Node]:
        """Blocks and clones in their new order."""
        from lbr2pgo.profiles.propeller._ext_tsp import layout

        nodes = sorted(self._count, key=lambda node: (node[0] != self._rows[0], node[1], node[0]))
        number = {node: i for i, node in enumerate(nodes)}
        edges = sorted(
            (number[node], number[to], round(count))
            for node, leads in self._edges.items()
            for to, count in leads.items()
        )
        source, target, weight = (np.array([edge[i] for edge in edges]) for i in range(3))
        order = layout(
            np.array([0, len(nodes)]),
            np.array([self._size[row] for row, _ in nodes], np.uint64),
            np.array([round(self._count[node]) for node in nodes], np.uint64),
            np.array([0, len(edges)]), source, target, weight.astype(np.uint64),
        )  # fmt: skip
        return [nodes[i] for i in order.tolist()]


def _whole(parts: Mapping[_Key, float], owner: Callable[[_Key], object]) -> dict[_Key, int]:
    """Parts rounded so that those of one owner keep their sum: the largest remainders go up."""
    owned: dict[object, list[_Key]] = defaultdict(list)
    for key in parts:
        owned[owner(key)].append(key)
    whole = {key: int(part) for key, part in parts.items()}
    for keys in owned.values():
        missing = round(sum(parts[key] for key in keys)) - sum(whole[key] for key in keys)
        for key in sorted(keys, key=lambda each: whole[each] - parts[each])[:missing]:
            whole[key] += 1
    return whole


def _ordered(paths: Sequence[ClonedPath]) -> Iterator[ClonedPath]:
    """Paths in an order in which all can be cloned: the first edge of a path is gone with it.

    So paths that pass over that edge come before. Of those that pass over each other's, the last
    ones are left out.
    """
    left, passed = list(paths), Counter(edge for path in paths for edge in pairwise(path.cloned))
    while left:
        free = (path for path in left if not passed[path.before, path.cloned[0]])
        chosen = next(free, None)
        if chosen is not None:
            yield chosen
        passed.subtract(pairwise((chosen or left[-1]).cloned))
        left.remove(chosen or left[-1])


def _taken(order: Sequence[Node], edges: Mapping[Node, Mapping[Node, float]]) -> float:
    """How often control jumps where blocks stand in this order."""
    behind = dict(pairwise(order))
    return sum(
        count
        for node, leads in edges.items()
        for to, count in leads.items()
        if behind.get(node) != to
    )
