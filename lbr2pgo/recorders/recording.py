"""One recording by the best recorder that there is: hardware, its events alone, or an emulator."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.recorders.emulation import SLOWER
from lbr2pgo.recorders.hardware import build_commands, choose_recorder, record_hardware
from lbr2pgo.recorders.machine import Machine
from lbr2pgo.recorders.options import RecordOptions, Watch
from lbr2pgo.recorders.software import planned_command, record_software
from lbr2pgo.support.counted import counted
from lbr2pgo.support.errors import MissingToolError

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
    exact: Path | None = None
    """Where the exact counts are."""
    warnings: tuple[str, ...] = ()
    """What could not be recorded, in whole sentences."""
    notes: tuple[str, ...] = ()
    """With what it was recorded, and why, where nobody was told before."""
    kept: tuple[Path, ...] = ()
    """Copies of the recorded programs, where they were asked for."""
    planned: tuple[str, ...] = ()
    """What would run, of a dry run."""

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        what = "instructions" if self.no_lbr else "branches"
        count = "" if self.samples is None else f"{counted(self.samples, 'sample')} of "
        return f"<RecordedFile {self.path}: {count if self.is_written else 'no '}{what}>"


def record_at_best(
    machine: Machine, options: RecordOptions, *, say: Say, watch: Watch | None = None
) -> RecordedFile:
    """Record with what this machine has, and say which recorder that is, and why no better one.

    `watch` is entered while the program runs. Raises as `choose_recorder`, `record_hardware` and
    `record_software`.
    """
    options = options.settled()
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
        exact=options.exact,
        warnings=done.warnings,
    )


def _changed(path: Path) -> int | None:
    """When a file was last written to, in ns; None if there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
