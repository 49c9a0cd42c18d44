"""Unsymbolized ranges and branches by calling context, as llvm-profgen writes them.

A block for each context, in the order of their names: the name in brackets, and the two sections
of `unsymbolized`, two blanks further in. Contexts are called by source lines, as in
`[main:3 @ parse:1 @ next]`, or, in programs with pseudo probes, by the addresses of calls, as in
`[0x7f4 @ 0x7bf]`, outermost first (LLVM: llvm/tools/llvm-profgen/PerfReader.cpp,
getContextKeyStr).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import numpy as np

from lbr2pgo.model.branch_counts import sum_by
from lbr2pgo.model.context_counts import ContextBranches, ContextCounts, ContextRuns
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.profiles.llvm.contexts._contexts import NO_LIMIT, CallPaths
from lbr2pgo.profiles.llvm.contexts.keys import MOST_FRAMES, NamedContexts
from lbr2pgo.profiles.unsymbolized.ranges_text import BRANCH, EXTERNAL, RANGE, section
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.program.program import Program
from lbr2pgo.replay.llvm_code import code_of_llvm
from lbr2pgo.sources.code_addresses import text_base
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.output import PathLike, write_pieces


def seen_by_llvm(counts: ContextCounts, program: Program) -> ContextCounts:
    """Runs and branches of the code that llvm-profgen disassembles."""
    is_code = code_of_llvm(program)
    runs, branches = counts.runs, counts.branches
    ran = is_code(runs.start) & is_code(runs.end)
    taken = is_code(branches.to)
    has_source = branches.has_source & is_code(branches.from_)
    return replace(
        counts,
        runs=ContextRuns(runs.node[ran], runs.start[ran], runs.end[ran], runs.count[ran]),
        branches=ContextBranches(
            np.where(has_source, branches.node, 0)[taken],
            branches.from_[taken],
            has_source[taken],
            branches.to[taken],
            branches.count[taken],
        ),
    )


def by_address(counts: ContextCounts, layout: ImageLayout) -> NamedContexts:
    """Contexts called by the addresses of calls, counted from the first executable segment."""
    callers, runs, branches = counts.callers, counts.runs, counts.branches
    sites, site = np.unique(callers.call, return_inverse=True)
    zero = np.zeros(1, np.int64)
    paths = CallPaths(
        np.stack((callers.parent, site.astype(np.int64)), axis=1), np.zeros(len(sites), np.int64),
        RowIds(), zero, zero[:0], MOST_FRAMES, NO_LIMIT, NO_LIMIT,
    )  # fmt: skip
    number = paths.number(np.arange(len(callers)), np.zeros(len(callers), np.int64))
    offset = [f"{address:#x}" for address in (sites - np.uint64(text_base(layout))).tolist()]
    names = [""]
    for parent, last, _ in paths.nodes.rows()[1:].tolist():
        names.append(f"{names[parent]} @ {offset[last]}" if parent else offset[last])
    return NamedContexts(
        tuple(name.encode() for name in names),
        replace(runs, node=number[runs.node]),
        replace(branches, node=number[branches.node]),
    )


def write(contexts: NamedContexts, layout: ImageLayout, destination: PathLike | BinaryIO) -> None:
    """Write contexts of the image with this layout; equal counts make equal bytes.

    Raises OutputError where the destination can't be written.
    """
    write_pieces(destination, _blocks(contexts, np.uint64(text_base(layout))))


def _blocks(contexts: NamedContexts, base: np.uint64) -> Iterator[bytes]:
    runs, branches = contexts.runs, contexts.branches
    source = np.where(branches.has_source, branches.from_, EXTERNAL)
    ranges = _summed(runs.node, runs.start, runs.end, runs.count)
    taken = _summed(branches.node, source, branches.to, branches.count)
    used = np.union1d(ranges[0], taken[0]).tolist()
    for node in sorted(used, key=contexts.names.__getitem__):
        yield b"[%b]\n" % contexts.names[node]
        for form, rows in ((RANGE, ranges), (BRANCH, taken)):
            first, past = np.searchsorted(rows[0], (node, node + 1))
            one, other, count = (column[first:past] for column in rows[1:])
            yield from section(form, [one - base, other - base, count], "  ")


def _summed(node: I64, one: U64, other: U64, count: U64) -> tuple[U64, U64, U64, U64]:
    (of, one, other), (sums,) = sum_by((node.astype(np.uint64), one, other), (count,))
    return of, one, other, sums
