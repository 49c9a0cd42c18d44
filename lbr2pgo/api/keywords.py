"""Options of the command line as keyword arguments: `--drop-newest 2` is `drop_newest=2`.

What may be repeated there, or takes a list, is one value here or several.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from lbr2pgo.counting.chosen_samples import CountingOptions, SampleChoice
from lbr2pgo.support.arguments import Paths, paths_of, several, text_of, texts_of
from lbr2pgo.support.executables import executable
from lbr2pgo.support.file_names import expanded
from lbr2pgo.support.output import PathLike

if TYPE_CHECKING:
    from lbr2pgo.reports.source_files import Moved


SourceDir = PathLike | tuple[PathLike, PathLike]
"""A directory of sources; or where it was, and where it is now."""


class SampleKeywords(TypedDict, total=False):
    """Which samples count, the same for every task that counts."""

    event: str | None
    pid: int | Iterable[int]
    tid: int | Iterable[int]
    comm: str | Iterable[str]
    cpu: int | Iterable[int]
    time: tuple[float, float | None] | None
    phase: int | None
    build_id: str | None
    drop_newest: int
    drop_oldest: int
    correct_bias: bool
    strict: bool


class ProcessKeywords(SampleKeywords, total=False):
    """Which files are parts of a recorded program, and where its sources are."""

    sysroot: Paths
    no_libraries: bool
    jit: Paths
    source_dir: SourceDir | Iterable[SourceDir]
    changed_source: bool


class GateKeywords(TypedDict, total=False):
    """The least, or the most, that each measure may be."""

    min_density: float | None
    min_coverage: float | None
    max_chance: float | None
    min_conservation: float | None
    max_stale: float | None
    max_missing: float | None
    max_bias: float | None
    min_executed: float | None
    min_overlap: float | None


class RecordKeywords(TypedDict, total=False):
    """What is recorded in place of a command, and how."""

    pid: int | Iterable[int]
    all_cpus: bool
    duration: float | None
    delay: float | None
    startup: float | None
    until: str | None
    period: int | None
    frequency: int | None
    samples: int | None
    filter: str | Iterable[str]
    depth: int | None
    call_stack: bool
    call_graph: bool
    cycles: bool
    no_lbr: bool
    emulate: bool
    model: str
    data: bool
    seed: int
    reproducible: bool


class CheckKeywords(SampleKeywords, GateKeywords, total=False):
    """Which samples count, and the gates."""


def counting_options(given: Mapping[str, Any]) -> CountingOptions:
    """What `SampleKeywords` say, with the time in nanoseconds."""
    return CountingOptions(
        given.get("event"),
        SampleChoice(
            pids=several(given.get("pid", ())),
            tids=several(given.get("tid", ())),
            comms=several(given.get("comm", ())),
            cpus=several(given.get("cpu", ())),
            time=given.get("time"),
            phase=given.get("phase"),
        ),
        given.get("build_id"),
        drop_newest=given.get("drop_newest", 0),
        drop_oldest=given.get("drop_oldest", 0),
        corrects_bias=given.get("correct_bias", False),
    )


def reading_options(given: SampleKeywords) -> dict[str, Any]:
    """Arguments of `ReadingOptions` and what inherits from it, with the time in seconds."""
    time = given.get("time")
    span = None
    if time is not None:
        start, end = time
        span = round(start * 1e9), None if end is None else round(end * 1e9)
    counting = counting_options({**given, "time": span})
    return {"counting": counting, "strict": given.get("strict", False)}


def process_options(given: ProcessKeywords) -> dict[str, Any]:
    """Arguments of `ProcessInputs`, and of what shows sources."""
    from lbr2pgo.program.elf.find import ImagePlaces

    return {
        **reading_options(given),
        "libraries": not given.get("no_libraries", False),
        "places": ImagePlaces(paths_of(given.get("sysroot", ()), "sysroot")),
        "jit": paths_of(given.get("jit", ()), "jit"),
    }


def source_options(given: ProcessKeywords) -> dict[str, Any]:
    """Arguments of `ReportOptions` that say where sources are."""
    dirs: Any = given.get("source_dir", ())
    is_one = isinstance(dirs, str | os.PathLike) or (isinstance(dirs, tuple) and len(dirs) == 2)
    return {
        "source_dirs": tuple(map(_moved, [dirs] if is_one else dirs)),
        "changed_source": given.get("changed_source", False),
    }


def _moved(directory: SourceDir) -> Moved:
    """Where it was (nothing if it stayed), and where it is now."""
    old, new = directory if isinstance(directory, tuple) else ("", directory)
    return os.fspath(old), os.fspath(new)


def profiles_of(profiles: Paths) -> tuple[Path, ...]:
    """Recordings, of which one may stand for its parts."""
    return expanded(paths_of(profiles, "profiles"))


def binaries_of(binary: Paths | None) -> tuple[Path | None, tuple[Path, ...]]:
    """The program, if it is named, and the others that are."""
    every = () if binary is None else tuple(map(executable, texts_of(binary, "binary")))
    return (every[0] if every else None), every[1:]


def binary_of(binary: PathLike) -> Path:
    """One program."""
    return executable(text_of(binary, "binary"))
