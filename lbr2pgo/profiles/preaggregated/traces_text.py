"""BOLT's pre-aggregated profile in its trace (`T`) form, for `perf2bolt -pa`.

A trace's row has no place for mispredictions. They stand in a `B` row of the branch, whose count is
that of its traces without a known end, perhaps 0: BOLT adds them up by branch, and so does
`lbr2pgo.sources.preaggregated`. What lies outside the image is 0.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, OUTSIDE, RETURN, TO, BranchCounts, sum_by
from lbr2pgo.profiles.table_lines import table_lines
from lbr2pgo.support.arrays import U64, Bools
from lbr2pgo.support.output import PathLike, write_to

_UNKNOWN_END = 2**64 - 1
"""Trace::BR_ONLY of LLVM: bolt/include/bolt/Profile/DataAggregator.h."""


def write(counts: BranchCounts, destination: PathLike | BinaryIO) -> None:
    """Write counts as traces, branches and fall-throughs; equal counts make equal bytes.

    Raises OutputError where the destination can't be written.
    """
    write_to(destination, lambda stream: _write(counts, stream))


def _write(counts: BranchCounts, stream: BinaryIO) -> None:
    is_branch, is_return = counts.has(BRANCH), counts.has(RETURN)
    is_whole = is_branch & counts.has(TO | END)
    is_run = ~is_branch & counts.has(TO | END)
    for letter, rows in (("T", is_whole & ~is_return), ("R", is_branch & is_return)):
        end = np.where(is_whole, counts.end, np.uint64(_UNKNOWN_END))
        _write_rows(stream, letter, (counts.from_, counts.to, end), counts.count, rows)
    _write_branches(counts, ~is_whole & is_branch & ~is_return, stream)
    is_outside = counts.has(OUTSIDE)
    run_kinds = (
        ("F", ~is_outside & ~is_return),
        ("f", is_outside & ~is_return),
        ("r", is_return),
    )
    for letter, rows in run_kinds:
        _write_rows(stream, letter, (counts.to, counts.end), counts.count, is_run & rows)


def _write_branches(counts: BranchCounts, is_open: Bools, stream: BinaryIO) -> None:
    """Write a `B` row for every branch with traces without an end, or with mispredictions."""
    rows = is_open | (counts.mispredicted > 0)
    taken = np.where(is_open, counts.count, np.uint64(0))
    known = counts.known[rows] & (FROM | TO)
    keys, sums = sum_by(
        (counts.from_[rows], counts.to[rows], known.astype(np.uint64)),
        (taken[rows], counts.mispredicted[rows]),
    )
    everything = np.ones(len(keys[0]), dtype=np.bool_)
    _write_rows(stream, "B", keys[:2], sums[0], everything, sums[1])


def _write_rows(
    stream: BinaryIO,
    letter: str,
    addresses: tuple[U64, ...],
    count: U64,
    rows: Bools,
    mispredicted: U64 | None = None,
) -> None:
    """Write rows of one letter: hexadecimal addresses, then decimal counts."""
    numbers = [count] if mispredicted is None else [count, mispredicted]
    form = " ".join([letter, *["%x"] * len(addresses), *["%d"] * len(numbers)])
    stream.writelines(table_lines(form, [column[rows] for column in (*addresses, *numbers)]))
