"""Text with one entry a line: a stack that somebody printed for people to read.

perf puts all entries of a sample on one line, newest first. Listings in books and talks have a line
for each, and mostly the oldest first, as time goes. That a line holds one entry may also mean that
samples hold one. Addresses tell: from the target of a branch, code runs on to the source of the
next one, which lies a little behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

import numpy as np

from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.support.addresses import runtime_addresses
from lbr2pgo.support.arrays import U64, Bools

_ENTRY = re.compile(rb"[ \t]*(0x[0-9a-f]{1,16})/(0x[0-9a-f]{1,16})(?:/\S*)?[ \t]*\r?")
_REACH = 1 << 16
"""Bytes that code runs on without a taken branch, at most: no stack in the wild comes near it."""
_SHARE = 0.75
"""How many of the neighbours must follow each other; hardware stacks break off now and then."""


class Order(Enum):
    """Which of two neighbouring lines is the later branch."""

    OLDEST_FIRST = "oldest first"
    NEWEST_FIRST = "newest first"


def order_of_listing(head: bytes) -> Order | None:
    """How the lines of a listing are ordered; None for any other text.

    Where both orders would do, as in a loop of one branch, time goes down the page.
    """
    lines = head.split(b"\n")[: None if head.endswith(b"\n") else -1]
    found = [_ENTRY.fullmatch(line) for line in lines if b"/0x" in line]
    pairs = [(int(m[1], 16), int(m[2], 16)) for m in found if m]
    if len(pairs) < max(2, len(found)):
        return None
    from_, to = np.array(pairs, np.uint64).T
    shares = {
        Order.OLDEST_FIRST: _runs_on(to[:-1], from_[1:]).mean(),
        Order.NEWEST_FIRST: _runs_on(to[1:], from_[:-1]).mean(),
    }
    best = max(shares, key=lambda order: shares[order])
    return best if shares[best] >= _SHARE else None


def as_stacks(batches: Iterable[BranchStacks], order: Order) -> BranchStacks:
    """The lines (n,) of a listing as stacks, cut where a line does not follow its neighbour."""
    lines = list(batches)
    entries = np.concatenate([batch.entries for batch in lines])
    time = np.repeat(
        np.concatenate([batch.time for batch in lines]),
        np.concatenate([np.diff(batch.offsets) for batch in lines]),
    )
    from_, to = entries[:, 0], entries[:, 1]
    is_older_first = order is Order.OLDEST_FIRST
    follows = _runs_on(to[:-1], from_[1:]) if is_older_first else _runs_on(to[1:], from_[:-1])
    first = np.flatnonzero(np.append(True, ~follows)[: len(entries)])
    offsets = np.append(first, len(entries))
    if is_older_first:
        size = np.diff(offsets)
        entries = entries[np.repeat(offsets[:-1] + offsets[1:] - 1, size) - np.arange(len(entries))]
    unknown = np.full(len(first), -1, np.int32)
    return BranchStacks(
        entries=entries,
        offsets=offsets,
        pid=unknown,
        tid=unknown,
        time=time[first],
        event=unknown,
        ip=runtime_addresses(np.zeros(len(first), np.uint64)),
        weight=np.ones(len(first), np.uint64),
    )


def _runs_on(to: U64, from_: U64) -> Bools:
    """Whether code may run from each target to the source of the next branch."""
    return (from_ >= to) & (from_ - to < _REACH)
