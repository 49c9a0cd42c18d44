"""A function's instructions with their source locations and, from a recording, their counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lbr2pgo.analyses.table import percentage
from lbr2pgo.dumping.labels import BranchLabels
from lbr2pgo.profiles.llvm.correlate import uses_fs_discriminators
from lbr2pgo.profiles.llvm.discriminators import base_discriminator, duplication_factor
from lbr2pgo.program.code.decode import text
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.dwarf.debug_info import DebugInfo, InlineFrames
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import INDIRECT, Flow
from lbr2pgo.support.addresses import ByteRanges, ImageAddress
from lbr2pgo.support.counted import counted

_COUNT_WIDTH = 12
_BYTES_WIDTH = 30
_TEXT_WIDTH = 44


def lines(
    program: Program, debug: DebugInfo, function: int, flow: Flow | None = None
) -> Iterator[str]:
    """A region of the program and all that was split off it; counts if there is a flow."""
    labels = BranchLabels(program)
    if not debug.present:
        yield f"no source locations: {debug.missing_reason}"
    for part in program.regions.families(np.array([function])).tolist():
        start, end = (ImageAddress(e[part]) for e in (program.regions.start, program.regions.end))
        yield f"{labels.name(start)}: {start:#x}-{end:#x}, {end - start:,} bytes"
        yield from _Part(program, debug, flow, labels, start, end).lines()


class _Part:
    """One contiguous piece of a function."""

    def __init__(
        self,
        program: Program,
        debug: DebugInfo,
        flow: Flow | None,
        labels: BranchLabels,
        start: ImageAddress,
        end: int,
    ) -> None:
        whole = ByteRanges.of([(start, end)])
        self.texts = list(text(program.image, start, end))
        self.table = program.instructions_for(whole.start).within(whole)
        frames = debug.frames(self.table.address)
        self.places = SourcePlaces(frames, is_fs=uses_fs_discriminators(program))
        self.counts = None if flow is None else _Counts(flow, self.table, labels)
        self.labels = labels

    def lines(self) -> Iterator[str]:
        place = None
        for row, (address, code, mnemonic) in enumerate(self.texts):
            if self.places.of(row) != place:
                place = self.places.of(row)
                yield f"  ; {place}"
            count = "" if self.counts is None else f"{self.counts.executed(row):>{_COUNT_WIDTH},} "
            written = f"{mnemonic:<{_TEXT_WIDTH}} {self._facts(row)}".rstrip()
            yield f"{count}{address:>12x}: {code.hex(' '):<{_BYTES_WIDTH}} {written}"
            if self.counts is not None:
                yield from self.counts.targets(row)

    def _facts(self, row: int) -> str:
        kind = Kind(self.table.kind[row])
        if kind is Kind.OTHER:
            return ""
        facts = [kind.name]
        if self.table.has_target[row]:
            facts.append(f"to {self.labels.of(int(self.table.target[row]))}")
        if self.counts is not None:
            facts += self.counts.outcomes(row)
        return "; " + ", ".join(facts)


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of the rows of one instruction table, out of those of a whole flow."""

    flow: Flow
    table: InstructionTable
    labels: BranchLabels

    def _place(self, row: int) -> int:
        """Row in the flow, -1 where no sample came near."""
        return int(self.flow.instructions.index_of(self.table.address[row : row + 1])[0])

    def executed(self, row: int) -> int:
        place = self._place(row)
        return int(self.flow.executed[place]) if place >= 0 else 0

    def outcomes(self, row: int) -> Iterator[str]:
        place = self._place(row)
        if place < 0:
            return
        taken, mispredicted = int(self.flow.taken[place]), int(self.flow.mispredicted[place])
        if taken or self.table.kind[row] != Kind.SYSCALL:
            yield f"taken {taken:,}"
        if self.table.kind[row] == Kind.COND:
            past, jumped = int(self.flow.not_taken[place]), int(self.flow.jumped[place])
            yield f"not taken {past:,}"
            if past + jumped:
                yield f"taken share {percentage(jumped / (past + jumped))}"
        if mispredicted:
            yield f"mispredicted {mispredicted:,}"

    def targets(self, row: int) -> Iterator[str]:
        """Where an indirect branch was seen to go, most frequent first."""
        if self.table.kind[row] not in INDIRECT:
            return
        branches = self.flow.branches
        rows = np.flatnonzero(self.flow.branch_from == self._place(row))
        for i in rows[np.argsort(-branches.count[rows].astype(np.int64), kind="stable")].tolist():
            outside = self.flow.branch_to[i] < 0 and not branches.to[i]
            target = "outside" if outside else self.labels.of(int(branches.to[i]))
            yield f"{'':>{_COUNT_WIDTH}} {'':>12}  {counted(branches.count[i], 'time')} to {target}"


class SourcePlaces:
    """Inline frames as text, outermost first, with LLVM's locations in brackets.

    A location is what a sample profile is keyed by: line less the function's first line, and base
    discriminator; the factor is by how much copies of the code multiply its count.
    """

    def __init__(self, frames: InlineFrames, *, is_fs: bool) -> None:
        self._frames, self._is_fs = frames, is_fs

    def of(self, row: int) -> str:
        """Frames of one address."""
        first, last = self._frames.offsets[row : row + 2].tolist()
        if first == last:
            return "no source location"
        return " > ".join(map(self._frame, range(first, last)))

    def _frame(self, i: int) -> str:
        frames = self._frames
        discriminator, factor = self._discriminator(i)
        line = int(frames.line[i])
        offset = line - int(frames.start_line[i]) & 0xFFFF
        location = f"{offset}.{discriminator}" if discriminator else str(offset)
        times = f", counts {factor} times" if factor > 1 else ""
        name = frames.names[frames.function[i]] or "no function"
        return f"{name} {frames.files[frames.file[i]]}:{line} [{location}{times}]"

    def _discriminator(self, i: int) -> tuple[int, int]:
        """What the profile takes a frame's discriminator for, and the duplication factor."""
        word = self._frames.discriminator[i : i + 1]
        if self._is_fs:
            return int(word[0]), 1
        return int(base_discriminator(word)[0]), int(duplication_factor(word)[0])
