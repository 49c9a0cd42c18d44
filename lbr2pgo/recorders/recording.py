"""One recording by the best recorder that there is: hardware, its events alone, or an emulator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.recorders.emulation import SLOWER
from lbr2pgo.recorders.hardware import build_commands, choose_recorder, record_hardware
from lbr2pgo.recorders.machine import Machine, read_machine
from lbr2pgo.recorders.options import RecordOptions, Watch
from lbr2pgo.recorders.software import planned_command, record_software
from lbr2pgo.support.arguments import (
    Paths,
    optional_path,
    path_of,
    refuse_unknown,
    several,
    texts_of,
)
from lbr2pgo.support.errors import MissingToolError
from lbr2pgo.support.executables import runnable
from lbr2pgo.support.output import PathLike

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RecordedFile(os.PathLike[str]):
    """What came of a recording; it stands for its file where a path is wanted."""

    path: Path
    is_written: bool
    """Whether the file is new: an older one stays in its place where nothing was recorded."""
    exit_code: int
    """Of the program, 128 + n if signal n ended it."""
    no_lbr: bool = False
    """Whether it has samples of instructions, and no branches."""
    samples: int | None = None
    """None where perf recorded."""
    totals: Totals | None = None
    """Of the whole run; None where perf recorded."""
    warnings: tuple[str, ...] = ()
    """What could not be recorded, in whole sentences."""
    notes: tuple[str, ...] = ()
    """With what it was recorded, and why, where nobody was told before."""
    planned: tuple[str, ...] = ()
    """What would run, of a dry run."""

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        what = "instructions" if self.no_lbr else "branches"
        count = "" if self.samples is None else f"{self.samples:,} samples of "
        return f"<RecordedFile {self.path}: {count if self.is_written else 'no '}{what}>"


class RecordKeywords(TypedDict, total=False):
    """What is recorded in place of a command, and how."""

    pid: int | Iterable[int]
    all_cpus: bool
    duration: float | None
    delay: float | None
    period: int | None
    frequency: int | None
    filter: str | Iterable[str]
    depth: int | None
    call_stack: bool
    call_graph: bool
    cycles: bool
    no_lbr: bool
    emulate: bool
    seed: int


def record(
    command: Paths = (),
    *,
    output: PathLike = "perf.data",
    exact: PathLike | None = None,
    **how: Unpack[RecordKeywords],
) -> RecordedFile:
    """Record a command, a program with its arguments; or, with `pid` or `all_cpus`, what runs.

    The program's output goes where ours goes. Options are those of `lbr2pgo record`; `notes` of
    the result say with what it was recorded, and why. Raises InputError for what can't be recorded,
    MissingToolError where what it takes is not installed, and OutputError where the files can't be
    written.
    """
    refuse_unknown(how, RecordKeywords)
    shared: dict[str, Any] = {"cycles": True, **how}
    words, said = texts_of(command, "command"), list[str]()
    options = RecordOptions(
        output=path_of(output, "output"),
        command=(*map(runnable, words[:1]), *words[1:]),
        exact=optional_path(exact, "exact"),
        pids=several(shared.pop("pid", ())),
        filters=several(shared.pop("filter", ())),
        **shared,
    )
    return replace(record_at_best(read_machine(), options, say=said.append), notes=tuple(said))


def record_at_best(
    machine: Machine, options: RecordOptions, *, say: Say, watch: Watch | None = None
) -> RecordedFile:
    """Record with what this machine has, and say which recorder that is, and why no better one.

    `watch` is entered while the program runs. Raises as `choose_recorder`, `record_hardware` and
    `record_software`.
    """
    choice = choose_recorder(machine, options, settles=True)
    if choice.hardware and (choice.branches or options.no_lbr):
        return record_with_perf(machine, options, watch)
    if choice.hardware:
        say(f"Sampling instructions with perf, for convert --no-lbr: {choice.reason}.")
        try:
            return record_with_perf(machine, replace(options, no_lbr=True), watch)
        except MissingToolError as error:  # the kernel shows events that it can't count
            say(f"{error.what}.")
        choice = choose_recorder(machine, options)
    say(f"Using the software LBR: {choice.reason}.")
    if watch is not None:
        say(SLOWER)
    return _record_emulated(options, watch)


def record_with_perf(
    machine: Machine, options: RecordOptions, watch: Watch | None = None
) -> RecordedFile:
    """Record with perf, whose exit code is the program's; raises as `record_hardware`."""
    path, no_lbr = options.output, options.no_lbr
    if options.dry_run:
        planned = build_commands(machine, options)[0]
        return RecordedFile(path, is_written=False, exit_code=0, no_lbr=no_lbr, planned=planned)
    before = _changed(path)
    code = record_hardware(machine, options, watch=watch)
    # perf may fail, and an older file stay there
    return RecordedFile(path, is_written=_changed(path) != before, exit_code=code, no_lbr=no_lbr)


def _record_emulated(options: RecordOptions, watch: Watch | None) -> RecordedFile:
    if options.dry_run:
        planned = planned_command(options)
        return RecordedFile(options.output, is_written=False, exit_code=0, planned=planned)
    done = record_software(options, watch=watch)
    return RecordedFile(
        done.output,
        is_written=done.samples > 0,
        exit_code=done.exit_code,
        samples=done.samples,
        totals=done.totals,
        warnings=done.warnings,
    )


def _changed(path: Path) -> int | None:
    """When a file was last written to, in ns; None if there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
