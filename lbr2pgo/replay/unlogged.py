"""Whether a recording kept some kinds of branches alone, though nothing in its file says so.

Text of `perf script` tells of a filter (`perf record -j`) or of call stacks in its header only.
Without it, both show in the data: branches of some kinds are nowhere, and what runs between the
others contradicts the code where it comes to such a one, which a recorder of all would have logged.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from lbr2pgo.model.doubts import Doubt
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.sums import exact_sum

_FEWEST = 1000
"""Taken branches; a short loop may hold one kind alone."""
_PASSED = 0.05
"""Share of fall-throughs over other branches from which on it can't be chance or damage."""
_ALWAYS_TAKEN = (
    Kind.JUMP, Kind.CALL, Kind.RET, Kind.INDIRECT_JUMP, Kind.INDIRECT_CALL,
)  # fmt: skip
_KINDS = (*_ALWAYS_TAKEN, Kind.COND)

_FILTERS = (
    ((Kind.COND,), "conditional branches (-j cond)"),
    ((Kind.CALL, Kind.INDIRECT_CALL), "calls (-j any_call), or call stacks,"),
    ((Kind.INDIRECT_CALL, Kind.INDIRECT_JUMP), "indirect branches (-j ind_call, ind_jmp)"),
    ((Kind.RET,), "returns (-j any_ret)"),
)
_NAMES = {
    Kind.COND: "conditional branches",
    Kind.JUMP: "direct jumps",
    Kind.INDIRECT_JUMP: "indirect jumps",
    Kind.CALL: "calls",
    Kind.INDIRECT_CALL: "indirect calls",
    Kind.RET: "returns",
}


def unlogged(flow: Flow) -> Doubt | None:
    """What the recording seems to be of alone, and why; None where it is of all branches."""
    kinds, count = _kinds(flow), flow.judged.runs.count
    passing = exact_sum(count[_passes(flow, kinds)]) if kinds else 0
    total = exact_sum(count)
    if passing < max(_PASSED * total, 1):
        return None
    return Doubt(
        f"the recording seems to hold {_words(kinds)} in it, and "
        f"{passing / total:.0%} of its fall-throughs pass some that were not logged"
    )


def _kinds(flow: Flow) -> Set[int]:
    """Of recorded branches; none where these are too few to tell."""
    kind = flow.branch_kind
    is_branch = kind != Kind.OTHER
    if exact_sum(flow.branches.count[is_branch]) < _FEWEST:
        return set()
    return set(kind[is_branch].tolist())


def _passes(flow: Flow, logged: Set[int]) -> Bools:
    """(n,): whether a fall-through that contradicts the code comes to a branch never logged.

    That is to one of a kind that is nowhere, before any that is always taken, and logged.
    """
    judged = flow.judged
    wrong = (judged.first >= 0) & (~judged.valid | judged.is_suspicious)
    first = judged.first[wrong]
    lacking = _next_of(flow, [kind for kind in _KINDS if kind not in logged], first)
    taken = _next_of(flow, [kind for kind in _ALWAYS_TAKEN if kind in logged], first)
    wrong[wrong] = lacking < taken
    return wrong


def _next_of(flow: Flow, kinds: Sequence[Kind], first: I64) -> I64:
    """(n,): the first instruction of these kinds from each of others on; past the last for none."""
    kind = flow.instructions.kind
    rows = np.flatnonzero(np.isin(kind, kinds))
    found: I64 = np.append(rows, len(kind))[np.searchsorted(rows, first)]
    return found


def _words(kinds: Set[int]) -> str:
    for of, words in _FILTERS:
        if kinds <= set(of):
            return f"{words} alone: no other branch is"
    *lacking, last = (name for kind, name in _NAMES.items() if kind not in kinds)
    return f"some kinds alone: no {', '.join(lacking)}{' and no ' if lacking else ''}{last} are"
