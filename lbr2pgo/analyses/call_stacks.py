"""Who was running, called by whom, from call-stack recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, empty
from lbr2pgo.evidence.call_stacks import CALL_STACKS

NAME = "call-stacks"
TITLE = "Call stacks"

ROOT = "[all]"
OUTSIDE = -1
"""In place of the region of code that no symbol names; less the number of its file elsewhere."""
SMALLEST = 0.005
"""Branches of the tree with a smaller share of all samples are not listed."""

_FUNCTIONS = (
    Column("total_share", "with callees", Unit.SHARE, FIGURE),
    Column("own_share", "itself", Unit.SHARE, FIGURE),
    Column("total", "samples with callees", Unit.COUNT),
    Column("own", "samples itself", Unit.COUNT),
    Column("function", "function", Unit.FUNCTION, FIGURE),
)
NOT_RECORDED = (
    "The recording holds no call stacks: record with lbr2pgo record --call-graph, or perf record "
    "--call-graph lbr (Intel)."
)


NamedStack = tuple[tuple[str, ...], int]
"""A call stack by names, outermost caller first, and how many samples had it."""


@dataclass(slots=True)
class Node:
    """One function, called the way down from the root; or calling it, in a tree of callers."""

    name: str
    total: int = 0
    """Samples in it and in what it called."""
    own: int = 0
    below: dict[str, Node] = field(default_factory=dict)

    def along(self, path: Iterable[str]) -> list[Node]:
        """The nodes down a path, with itself first; made where there are none."""
        nodes = [self]
        for name in path:
            below = nodes[-1].below
            if name not in below:
                below[name] = Node(name)
            nodes.append(below[name])
        return nodes

    def ordered(self) -> list[Node]:
        """Those below, largest total first."""
        return sorted(self.below.values(), key=lambda node: (-node.total, node.name))

    def walk(self, least: float = 0, deepest: int | None = None) -> Iterator[tuple[int, Node]]:
        """Itself and all below it with their depths, without those of fewer samples."""
        waiting = [(0, self)]
        while waiting:
            depth, node = waiting.pop()
            if node.total >= least:
                yield depth, node
                if deepest is None or depth < deepest:
                    waiting += [(depth + 1, each) for each in reversed(node.ordered())]


def named_stacks(evidence: Evidence) -> Iterator[NamedStack]:
    """Each call stack; of one function, those that it is in."""
    chosen = evidence.function
    root = None if chosen is None else int(evidence.program.regions.parent[chosen])
    names: dict[int, str] = {}
    for stack, count in evidence.whole.once(_by_function).items():
        if root is None or root in stack:
            for function in stack:
                if function not in names:
                    names[function] = _name(evidence, function)
            yield tuple(names[function] for function in stack), count


def _by_function(evidence: Evidence) -> dict[tuple[int, ...], int]:
    """Samples of each stack of regions, or OUTSIDE less the number of a file; ascending."""
    found = evidence.found(CALL_STACKS)
    if found is None:
        return {}
    regions = evidence.program.regions
    region = regions.containing(found.address)
    is_known = found.is_inside & (region >= 0)
    outside = OUTSIDE - np.maximum(found.file, 0)
    function = np.where(is_known, regions.parent[region], outside).tolist()
    total: Counter[tuple[int, ...]] = Counter()
    for stack, count in zip(found.stacks, found.count, strict=True):
        total[_joined([function[frame] for frame in stack])] += count
    return dict(sorted(total.items()))


def _joined(stack: list[int]) -> tuple[int, ...]:
    """One frame for neighbours in one file outside: what they are can't be told apart.

    >>> _joined([-1, -1, 5, 5, -1])
    (-1, 5, 5, -1)
    """
    return tuple(
        frame for i, frame in enumerate(stack) if frame > OUTSIDE or i == 0 or stack[i - 1] != frame
    )


def _name(evidence: Evidence, function: int) -> str:
    names = evidence.names
    return names.region(function) if function >= 0 else names.outside(OUTSIDE - function)


def tree(evidence: Evidence) -> Node:
    """All call stacks as one tree below `ROOT`."""
    root = Node(ROOT)
    for stack, count in named_stacks(evidence):
        nodes = root.along(stack)
        for node in nodes:
            node.total += count
        nodes[-1].own += count
    return root


def folded(evidence: Evidence) -> list[tuple[str, int]]:
    """Call stacks as `outer;inner`, with their samples: what flame graph tools read."""
    lines: dict[str, int] = {}
    for stack, count in named_stacks(evidence):
        text = ";".join(name.replace(";", ":") for name in stack)
        lines[text] = lines.get(text, 0) + count
    return sorted(lines.items())


def call_stacks(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """Tables of functions with and without their callees, of the tree, and of folded stacks."""
    if evidence.found(CALL_STACKS) is None:
        return (empty(NAME, TITLE, _FUNCTIONS, NOT_RECORDED),)
    root = evidence.once(tree)
    notes = (
        "Callers beyond what the recorder keeps (its ring, or 127 frames) are cut off. Samples "
        "without any recorded call are left out.",
    )
    return _functions(evidence, root.total, top, notes), _tree(root), _folded(evidence, top)


def _functions(evidence: Evidence, all_: int, top: int | None, notes: tuple[str, ...]) -> Table:
    """As `perf report --children`: a function counts once a stack, however often it is in it."""
    total: dict[str, int] = {}
    own: dict[str, int] = {}
    for stack, count in named_stacks(evidence):
        for name in set(stack):
            total[name] = total.get(name, 0) + count
        own[stack[-1]] = own.get(stack[-1], 0) + count
    ordered = sorted(total, key=lambda name: (-total[name], name))
    shown = ordered[:top]
    rows = tuple((total[n] / all_, own.get(n, 0) / all_, total[n], own.get(n, 0), n) for n in shown)
    return Table(NAME, TITLE, _FUNCTIONS, rows, notes, len(ordered))


def _tree(root: Node) -> Table:
    """Callers above what they called, with depth; small branches left out."""
    rows = [
        (depth - 1, node.name, node.total / root.total, node.total, node.own)
        for depth, node in root.walk(SMALLEST * root.total)
        if depth
    ]
    columns = (
        Column("depth", "depth", Unit.COUNT),
        Column("function", "function", Unit.FUNCTION, FIGURE),
        Column("total_share", "with callees", Unit.SHARE, FIGURE),
        Column("total", "samples with callees", Unit.COUNT),
        Column("own", "samples itself", Unit.COUNT),
    )
    return Table(f"{NAME}-tree", "Call tree", columns, tuple(rows))


def _folded(evidence: Evidence, top: int | None) -> Table:
    lines = sorted(folded(evidence), key=lambda line: (-line[1], line[0]))
    columns = (
        Column("samples", "samples", Unit.COUNT, FIGURE),
        Column("stack", "stack, outermost first", Unit.TEXT, FIGURE),
    )
    rows = tuple((count, text) for text, count in lines[:top])
    return Table(f"{NAME}-folded", "Most frequent call stacks", columns, rows, (), len(lines))
