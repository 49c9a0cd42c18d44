"""What ran, instruction by instruction, with inline frames: what tools of profilers show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.source_view import cycles_by_instruction
from lbr2pgo.evidence.call_stacks import CALL_STACKS, CallStacks
from lbr2pgo.evidence.cycle_counts import CYCLES
from lbr2pgo.evidence.duplicates import DUPLICATES
from lbr2pgo.program.process import Process
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct, place_of
from lbr2pgo.support.sums import sums_at
from lbr2pgo.support.tables import Tabular, same_length, seal, table

NEEDS = (CYCLES, DUPLICATES, CALL_STACKS)
MEASURES = ("instructions", "branches", "mispredictions", "cycles")
"""Columns of `CodeProfile` that hold values; what was not recorded is 0 throughout."""


@dataclass(frozen=True, slots=True)
class CodeFrame:
    """One frame of an instruction: its function, or one that was inlined there."""

    function: str
    file: str
    """A path; empty if not known."""
    line: int
    start_line: int


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file that code is of."""

    name: str
    build_id: str
    """Empty if it has none."""


@dataclass(frozen=True, slots=True)
class CallSamples(Tabular):
    """Distinct call stacks, and how many samples had each; columns of equal length."""

    stacks: tuple[tuple[int, ...], ...]
    """Outermost caller first: rows of a `CodeProfile`, and below 0 those of `outside`, from its
    end."""
    count: U64
    outside: tuple[str, ...] = ()
    """Files that are not known, `[libc.so.6]` say, and `[kernel]`."""

    def __post_init__(self) -> None:
        seal(self)
        same_length(self, "count", rows=len(self.stacks))


@table
class CodeProfile(Tabular):
    """Instructions that ran, or called, by address; columns of equal length n."""

    address: PlacedAddresses
    instructions: U64
    branches: U64
    """How often each was a taken branch."""
    mispredictions: U64
    cycles: U64
    """An even part of those of each fall-through."""
    frames: tuple[CodeFrame, ...]
    """Different frames."""
    stacks: tuple[tuple[int, ...], ...]
    """Different stacks of them, outermost first, by their numbers."""
    stack: I64
    """(n,): number of each instruction's stack."""
    libraries: Mapping[int, CodeFile]
    """What is not the program's, by the slot of its addresses."""
    calls: CallSamples | None
    """None where no call stacks were recorded."""

    def by_stack(self) -> dict[str, U64]:
        """Sums of each measure by stack."""
        return {name: self._sums(getattr(self, name)) for name in MEASURES}

    def frames_of(self, calls: Sequence[int]) -> Iterator[int]:
        """Numbers of the frames of a stack of `calls`, inlined ones too; below 0 as they are."""
        for row in calls:
            yield from self.stacks[self.stack[row]] if row >= 0 else (row,)

    def _sums(self, values: U64) -> U64:
        return sums_at(self.stack, values, len(self.stacks))


def code_profile(evidence: Evidence) -> CodeProfile:
    """The profile of all code that ran."""
    flow, called = evidence.flow, evidence.found(CALL_STACKS)
    cycles = np.round(cycles_by_instruction(evidence)).astype(np.uint64)
    rows = np.flatnonzero((flow.executed > 0) | (flow.taken > 0) | (cycles > 0))
    ran = flow.instructions.address[rows]
    address = ran if called is None else _with_calls(ran, called)
    at = place_of(ran, address)

    def on_addresses(values: U64) -> U64:
        found = np.zeros(len(address), np.uint64)
        found[at] = values[rows]
        return found

    frames: dict[CodeFrame, int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    stack = [
        stacks.setdefault(tuple(frames.setdefault(f, len(frames)) for f in each), len(stacks))
        for each in _stacks(evidence, address)
    ]
    return CodeProfile(
        address,
        on_addresses(flow.executed),
        on_addresses(flow.taken),
        on_addresses(flow.mispredicted),
        on_addresses(cycles),
        tuple(frames),
        tuple(stacks),
        np.array(stack, np.int64),
        _libraries(evidence.program),
        None if called is None else _calls(evidence, address, called),
    )


def _with_calls(ran: PlacedAddresses, called: CallStacks) -> PlacedAddresses:
    return placed_addresses(distinct(np.concatenate([ran, called.address[called.is_inside]])))


def _calls(evidence: Evidence, address: PlacedAddresses, called: CallStacks) -> CallSamples:
    """Call stacks by rows of the profile; of one function those that it is in."""
    numbers = np.unique(called.file[~called.is_inside])
    row = np.where(
        called.is_inside,
        place_of(called.address, address),
        np.searchsorted(numbers, called.file) - len(numbers),
    ).tolist()
    concerned = evidence.concerns(called.address) & called.is_inside
    is_chosen = concerned.tolist() if evidence.function is not None else [True] * len(row)
    stacks = [
        (tuple(row[frame] for frame in stack), count)
        for stack, count in zip(called.stacks, called.count, strict=True)
        if any(is_chosen[frame] for frame in stack)
    ]
    return CallSamples(
        tuple(stack for stack, _ in stacks),
        np.array([count for _, count in stacks], np.uint64),
        tuple(evidence.names.outside(number) for number in numbers.tolist()),
    )


def _libraries(program: Program) -> dict[int, CodeFile]:
    if not isinstance(program, Process):
        return {}
    images = {part.slot: (part.name, part.program.image) for part in program.parts if part.slot}
    return {slot: CodeFile(name, image.build_id or "") for slot, (name, image) in images.items()}


def _stacks(evidence: Evidence, address: PlacedAddresses) -> Iterator[tuple[CodeFrame, ...]]:
    """Frames of each address, outermost first; where nothing is known the function's symbol."""
    found = evidence.debug.frames(address)
    regions = evidence.program.regions
    outer = regions.parent[regions.containing(address)]
    names = {row: evidence.names.region(row) for row in np.unique(outer).tolist()}
    columns = (found.function, found.file, found.line, found.start_line)
    inner = [
        CodeFrame(found.names[name], found.files[file], line, start)
        for name, file, line, start in zip(*(column.tolist() for column in columns), strict=True)
    ]
    bounds = found.offsets.tolist()
    for i, region in enumerate(outer.tolist()):
        own = tuple(inner[bounds[i] : bounds[i + 1]])
        outermost = (
            CodeFrame(names[region], own[0].file, own[0].line, own[0].start_line) if own else None
        )
        yield (outermost, *own[1:]) if outermost else (CodeFrame(names[region], "", 0, 0),)
