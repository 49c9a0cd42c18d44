"""A program whose phases are known, recorded by the software LBR."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software

SOURCE = Path(__file__).parents[1] / "programs" / "phases.c"
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
    program, recording = directory / "phases", directory / "perf.data"
    command = [tool("gcc"), "-O1", "-g", SOURCE, "-o", program]
    subprocess.run(command, check=True, capture_output=True)
    words = (str(program), *map(str, rounds))
    record_software(RecordOptions(output=recording, command=words, period=1009, emulate=True))
    return Phased(recording, program)
