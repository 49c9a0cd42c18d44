"""One file of a fleet counted: every image that is found, saved under the file's content.

What is saved once is never counted again, so a run that was interrupted goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG

from lbr2pgo import __version__
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.fleet.fleet_files import FleetFile
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.count_sums import CountSums
from lbr2pgo.model.doubts import Doubt, parted
from lbr2pgo.profiles.counts import parquet_counts
from lbr2pgo.profiles.counts.format import origin_of
from lbr2pgo.program.elf.find import ImagePlaces
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recorded_program import recorded_images
from lbr2pgo.replay.recordings import replay_images
from lbr2pgo.replay.replaying import ReadingOptions
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import BuildSource, Source
from lbr2pgo.sources.directories import files_of
from lbr2pgo.support.errors import InputError, Lbr2pgoError
from lbr2pgo.support.output import write_pieces

_BLOCK = 1 << 20
_NOTES = ".notes"


@dataclass(frozen=True, slots=True)
class CountingPlan:
    """How every file is counted, on any machine; all paths are of a file system that all share."""

    store: Path
    """Where counts are saved."""
    binaries: tuple[Path, ...] = ()
    sysroots: tuple[Path, ...] = ()
    event: str | None = None
    strict: bool = False

    @property
    def reading(self) -> ReadingOptions:
        """As conversions have it."""
        return ReadingOptions(counting=CountingOptions(self.event), strict=self.strict)


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of a file."""

    file: FleetFile
    content: str | None
    """Names what is in it, and how it was counted; None where it can't be read."""
    hosts: tuple[str, ...] = ()
    binaries: tuple[tuple[str, str], ...] = ()
    """Programs that were found: where they are, and what they were called."""
    notes: tuple[str, ...] = ()
    """Damage and assumptions, a sentence each."""
    problem: str | None = None
    """Why it was not counted."""
    was_there: bool = False
    """It had been counted before."""


def count_file(file: FleetFile, plan: CountingPlan) -> FileOutcome:
    """Count a file and save that, unless it is saved; what can't be read is told, not raised."""
    path = Path(file.name)
    try:
        with file.here() as path:
            content = _content(path, plan)
            saved = saved_counts(plan, content)
            was_there = saved.exists()
            source = open_source(path)
            binaries = _binaries(source, plan)
            if not was_there:
                builds, said = _builds(source, binaries, plan)
                _save_notes(saved, said)
                parquet_counts.write(builds, saved, origin_of([source.info.details]))
        hosts = tuple(source.info.details.get("host", "").split(", "))
        found = tuple((str(path), name) for path, name in binaries.items())
        notes = _saved_notes(saved)
        return FileOutcome(file, content, hosts, found, notes, was_there=was_there)
    except (Lbr2pgoError, OSError) as error:
        problem = error.headline if isinstance(error, Lbr2pgoError) else str(error)
        return FileOutcome(file, None, problem=problem.removeprefix(f"{path}: "))


def saved_counts(plan: CountingPlan, content: str) -> Path:
    """Where the counts of a content are."""
    return plan.store / f"{content}.parquet"


def _content(path: Path, plan: CountingPlan) -> str:
    known = sha256(repr((__version__, plan)).encode())
    for each in files_of(path):
        if not S_ISREG(each.stat().st_mode):  # a pipe or a device among them would never end
            raise InputError("is no regular file", where=str(each))
        with each.open("rb") as stream:
            while block := stream.read(_BLOCK):
                known.update(block)
    return known.hexdigest()


def _binaries(source: Source, plan: CountingPlan) -> dict[Path, str]:
    """Programs of a recording, and what they are called there."""
    if isinstance(source, BuildSource):
        return {}
    found = recorded_images([source], ImagePlaces(plan.sysroots))
    named = {each.found.resolve(): each.name for each in found if each.found is not None}
    return {**{path.resolve(): path.name for path in plan.binaries}, **named}


@lru_cache(maxsize=64)
def _program(path: Path, _time: float) -> Program:
    """Files of one fleet are of few programs; one that was replaced is opened again."""
    return Program.open(path)


def close_programs() -> None:
    """Close those that are kept open in this process for the next file."""
    _program.cache_clear()


def _builds(
    source: Source, binaries: Iterable[Path], plan: CountingPlan
) -> tuple[list[BranchCounts], list[str]]:
    """Counts of each build, and what is to be said of them."""
    sums, notes = CountSums(), list[str]()
    if isinstance(source, BuildSource):
        for counts, weight in source.builds():
            sums.add(counts, weight)
    else:
        programs = [_program(path, path.stat().st_mtime) for path in binaries]
        replayed = replay_images([source], programs, plan.reading, names=[""], skips_absent=True)
        for found in replayed:
            sums.add(found.counts)
            notes += found.notes if len(found.counts) else ()
    builds = [counts for counts in sums.builds() if len(counts)]
    if not builds:
        raise InputError("holds no branch of a program that is found", where=source.info.path)
    return builds, list(dict.fromkeys(notes))


def _save_notes(saved: Path, notes: Iterable[str]) -> None:
    write_pieces(saved.with_suffix(_NOTES), [json.dumps(parted(notes)).encode()])


def _saved_notes(saved: Path) -> tuple[str, ...]:
    doubts, notes = json.loads(saved.with_suffix(_NOTES).read_bytes())
    return (*map(Doubt, doubts), *notes)
