"""What reports begin with: recordings, or profiles that BOLT reads, laid over their program.

What reads profiles is loaded where an input may be one: it takes longer than a small report.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.program.program import Program
from lbr2pgo.replay.processes import ProcessInputs, read_process
from lbr2pgo.replay.recordings import replay_sources
from lbr2pgo.replay.replayed import Asks, Replayed
from lbr2pgo.sources.base import Addresses, SourceInfo
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.timings import Timings

if TYPE_CHECKING:
    from lbr2pgo.profiles.reader import WrittenProfile

_RECORDING = b"PERFILE2"
"""What perf.data begins with, and no profile."""


@dataclass(frozen=True, slots=True)
class PlacedProfile:
    """A written profile, placed in a program. Implements `CountSource`."""

    program: Program
    written: WrittenProfile[Any]

    @property
    def info(self) -> SourceInfo:
        """The file's name and format."""
        written = self.written
        return SourceInfo(str(written.path), written.reader.kind, Addresses.IMAGE)

    def counts(self, layout: ImageLayout) -> BranchCounts:
        """The counts of the program, which is the one image that such a profile speaks of.

        Raises InputError where the profile does not belong to it.
        """
        counts = self.written.belonging(self.program).counts(self.program)
        assert counts is not None  # see `is_for_bolt`
        return counts

    def health(self) -> Mapping[str, int]:
        """Nothing: what little has no place is a matter of `lbr2pgo check`."""
        return {}


def is_for_bolt(path: Path) -> bool:
    """Whether a file is fdata or BOLT's YAML."""
    if not path.is_file() or _is_recording(path):
        return False
    from lbr2pgo.profiles.registry import reader_of

    reader = reader_of(path)
    return reader is not None and reader.has_counts


def _is_recording(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_RECORDING)) == _RECORDING
    except OSError:
        return False


def read_inputs(
    inputs: ProcessInputs,
    progress: Progress | None = None,
    timings: Timings | None = None,
    asks: Asks | None = None,
) -> Replayed:
    """As `read_process`; what BOLT reads is taken as counts, and needs a program that is named."""
    placed = [path for path in inputs.profiles if is_for_bolt(path)]
    if not placed:
        return read_process(inputs, progress, timings, asks)
    where = str(placed[0])
    if len(placed) < len(inputs.profiles):
        raise InputError(
            "is a profile, and other inputs are recordings", where=where,
            cure="Report on them apart from each other, or compare them with --against.",
        )  # fmt: skip
    if inputs.binary is None:
        cure = "Name it with --binary."
        raise InputError("does not say which program it is of", where=where, cure=cure)
    program = Program.open(inputs.binary)
    sources = [PlacedProfile(program, _written(path)) for path in placed]
    return replay_sources(sources, program, inputs, progress)


def _written(path: Path) -> WrittenProfile[Any]:
    from lbr2pgo.profiles.registry import read_written

    written = read_written(path)
    if written is None or not written.reader.has_counts:
        raise InputError("is another file now", where=str(path))
    return written
