"""Counts laid over a small program, from its bytes and a few traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from builders.elf import Function, elf

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, aggregate
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow, replay

Trace = tuple[int | None, int | None, int | None, int]
"""Source, target and end of the fall-through, from the code's start, None if unknown; count."""


def flow_of(
    where: Path, code: bytes, base: int, traces: Sequence[Trace], symbols: Sequence[Function]
) -> tuple[Flow, Program]:
    """The program, written into a directory, and the traces replayed on it."""
    path = where / "program"
    path.write_bytes(elf(code, base, symbols))
    columns = [
        np.array([0 if trace[i] is None else base + (trace[i] or 0) for trace in traces], np.uint64)
        for i in range(3)
    ]
    known = [
        sum(bit for bit, part in zip((FROM, TO, END), trace, strict=False) if part is not None)
        | BRANCH
        for trace in traces
    ]
    counted = np.array([trace[3] for trace in traces], np.uint64)
    program = Program.open(path)
    counts = aggregate(*columns, np.array(known, np.uint8), counted, np.zeros_like(counted))
    return replay(counts, program), program
