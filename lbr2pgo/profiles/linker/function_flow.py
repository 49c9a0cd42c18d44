"""How much each function ran, and who called it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.model.branch_counts import TO
from lbr2pgo.profiles.linker.function_order import FunctionCalls
from lbr2pgo.program.code.regions import Functions
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.sums import add_at, multiplied
from lbr2pgo.support.tables import same_length, seal


@dataclass(frozen=True, slots=True)
class FunctionFlow:
    """Functions that ran, ordered by address, with those that they were split into; (f,) each."""

    function: I64
    size: U64
    """Bytes of it that ran."""
    weight: U64
    """Bytes that ran, as often as they did."""
    calls: FunctionCalls
    """By places in these columns."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "function", "size", "weight")


def function_flow(flow: Flow, functions: Functions) -> FunctionFlow:
    """Add counts up by function."""
    code = flow.instructions
    owner = _roots(functions.containing(code.address), functions)
    ran = np.flatnonzero((flow.executed > 0) & (owner >= 0))
    function, place = np.unique(owner[ran], return_inverse=True)
    size, weight = np.zeros((2, len(function)), np.uint64)
    add_at(size, place, code.size[ran].astype(np.uint64))
    add_at(weight, place, multiplied(flow.executed[ran], code.size[ran].astype(np.uint64)))
    number = np.full(len(functions) + 1, -1)
    number[function] = np.arange(len(function))
    return FunctionFlow(function, size, weight, _calls(flow, functions, number))


def _roots(place: I64, functions: Functions) -> I64:
    return np.append(functions.parent, -1)[place]  # the last one: of no function


def _calls(flow: Flow, functions: Functions, number: I64) -> FunctionCalls:
    """Branches to where functions begin, from other functions that ran or from themselves."""
    branches = flow.branches
    rows = np.flatnonzero((flow.branch_from >= 0) & (branches.known & TO != 0))
    target = functions.containing(branches.to[rows])
    is_root = target >= 0
    is_root[is_root] = functions.start[target[is_root]] == branches.to[rows[is_root]]
    is_root &= _roots(target, functions) == target
    caller = number[_roots(functions.containing(branches.from_[rows]), functions)]
    callee = number[np.where(is_root, target, -1)]
    made = (caller >= 0) & (callee >= 0) & (caller != callee)
    return FunctionCalls(caller[made], callee[made], branches.count[rows[made]]).summed()
