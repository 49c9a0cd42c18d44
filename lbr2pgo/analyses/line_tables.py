"""Hot branches, mispredictions and call edges of inputs that hold source lines and no addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lbr2pgo.analyses import call_edges, hot_branches, mispredictions
from lbr2pgo.analyses.confidence import wilson
from lbr2pgo.analyses.evidence import TOP
from lbr2pgo.analyses.table import FIGURE, Column, Table, Unit, Value, build, empty
from lbr2pgo.model.line_branches import LineBranches
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.sums import sums_at

_NO_ADDRESSES = (
    "The input holds branches by function and source line, and no addresses or stacks: branches of "
    "one line count as one, and nothing is known of the code between branches."
)
_MISSES = (
    Column("predicted", "predicted", Unit.COUNT),
    Column("mispredicted", "mispredicted", Unit.COUNT, FIGURE),
    Column("rate", "rate", Unit.SHARE, FIGURE),
    Column("rate_low", "at least", Unit.SHARE),
    Column("rate_high", "at most", Unit.SHARE),
)

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows summed by some of their texts, in the order of first appearance."""

    keys: tuple[Key, ...]
    samples: I64
    mispredicted: I64

    def most(self, by: I64) -> I64:
        """Rows with the largest value first, then those seen most often."""
        return np.lexsort((-self.samples, -by))

    def texts(self, rows: I64, column: int) -> list[Value]:
        """One text of each row; None where the input has none."""
        return [self.keys[row][column] or None for row in rows.tolist()]


def _grouped(
    branches: Sequence[LineBranches], key_of: Callable[[LineBranches], list[Key]]
) -> _Group:
    keys = [key for each in branches for key in key_of(each)]
    unique = tuple(dict.fromkeys(keys))
    place = {key: i for i, key in enumerate(unique)}
    rows = np.array([place[key] for key in keys], dtype=np.int64)
    columns = ((each.samples for each in branches), map(_missed, branches))
    sums = (
        sums_at(rows, np.concatenate([np.empty(0, np.int64), *column]), len(unique))
        for column in columns
    )
    return _Group(unique, *sums)


def _missed(branches: LineBranches) -> I64:
    if branches.mispredicted is None:
        return np.zeros(len(branches), dtype=np.int64)
    return branches.mispredicted


def _ends(b: LineBranches) -> list[Key]:
    columns = (
        b.source_function, b.source_line, b.source_module,
        b.target_function, b.target_line, b.target_module,
    )  # fmt: skip
    return list(zip(*columns, strict=True))


def line_hot_branches(branches: Sequence[LineBranches], top: int | None = TOP) -> Table:
    """Branches by how often they were seen."""
    group = _grouped(branches, _ends)
    rows = group.most(group.samples)[:top]
    columns = [
        *_shares(group.samples[rows], int(group.samples.sum())),
        *_places(group, rows, 0, "from_", "from "),
        *_places(group, rows, 3, "to_", "to "),
    ]
    name, title = hot_branches.NAME, hot_branches.TITLE
    return build(name, title, columns, notes=(_NO_ADDRESSES,), found=len(group.keys))


def line_mispredictions(branches: Sequence[LineBranches], top: int | None = TOP) -> Table:
    """Mispredictions by branch, most first."""
    name, title = mispredictions.NAME, mispredictions.TITLE
    if all(each.mispredicted is None for each in branches):
        return empty(name, title, _MISSES, "The input does not say which were mispredicted.")
    group = _grouped([b for b in branches if b.mispredicted is not None], _ends)
    rows = group.most(group.mispredicted)[:top]
    count, missed = group.samples[rows], group.mispredicted[rows]
    rate = missed / np.maximum(count, 1)
    low, high = wilson(rate, count.astype(np.float64))
    values = (count - missed, missed, rate, low, high)
    columns = [
        *((column, each.tolist()) for column, each in zip(_MISSES, values, strict=True)),
        *_places(group, rows, 0, "", ""),
    ]
    return build(name, title, columns, notes=(_NO_ADDRESSES,), found=len(group.keys))


def line_call_edges(branches: Sequence[LineBranches], top: int | None = TOP) -> Table:
    """Branches from one function into another, by caller and callee."""
    group = _grouped(
        branches, lambda b: list(zip(b.source_function, b.target_function, strict=True))
    )
    leaves = np.array([key[0] != key[1] for key in group.keys], dtype=np.bool_)
    total = int(group.samples[leaves].sum())
    order = group.most(group.samples)
    rows = order[leaves[order]][:top]
    columns = [
        *_shares(group.samples[rows], total),
        (Column("caller", "caller", Unit.FUNCTION, FIGURE), group.texts(rows, 0)),
        (Column("callee", "callee", Unit.FUNCTION, FIGURE), group.texts(rows, 1)),
    ]
    notes = (
        "Without addresses a call can't be told from a return: these are branches from one "
        "function into another, and recursion is not seen.",
        _NO_ADDRESSES,
    )
    found = int(leaves.sum())
    return build(call_edges.NAME, call_edges.TITLE, columns, notes=notes, found=found)


def _shares(count: I64, total: int) -> list[tuple[Column, list[Value]]]:
    return [
        (Column("share", "share", Unit.SHARE, FIGURE), (count / max(total, 1)).tolist()),
        (Column("count", "count", Unit.COUNT, FIGURE), count.tolist()),
    ]


def _places(
    group: _Group, rows: I64, first: int, prefix: str, title: str
) -> list[tuple[Column, list[Value]]]:
    """Function, line and module of one end of each branch."""
    kinds = (
        ("function", "function", Unit.FUNCTION),
        ("line", "source line", Unit.LOCATION),
        ("module", "module", Unit.TEXT),
    )
    return [
        (Column(prefix + name, title + text, kind), group.texts(rows, first + i))
        for i, (name, text, kind) in enumerate(kinds)
    ]


TABLES = {
    hot_branches.NAME: line_hot_branches,
    mispredictions.NAME: line_mispredictions,
    call_edges.NAME: line_call_edges,
}
"""The analyses that need no addresses."""
