"""A program whose phases are known, recorded by the software LBR."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.perf_data_writer import PerfDataWriter, RecordedEvent
from lbr2pgo.recorders.software import record_software
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import StackSource

SOURCE = Path(__file__).parents[1] / "programs" / "phases.c"
_PERIOD = 1009
_STEP = 1_000_000
KINDS = ({"parse", "load"}, {"serve", "answer"})
"""Functions of odd phases, and of even ones."""


@dataclass(frozen=True)
class Phased:
    """A recording and its program."""

    recording: Path
    program: Path


def phased(directory: Path, tool: Callable[[str], str], *rounds: int) -> Phased:
    """Record so many rounds of each phase."""
    tool("qemu-x86_64")
    program, taken, recording = (directory / name for name in ("phases", "taken", "perf.data"))
    command = [tool("gcc"), "-O1", "-g", SOURCE, "-o", program]
    subprocess.run(command, check=True, capture_output=True)
    words = (str(program), *map(str, rounds))
    record_software(RecordOptions(output=taken, command=words, period=_PERIOD, emulate=True))
    _write_even(recording, taken)
    return Phased(recording, program)


def _write_even(recording: Path, taken: Path) -> None:
    """Give what was recorded, in its order, times a millisecond apart.

    The processor has other work too, and at times stops a program for longer than its phases last.
    """
    source = open_source(taken)
    assert isinstance(source, StackSource)
    events, batches = source.space_events(), [*source.batches()]
    times = np.unique([*(each.time for each in events), *(t for b in batches for t in b.time)])
    with PerfDataWriter(recording, [RecordedEvent("taken-branches:u", _PERIOD)]) as writer:
        for event in events:
            writer.event(event._replace(time=_STEP * int(np.searchsorted(times, event.time))))
        for batch in batches:
            even = _STEP * np.searchsorted(times, batch.time).astype(np.uint64)
            writer.samples(replace(batch, time=even))
