"""What the entries of an event's stacks are to each other, by the branch filter that it had."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.native.walk import StackKind
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.support.arrays import U8

_TYPE_FILTERS = ("any_call", "any_ret", "ind_call", "cond", "ind_jmp", "call")
_TRANSACTION_FILTERS = ("abort_tx", "in_tx", "no_tx")


def _has(filters: int, names: Sequence[str]) -> bool:
    return any(filters >> BRANCH_FILTER_BITS[name] & 1 for name in names)


def filter_names(event: EventInfo) -> tuple[str, ...]:
    """What an event's branch filter asked for, as `perf record -j` calls it."""
    filters = event.branch_sample_type or 0
    return tuple(name for name, bit in BRANCH_FILTER_BITS.items() if filters >> bit & 1)


def kind_of_stacks(event: EventInfo) -> StackKind:
    """What the entries of an event's stacks are to each other, by its branch filter.

    With a filter by branch type they are not neighbours in time, so only the branches themselves
    count; in call-stack mode not even these do. A filter by privilege keeps neighbours. Recorders
    of single branches have none either.
    """
    filters = event.branch_sample_type
    if event.records_single_branches:
        return StackKind.SELECTED
    if filters is None:
        return StackKind.CONSECUTIVE
    if _has(filters, ("call_stack",)):
        return StackKind.OPEN_CALLS
    is_any = _has(filters, ("any",))
    if _has(filters, _TRANSACTION_FILTERS) or (not is_any and _has(filters, _TYPE_FILTERS)):
        return StackKind.SELECTED
    return StackKind.CONSECUTIVE


def _silent_kind(events: Sequence[EventInfo]) -> StackKind:
    """The kind of stacks whose samples don't say their event."""
    is_single = bool(events) and all(event.records_single_branches for event in events)
    return StackKind.SELECTED if is_single else StackKind.CONSECUTIVE


def kinds_of_events(events: Sequence[EventInfo], *, as_llvm: bool) -> U8:
    """The kind of each event's stacks, and behind them that of samples that don't say theirs."""
    kinds = [*map(kind_of_stacks, events), _silent_kind(events)]
    return np.array([StackKind.AS_LLVM] * len(kinds) if as_llvm else kinds, dtype=np.uint8)
