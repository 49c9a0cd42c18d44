"""Ranges and branches as `llvm-profgen --skip-symbolization` writes them.

Two sections, each a line with a count and that many rows, in the order of addresses: `from-to:N`
for ranges, `from->to:N` for branches. A branch from outside the image comes from address 1; one
that leaves it is left out (LLVM: llvm/tools/llvm-profgen/PerfReader.cpp).
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from lbr2pgo.model.branch_counts import FROM, TO, BranchCounts
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.code_addresses import text_base
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.output import PathLike, write_to

_EXTERNAL = 1
"""ExternalAddr of LLVM: llvm/tools/llvm-profgen/PerfReader.h."""


def write(
    counts: BranchCounts,
    layout: ImageLayout,
    destination: PathLike | BinaryIO,
    *,
    use_offsets: bool = True,
) -> None:
    """Write the counts of the image with this layout; equal counts make equal bytes.

    With `use_offsets` addresses are counted from the first executable segment, as llvm-profgen
    reads them unless told otherwise; without, they are as linked. Raises OutputError where the
    destination can't be written.
    """
    base = np.uint64(text_base(layout) if use_offsets else 0)
    text = _ranges(counts, base) + _branches(counts, base)
    write_to(destination, lambda stream: _write(stream, text))


def _write(stream: BinaryIO, text: str) -> None:
    stream.write(text.encode())


def _ranges(counts: BranchCounts, base: np.uint64) -> str:
    runs = counts.runs()
    forward = runs.end >= runs.start
    table = np.stack([runs.start - base, runs.end - base, runs.count], axis=1)[forward]
    return _section(table, "%x-%x:%d\n")


def _branches(counts: BranchCounts, base: np.uint64) -> str:
    branches = counts.branches()
    source = np.where(branches.known & FROM, branches.from_, np.uint64(_EXTERNAL))
    rows = np.flatnonzero(branches.known & TO)
    rows = rows[np.lexsort((branches.to[rows], source[rows]))]
    return _section(
        np.stack([source - base, branches.to - base, branches.count], axis=1)[rows], "%x->%x:%d\n"
    )


def _section(table: U64, form: str) -> str:
    return f"{len(table)}\n" + "".join([form % tuple(row) for row in table.tolist()])
