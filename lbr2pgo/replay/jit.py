"""Code that recorded processes made while they ran: found, and made parts of their program.

A process maps its jitdump as if it were code, so that recordings name it; a `perf-PID.map` is where
everybody puts it (perf: tools/perf/util/jitdump.c, jit_detect; tools/perf/util/dso.c). Of a name
that others may have chosen, no more than a plain file is believed: see `made_functions`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.model.branch_counts import END, FROM, TO, BranchCounts
from lbr2pgo.model.space_event_log import as_log
from lbr2pgo.program.code import registry
from lbr2pgo.program.jit.jit_program import JitProgram
from lbr2pgo.program.jit.jitdump import read_jitdump
from lbr2pgo.program.jit.made_functions import newest
from lbr2pgo.program.jit.made_image import JitImage, jit_image
from lbr2pgo.program.jit.perf_map import read_perf_map
from lbr2pgo.program.jit.pieces import SeenBranches
from lbr2pgo.program.process import Part
from lbr2pgo.sources.base import Source, StackSource
from lbr2pgo.support.addresses import SLOT_SIZE, image_addresses, unplaced
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.distinct import among, distinct
from lbr2pgo.support.errors import InputError

_DUMP, _MAP = re.compile(r"jit-([0-9]{1,9})\.dump"), re.compile(r"perf-([0-9]{1,9})\.map")


@dataclass(frozen=True, slots=True)
class MadeCode:
    """What one process made."""

    pid: int
    image: JitImage

    @property
    def mappings(self) -> tuple[Mmap, ...]:
        """Where it has it, as if it had mapped a file."""
        path = self.image.image.path
        return tuple(
            Mmap(self.pid, self.pid, each.time, each.start, each.size, each.file_offset, path)
            for each in self.image.mappings
        )


def made_code(
    sources: Sequence[Source], sysroots: Sequence[Path], named: Sequence[Path], machine: str
) -> tuple[list[MadeCode], list[str]]:
    """What processes of recordings made, from files that are named or found; and notes on these.

    `machine` is that of the program. Raises InputError for a named file that can't be used.
    """
    pids, dumps = _recorded(sources)
    given = {_pid_of(path, dumps): path for path in named}
    notes: list[str] = []
    made = [_read(pid, path, machine, notes, is_named=True) for pid, path in given.items()]
    for pid, path in _found(pids, dumps, sysroots):
        try:
            if pid not in given:
                made.append(_read(pid, path, machine, notes, is_named=False))
        except InputError as error:
            notes.append(error.headline)
    return [each for each in made if each is not None], notes


def with_seen(part: Part, counts: BranchCounts) -> Part:
    """A part of a process that knows what was recorded of it, if it is code that it made."""
    if not isinstance(part.program, JitProgram):
        return part
    return replace(part, program=part.program.recorded(seen_in(counts, part.slot)))


def seen_in(counts: BranchCounts, slot: int) -> SeenBranches:
    """What counts of a process say of its image in a slot."""
    place, past = np.uint64(slot * SLOT_SIZE), np.uint64((slot + 1) * SLOT_SIZE)
    columns = ((counts.from_, FROM), (counts.to, TO), (counts.end, END))
    ends = distinct(np.concatenate([column[counts.has(bit)] for column, bit in columns]))
    ends = ends[(ends >= place) & (ends < past)]
    branches = counts.branches()
    rows = (branches.known & FROM != 0) & (branches.from_ >= place) & (branches.from_ < past)
    has_target = branches.known[rows] & TO != 0
    target = np.where(has_target, branches.to[rows] - place, np.uint64(0))
    return SeenBranches(
        unplaced(ends, slot),
        unplaced(branches.from_[rows], slot),
        image_addresses(target),
        has_target,
    )


def _recorded(sources: Sequence[Source]) -> tuple[I64, dict[int, str]]:
    """The processes (n,) that mapped code, and the jitdumps of those that mapped one."""
    pids, dumps = [np.zeros(0, np.int64)], dict[int, str]()
    for source in sources:
        if isinstance(source, StackSource):
            log = as_log(source.space_events())
            rows = log.rows[log.are_code & (log.rows["pid"] >= 0)]
            pids.append(distinct(rows["pid"]))
            texts = distinct(rows["text"]).tolist()
            named = [text for text in texts if _DUMP.fullmatch(os.path.basename(log.text(text)))]
            rows = rows[np.isin(rows["text"], named)]
            names = map(log.text, rows["text"].tolist())
            dumps |= dict(zip(rows["pid"].tolist(), names, strict=True))
    return distinct(np.concatenate(pids)), dumps


def _found(
    pids: I64, dumps: Mapping[int, str], sysroots: Sequence[Path]
) -> Iterator[tuple[int, Path]]:
    roots = sysroots or (Path("/"),)
    maps = [_maps_in(root / "tmp") for root in roots]
    written = np.array(sorted({*dumps}.union(*maps)), np.int64)
    for pid in written[among(written, pids)].tolist():
        dump = dumps.get(pid)
        for root, of_root in zip(roots, maps, strict=True):
            if dump is not None and _is_there(path := root / dump.lstrip("/")):
                yield pid, path
                break
            if pid in of_root:
                yield pid, of_root[pid]
                break


def _maps_in(folder: Path) -> dict[int, Path]:
    """By process; a recording may have a million, of which hardly any wrote one."""
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    pids = {name: int(match[1]) for name in names if (match := _MAP.fullmatch(name))}
    return {pid: folder / name for name, pid in pids.items() if name == f"perf-{pid}.map"}


def _is_there(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:  # recordings may name anything
        return False


def _pid_of(path: Path, dumps: Mapping[int, str]) -> int:
    """The process of a file: who mapped it or, from its name, who says it wrote it."""
    for pid, dump in dumps.items():
        if Path(dump).name == path.name:
            return pid
    match = _DUMP.fullmatch(path.name) or _MAP.fullmatch(path.name)
    if match is None:
        raise InputError(
            "does not say whose code it tells of",
            where=str(path),
            cure="Name it as its process did: perf-PID.map or jit-PID.dump.",
        )
    return int(match[1])


def _read(
    pid: int, path: Path, machine: str, notes: list[str], *, is_named: bool
) -> MadeCode | None:
    """What the file tells, None if that is nothing."""
    if _MAP.fullmatch(path.name):
        functions, unusable = read_perf_map(path, is_named=is_named)
        what = "names of {} functions that process {} made, without their code"
    else:
        dump = read_jitdump(path, is_named=is_named)
        if registry.of_elf_machine(dump.machine, where=str(path)).name != machine:
            raise InputError(
                f"is of another machine than {machine}", where=str(path),
                cure="Give the file of the recorded process.",
            )  # fmt: skip
        functions, unusable = list(dump.functions), dump.unusable
        what = "{} functions that process {} made"
        if dump.damaged:
            notes.append(f"{path}: {dump.damaged:,} bytes at the end are no whole record")
        if not dump.has_clock:
            notes.append(
                f"{path}: times are a processor's own: of code in one place the last counts"
            )
            functions = newest(functions)
    notes.append(f"{path}: {what.format(f'{len(functions):,}', pid)}")
    if unusable:
        notes.append(f"{path}: {unusable:,} functions can't be where it says, or have no size")
    return MadeCode(pid, jit_image(str(path), machine, functions)) if functions else None
