"""Source lines whose conditional branches are mispredicted, and how often.

A branch stack holds taken branches only, so what is said of those that fell through is presumed. A
predictor errs there where it says "taken". It learns to say so about as often as it is true, and
then it errs in either direction equally often. And where outcomes are as if thrown by dice, it says
so as often before a branch that falls through as before one that is taken, of which it is known.
The smaller number is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from lbr2pgo.profiles.llvm.correlate import counts_by_line, uses_fs_discriminators
from lbr2pgo.profiles.llvm.discriminators import base_discriminator
from lbr2pgo.profiles.llvm.profile_table import ProfileTable
from lbr2pgo.profiles.llvm.text import place_text
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.dwarf.debug_info import DebugInfo, InlineFrames
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import F64, I64, U32, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct_rows, order_of
from lbr2pgo.support.printable import printable
from lbr2pgo.support.sums import sums_at
from lbr2pgo.support.tables import Tabular, table, taken

ONE_IN = 1000
"""A line with a smaller part of all mispredictions is not worth a hint."""


@table
class Conditions(Tabular):
    """Conditional branches that ran, by address; (n,) each."""

    address: PlacedAddresses
    executed: U64
    mispredicted: U64


def conditions(flow: Flow) -> Conditions:
    """Those of a flow."""
    code = flow.instructions
    rows = np.flatnonzero((code.kind == Kind.COND) & (flow.jumped + flow.not_taken > 0))
    unknown = sums_at(flow.branch_from, flow.branches.prediction_unknown, len(code))[rows]
    told = flow.taken[rows] - np.minimum(unknown, flow.taken[rows])
    share = np.minimum(flow.mispredicted[rows] / np.maximum(told, 1), 1)
    jumped, fell = flow.jumped[rows], flow.not_taken[rows]
    missed = np.rint(presumed(jumped, fell, share)).astype(np.uint64)
    return Conditions(code.address[rows], jumped + fell, missed)


def presumed(jumped: U64, fell: U64, share: F64) -> F64:
    """How often branches (n,) were mispredicted, by the share that was when they jumped.

    Dice by which half, a fifth and four fifths jump; and a loop whose end was never seen coming.

    >>> jumped, fell = np.array([500, 200, 800, 500]), np.array([500, 800, 200, 100])
    >>> presumed(jumped, fell, np.array([0.5, 0.95, 0.05, 0]))
    array([500., 230.,  80.,   0.])
    """
    seen = jumped * share
    found: F64 = seen + np.minimum(seen, fell * (1 - share))
    return found


@dataclass(frozen=True, slots=True)
class Hints:
    """Lines that are mispredicted often, most mispredictions first."""

    rows: tuple[str, ...]
    """Place, function, executions, mispredictions and their rate, between tabs."""
    table: ProfileTable
    """Mispredictions by place, as LLVM counts them."""
    lost: Mapping[str, int]
    """Mispredictions that are in none of these, by the reason."""
    total: int


def hints(flow: Flow, program: Program, debug: DebugInfo, percent: int) -> Hints:
    """Lines with so many mispredictions in a hundred executions, or more."""
    branches = conditions(flow)
    lines = _lines(branches, debug, is_fs=uses_fs_discriminators(program))
    missed, total = lines.mispredicted, int(branches.mispredicted.sum())
    lost = {
        "no_line": ~lines.is_known,
        "seldom": missed < lines.executed * (percent / 100),
        "few": missed * np.uint64(ONE_IN) < total,
    }
    why = np.select(list(lost.values()), list(lost), "")
    rows = np.flatnonzero(why == "")
    chosen = taken(branches, np.isin(lines.group, rows))
    return Hints(
        tuple(lines.texts(rows[order_of(~missed[rows])])),
        counts_by_line(chosen.address, chosen.mispredicted, program, debug),
        {reason: int(missed[why == reason].sum()) for reason in lost},
        total,
    )


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines, and discriminators of one, of conditional branches; (g,) each but the first."""

    group: I64
    """(n,): which one each branch is of."""
    executed: U64
    mispredicted: U64
    frame: I64
    """Of one branch: index into the frames, -1 where there is none."""
    discriminator: U32
    frames: InlineFrames

    @property
    def is_known(self) -> Bools:
        """Line 0 is code that the compiler merged from several."""
        known: Bools = np.append(self.frames.line, np.uint32(0))[self.frame] > 0
        return known

    def texts(self, rows: I64) -> Iterator[str]:
        """What is known of these, which all have a line, between tabs."""
        frame, frames = self.frame[rows], self.frames
        columns = (
            frames.file[frame], frames.line[frame], self.discriminator[rows],
            frames.function[frame], self.executed[rows], self.mispredicted[rows],
        )  # fmt: skip
        for file, line, discriminator, name, executed, missed in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            place = f"{printable(frames.files[file])}:{place_text((line, discriminator))}"
            name = printable(frames.names[name])
            yield f"{place}\t{name}\t{executed}\t{missed}\t{missed / executed:.3f}"


def _lines(branches: Conditions, debug: DebugInfo, *, is_fs: bool) -> _Lines:
    frames = debug.frames(branches.address)
    last = frames.offsets[1:] - 1
    frame = np.where(last >= frames.offsets[:-1], last, -1)
    words = np.append(frames.discriminator, np.uint32(0))[frame]
    discriminator = words if is_fs else base_discriminator(words)
    file, line = (np.append(column, -1)[frame] for column in (frames.file, frames.line))
    first, group = distinct_rows(file, line, discriminator)
    executed, missed = (
        sums_at(group, counts, len(first)) for counts in (branches.executed, branches.mispredicted)
    )
    return _Lines(group, executed, missed, frame[first], discriminator[first], frames)
