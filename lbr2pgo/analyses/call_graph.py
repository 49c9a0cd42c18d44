"""Hot call edges as a tree: who makes functions hot, from branches, without call stacks.

A branch stack knows who calls whom how often, and which instructions ran in each function. As gprof
does, a function's instructions are shared among its callers by how often each called it: that is
right as long as all calls of a function cost the same (Graham, Kessler, McKusick: gprof, 1982).
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.analyses.call_edges import called_regions
from lbr2pgo.analyses.call_stacks import ROOT, Node
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.hot_functions import function_totals
from lbr2pgo.support.arrays import F64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.sums import sums_of_pairs

_SMALLEST = 0.0005
"""Parts of all instructions that are too small to be followed."""
_DEEPEST = 40

Calls = dict[int, list[tuple[int, float]]]
"""Of each caller its callees, and which part of all calls of the callee it makes."""


def call_graph_tree(evidence: Evidence) -> Node | None:
    """The tree; None where nothing is known of what ran between branches."""
    own = function_totals(evidence).instructions.astype(np.int64)
    if not own.any():
        return None
    calls, called = _calls(evidence)
    work = _Work(evidence, own.tolist(), calls, _SMALLEST * float(own.sum()))
    root = Node(ROOT)
    left = own.astype(np.float64)
    starts = [int(f) for f in np.argsort(-own, kind="stable") if own[f] and f not in called]
    for function in starts:
        work.follow(root, function, 1.0, left)
    # What is called in circles only, or from parts too small to follow, stands for itself.
    for function in np.flatnonzero(left > work.least).tolist():
        work.add(root, function, left[function])
    return root


def _calls(evidence: Evidence) -> tuple[Calls, set[int]]:
    """Edges between different functions of the image."""
    caller, callee, rows = called_regions(evidence)
    chosen = (caller >= 0) & (callee >= 0) & (caller != callee)
    count = evidence.flow.branches.count[rows[chosen]]
    caller, callee, count = sums_of_pairs(caller[chosen], callee[chosen], count)
    totals = np.bincount(callee, count.astype(np.float64))
    calls: Calls = {}
    columns = (caller.tolist(), callee.tolist(), count.tolist())
    for source, target, number in zip(*columns, strict=True):
        calls.setdefault(source, []).append((target, number / totals[target]))
    return calls, set(callee.tolist())


@dataclass(frozen=True, slots=True)
class _Work:
    evidence: Evidence
    own: list[int]
    calls: Calls
    least: float

    def follow(self, root: Node, function: int, part: float, left: F64) -> None:
        """Hang a function's part, and those of what it calls, below a node; `left` shrinks."""
        waiting: list[tuple[tuple[Node, ...], tuple[int, ...], int, float]] = [
            ((root,), (), function, part)
        ]
        while waiting:
            above, path, region, share = waiting.pop()
            amount = self.own[region] * share
            left[region] -= amount
            node = self.add(above[-1], region, amount, above[:-1])
            inside = (*path, region)
            if len(inside) < _DEEPEST:
                waiting += [
                    ((*above, node), inside, callee, share * of)
                    for callee, of in self.calls.get(region, ())
                    if callee not in inside and share * of * self.heaviest(callee) > self.least
                ]

    def heaviest(self, function: int) -> float:
        """A bound from below of what hangs on a function: itself and its callees."""
        return self.own[function] + sum(
            self.own[callee] * of for callee, of in self.calls.get(function, ())
        )

    def add(self, parent: Node, region: int, amount: float, above: tuple[Node, ...] = ()) -> Node:
        """Count instructions of a function below a node, and in all nodes above."""
        name = self.evidence.names.region(region)
        node = parent.below.setdefault(name, Node(name))
        whole = round(amount)
        for each in (*above, parent, node):
            each.total += whole
        node.own += whole
        return node
