"""Edges of a function, in a later form of it, where they may be paths.

Blocks that are gone, or were joined with others, are left out: what came to them goes on to where
control left them for, by the shares of their ways on. Blocks that are new are passed through: an
edge becomes the shortest path through them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import field
from heapq import heappop, heappush
from itertools import pairwise

from lbr2pgo.program.blocks.function_code import FunctionCode
from lbr2pgo.support.dataclass import dataclass

Edge = tuple[int, int]
"""Blocks that control passed from and to."""

_FARTHEST, _OLD, _CALL = 8, 3, 3
"""How far a path may go, and how far it is through a block that was there before, or a call."""
_MOST_WAYS = 1 << 14
"""Edges that may stand for those of one block that is left out."""


@dataclass(slots=True)
class EdgeCount:
    """How often control passed an edge."""

    count: int = 0
    mispredicted: int = 0
    origins: set[Edge] = field(default_factory=set)
    """The edges that it stands for."""

    def add(self, other: EdgeCount) -> None:
        """Let it stand for another one, too."""
        self.count += other.count
        self.mispredicted += other.mispredicted
        self.origins |= other.origins


@dataclass(frozen=True, slots=True)
class MovedEdges:
    """What became of the edges of a function."""

    edges: Mapping[Edge, EdgeCount]
    """Those of the later form."""
    lost: set[Edge]
    """Old edges that have no place there."""


def moved_edges(
    edges: Mapping[Edge, EdgeCount],
    old: FunctionCode,
    new: FunctionCode,
    to: Mapping[int, int],
    idle: Set[int],
) -> MovedEdges:
    """Edges between old blocks in the later form; `to` tells which block each has become.

    Blocks that are `idle` in the later form, for they were before, no path leads through.
    """
    flow = _Flow(edges)
    for gone in sorted({block for edge in edges for block in edge if block not in to}):
        flow.leave_out(gone)
    paths = _Paths(new, frozenset(to.values()), idle)
    found: dict[Edge, EdgeCount] = defaultdict(EdgeCount)
    for (source, target), passed in flow.edges.items():
        after, there = to[source], to[target]
        path = paths.between(after, there)
        if path is None and old.blocks[source].is_indirect and _may_lead_anywhere(new, after):
            path = [after, there]
        if path is None:
            flow.lost |= passed.origins
            continue
        branch = next((each for each in path if len(new.blocks[each].successors) > 1), after)
        for edge in pairwise(path):
            wrong = passed.mispredicted if edge[0] == branch else 0
            found[edge].add(EdgeCount(passed.count, wrong, passed.origins))
    return MovedEdges(found, flow.lost)


def _may_lead_anywhere(code: FunctionCode, block: int) -> bool:
    """Whether a block ends in a jump through a pointer, and nothing tells where to."""
    return code.blocks[block].is_indirect and not code.blocks[block].successors


class _Flow:
    """Edges of the old function, of which blocks are left out one by one."""

    def __init__(self, edges: Mapping[Edge, EdgeCount]) -> None:
        self.lost: set[Edge] = set()
        self._out: dict[int, dict[int, EdgeCount]] = defaultdict(dict)
        self._into: dict[int, set[int]] = defaultdict(set)
        for edge, passed in edges.items():
            self._add(edge, passed)

    @property
    def edges(self) -> dict[Edge, EdgeCount]:
        """Those that are left."""
        return {(source, to): way for source, ways in self._out.items() for to, way in ways.items()}

    def leave_out(self, block: int) -> None:
        """Let what came to a block go on to where control left it for."""
        onward = self._out.pop(block, {})
        onward.pop(block, None)
        sources = self._into.pop(block, set()) - {block}
        coming = {source: self._out[source].pop(block) for source in sources}
        for to in onward:
            self._into[to].discard(block)
        total = sum(way.count for way in onward.values())
        if not total or not coming or len(onward) * len(coming) > _MOST_WAYS:
            self.lost.update(*(way.origins for way in (*onward.values(), *coming.values())))
            return
        for source, came in coming.items():
            for to, went in onward.items():
                count = came.count * went.count // total
                wrong = came.mispredicted * count // (came.count or 1)
                if count:
                    self._add((source, to), EdgeCount(count, wrong, came.origins | went.origins))

    def _add(self, edge: Edge, passed: EdgeCount) -> None:
        source, to = edge
        self._out[source].setdefault(to, EdgeCount()).add(passed)
        self._into[to].add(source)


class _Paths:
    """Shortest ways through the blocks of a function."""

    def __init__(self, code: FunctionCode, had: Set[int], idle: Set[int]) -> None:
        """`had` are blocks that the earlier form has, too."""
        self._code, self._had, self._idle = code, had, idle
        self._before: dict[int, dict[int, int]] = {}

    def between(self, source: int, target: int) -> list[int] | None:
        """Blocks from one to another, both included; None where no way is short."""
        if source not in self._before:
            self._before[source] = dict(self._reached(source))
        before = self._before[source]
        if target not in before:
            return None
        path = [target, before[target]]
        while path[-1] != source:
            path.append(before[path[-1]])
        return path[::-1]

    def _reached(self, source: int) -> Iterator[tuple[int, int]]:
        """Blocks that can be reached from one, each with the block before it; perhaps itself."""
        queue = [(0, to, source) for to in self._code.blocks[source].successors]
        seen: set[int] = set()
        while queue:
            far, block, before = heappop(queue)
            if block in seen:
                continue
            seen.add(block)
            yield block, before
            far += _OLD if block in self._had else 1
            far += _CALL * bool(self._code.blocks[block].calls)
            if far <= _FARTHEST and block != source and block not in self._idle:
                for to in self._code.blocks[block].successors:
                    heappush(queue, (far, to, block))
