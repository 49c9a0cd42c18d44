"""Whether a recording kept one kind of branch alone, though nothing in its file says so.

Text of `perf script` tells of a filter (`perf record -j`) or of call stacks in its header only.
Without it, both show in the data: all branches are of one kind, and what runs between them passes
others that a recorder of all branches would have logged.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.model.doubts import Doubt
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.replay.replay import Flow

_FEWEST = 1000
"""Taken branches; a short loop may hold one kind alone."""
_PASSED = 0.05
"""Share of fall-throughs over other branches from which on it can't be chance or damage."""

_KEPT = (
    ((Kind.COND,), "conditional branches (-j cond)"),
    ((Kind.CALL, Kind.INDIRECT_CALL), "calls (-j any_call), or call stacks"),
    ((Kind.INDIRECT_CALL, Kind.INDIRECT_JUMP), "indirect branches (-j ind_call, ind_jmp)"),
    ((Kind.RET,), "returns (-j any_ret)"),
    ((Kind.JUMP,), "direct jumps"),
)


def unlogged(flow: Flow) -> Doubt | None:
    """What the recording seems to be of alone, and why; None where it is of all branches."""
    kept = _only_kind(flow)
    count, judged = flow.judged.runs.count, flow.judged
    passing = int(count[judged.is_suspicious | ~judged.valid].sum())
    total = int(count.sum())
    if kept is None or passing < max(_PASSED * total, 1):
        return None
    return Doubt(
        f"the recording seems to hold {kept} alone: no other branch is in it, and "
        f"{passing / total:.0%} of its fall-throughs pass some that were not logged"
    )


def _only_kind(flow: Flow) -> str | None:
    kind = np.append(flow.instructions.kind, Kind.OTHER)[flow.branch_from]
    is_branch = kind != Kind.OTHER
    if int(flow.branches.count[is_branch].sum()) < _FEWEST:
        return None
    kinds = set(kind[is_branch].tolist())
    return next((words for of, words in _KEPT if kinds <= set(of)), None)
