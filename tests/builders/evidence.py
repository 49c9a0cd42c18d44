"""Evidence from stacks written by hand, on a small program of real instructions.

`main` has a loop around a choice of two ways, `dispatch` calls through a pointer::

    main:      1000  call g          1005  nop             1006  jne 1010
               1008  nop             1009  jmp 1015        1010  nop
               1011  nop             1012  jmp 1015        1015  nop
               1016  jne 1005        1018  jmp *%rax
    dispatch:  1020  call *%rax      1022  ret
    g:         1040  nop             1041  ret
    h:         1050  nop             1051  ret
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders.elf import Function, elf
from builders.sources import MemorySource, Sample

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.registry import NAMES
from lbr2pgo.evidence.collector import Finding
from lbr2pgo.model.branch_stacks import CYCLES_SHIFT, MISPREDICTED, PREDICTED
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recordings import Inputs, read_and_replay, replay_sources
from lbr2pgo.reports.gather import Gathered, look_for_analyses
from lbr2pgo.reports.gather import gather as gather_replayed
from lbr2pgo.sources.base import Addresses, EventInfo, Source

_CODE = {
    0x1000: "e83b000000", 0x1005: "90", 0x1006: "7508", 0x1008: "90", 0x1009: "eb0a",
    0x1010: "90", 0x1011: "90", 0x1012: "eb01", 0x1015: "90", 0x1016: "75ed", 0x1018: "ffe0",
    0x1020: "ffd0", 0x1022: "c3", 0x1040: "90", 0x1041: "c3", 0x1050: "90", 0x1051: "c3",
}  # fmt: skip
FUNCTIONS = (
    Function("main", 0x1000, 0x1A),
    Function("dispatch", 0x1020, 3),
    Function("g", 0x1040, 2),
    Function("h", 0x1050, 2),
)


def program(
    functions: Sequence[Function] = FUNCTIONS, instructions: Mapping[int, str] = _CODE
) -> Program:
    """The program of the module's docstring, or one of other instructions."""
    code = bytearray(b"\xcc" * 0x60)
    for address, text in instructions.items():
        part = bytes.fromhex(text)
        code[address - 0x1000 : address - 0x1000 + len(part)] = part
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "toy"
        path.write_bytes(elf(bytes(code), 0x1000, functions))
        return Program.open(path)


def flags(cycles: int = 0, *, missed: bool = False) -> int:
    """Flags of an entry that says how it was predicted."""
    return cycles << CYCLES_SHIFT | (MISPREDICTED if missed else PREDICTED)


def source(*samples: Sample, filters: int | None = None) -> MemorySource:
    """Samples in image addresses, of an event with these branch filters."""
    events = () if filters is None else (EventInfo("test", filters),)
    return MemorySource(samples, addresses=Addresses.IMAGE, events=events)


def evidence(*samples: Sample, filters: int | None = None) -> Evidence:
    """What such a recording of the program tells."""
    event = -1 if filters is None else 0
    chosen = [
        Sample(s.stack, s.pid, s.time, event, s.weight, s.ip) if filters is not None else s
        for s in samples
    ]
    return gather_sources([source(*chosen, filters=filters)], program()).evidence


def dense(*samples: Sample, period: int | None = 28) -> Evidence:
    """What a recording of every branch of the program tells."""
    events = (EventInfo("branches", period=period),)
    chosen = [Sample(each.stack, each.pid, each.time, 0) for each in samples]
    source = MemorySource(chosen, addresses=Addresses.IMAGE, events=events)
    return gather_sources([source], program()).evidence


def gather(profiles: tuple[Path, ...], binary: Path) -> Gathered:
    """What recordings of a program tell."""
    return gather_replayed(read_and_replay(Inputs(profiles, binary), asks=look_for_analyses()))


def gather_sources(
    sources: Sequence[Source],
    program: Program,
    analyses: Sequence[str] = NAMES,
    also: Sequence[Finding[Any]] = (),
) -> Gathered:
    """What sources of any kind tell these analyses, and of these findings."""
    asks = look_for_analyses(analyses, also=also)
    return gather_replayed(replay_sources(sources, program, asks=asks))


def with_limits(found: Evidence, **changes: object) -> Evidence:
    """The same evidence, of which less can be told."""
    return replace(found, limits=replace(found.limits, **changes))  # type: ignore[arg-type]
