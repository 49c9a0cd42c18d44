"""Which callers make a function hot: its contexts, as trees from the function outwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from lbr2pgo.analyses.call_stacks import NOT_RECORDED, NamedStack, Node, named_stacks
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.places import OUTSIDE
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, empty
from lbr2pgo.evidence.call_stacks import CALL_STACKS

NAME = "callers"
TITLE = "Callers of hot functions"

MOST_FUNCTIONS = 5
"""How many of the hottest functions have a tree where none is asked for."""
SMALLEST = 0.01
"""Callers with a smaller share of the function's samples are not listed."""
DEEPEST = 12
"""Nor are those further out."""

_COLUMNS = (
    Column("depth", "depth", Unit.COUNT),
    Column("function", "function, its callers below", Unit.FUNCTION, FIGURE),
    Column("share", "of its samples", Unit.SHARE, FIGURE),
    Column("total", "samples with callees", Unit.COUNT),
    Column("own", "samples itself", Unit.COUNT),
)
_NOTES = (
    "Below each function stand its callers, below these theirs. Samples are those of the function "
    "at depth 0 that came along this way; a function that calls itself stands there once.",
)


def callers(evidence: Evidence, top: int | None = TOP) -> Table:
    """Trees of callers: of the function that was asked for, else of the hottest ones.

    `top` of None lists all callers of all functions.
    """
    if evidence.found(CALL_STACKS) is None:
        return empty(NAME, TITLE, _COLUMNS, NOT_RECORDED)
    stacks = list(named_stacks(evidence))
    trees = _trees(stacks, _shown(evidence, stacks, top))
    rows = tuple(row for root in trees for row in _rows(root, is_whole=top is None))
    return Table(NAME, TITLE, _COLUMNS, rows, _NOTES)


def _shown(evidence: Evidence, stacks: Sequence[NamedStack], top: int | None) -> list[str]:
    """The functions that have a tree, the hottest first."""
    if evidence.function is not None:
        return [evidence.names.region(int(evidence.program.regions.parent[evidence.function]))]
    own: Counter[str] = Counter()
    for stack, count in stacks:
        own[stack[-1]] += count
    least = 0.0 if top is None else SMALLEST * own.total()
    hot = sorted((n for n in own if own[n] >= least), key=lambda name: (-own[name], name))
    return [name for name in hot if name != OUTSIDE][: None if top is None else MOST_FUNCTIONS]


def _trees(stacks: Sequence[NamedStack], names: Sequence[str]) -> list[Node]:
    """Of these functions, each from its newest call outwards, those that were seen."""
    roots = {name: Node(name) for name in names}
    for stack, count in stacks:
        outwards = [each for each, _ in groupby(reversed(stack))]
        for place, name in _newest(outwards):
            if name in roots:
                for node in roots[name].along(outwards[place + 1 :]):
                    node.total += count
                    node.own += 0 if place else count
    return [root for root in roots.values() if root.total]


def _newest(outwards: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The innermost place of each function in a stack."""
    seen: set[str] = set()
    for place, name in enumerate(outwards):
        if name not in seen:
            seen.add(name)
            yield place, name


def _rows(root: Node, *, is_whole: bool) -> Iterator[tuple[int, str, float, int, int]]:
    least = 0.0 if is_whole else SMALLEST * root.total
    for depth, node in root.walk(least, None if is_whole else DEEPEST):
        yield depth, node.name, node.total / root.total, node.total, node.own
