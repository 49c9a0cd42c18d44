"""Ranges and branches as `llvm-profgen --skip-symbolization` writes them.

Two sections, each a line with a count and that many rows, in the order of addresses: `from-to:N`
for ranges, `from->to:N` for branches. A branch from outside comes from address 1; one that leads
there is left out (LLVM: llvm/tools/llvm-profgen/PerfReader.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np

from lbr2pgo.model.branch_counts import FROM, TO, Branches, Runs, sum_by
from lbr2pgo.profiles.table_lines import table_lines
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.program.program import Program
from lbr2pgo.replay.llvm_code import disassembled_by_llvm
from lbr2pgo.replay.replay import Flow
from lbr2pgo.sources.code_addresses import text_base
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.output import PathLike, write_pieces

EXTERNAL = np.uint64(1)
"""ExternalAddr of LLVM: llvm/tools/llvm-profgen/PerfReader.h."""
RANGE, BRANCH = "%x-%x:%d", "%x->%x:%d"
"""Lines of both sections."""


@dataclass(frozen=True, slots=True)
class SeenRanges:
    """What llvm-profgen would see of a recording."""

    runs: Runs
    branches: Branches


def seen_by_llvm(flow: Flow, program: Program) -> SeenRanges:
    """Valid runs and branches of the code that llvm-profgen disassembles."""
    runs, branches, code = flow.judged.runs, flow.counts.branches(), disassembled_by_llvm(program)
    is_start = flow.instructions.index_of
    rows = flow.judged.valid & (code.around(runs.start) >= 0)
    is_from = (is_start(branches.from_) >= 0) & (code.around(branches.from_) >= 0)
    is_to = (is_start(branches.to) >= 0) & (code.around(branches.to) >= 0)
    known = branches.known & (np.where(is_from, FROM, 0) | np.where(is_to, TO, 0))
    return SeenRanges(
        Runs(runs.start[rows], runs.end[rows], runs.count[rows]),
        replace(branches, known=known.astype(np.uint8)),
    )


def write(
    seen: SeenRanges,
    layout: ImageLayout,
    destination: PathLike | BinaryIO,
    *,
    use_offsets: bool = True,
) -> None:
    """Write what was seen of the image with this layout; equal counts make equal bytes.

    With `use_offsets` addresses are counted from the first executable segment, as llvm-profgen
    reads them unless told otherwise; without, they are as linked. Raises OutputError where the
    destination can't be written.
    """
    base = np.uint64(text_base(layout) if use_offsets else 0)
    lines = (*_ranges(seen.runs, base), *_branches(seen.branches, base))
    write_pieces(destination, lines)


def _ranges(runs: Runs, base: np.uint64) -> Iterator[bytes]:
    rows = runs.end >= runs.start
    columns = [runs.start - base, runs.end - base, runs.count]
    return section(RANGE, [column[rows] for column in columns])


def _branches(branches: Branches, base: np.uint64) -> Iterator[bytes]:
    rows = branches.known & TO != 0
    source = np.where(branches.known & FROM, branches.from_, EXTERNAL)[rows]
    (source, to), (count,) = sum_by((source, branches.to[rows]), (branches.count[rows],))
    return section(BRANCH, [source - base, to - base, count])


def section(form: str, columns: Sequence[U64], indent: str = "") -> Iterator[bytes]:
    """How many rows there are, and each of them, behind an indentation."""
    yield f"{indent}{len(columns[0])}\n".encode()
    yield from table_lines(indent + form, columns)
