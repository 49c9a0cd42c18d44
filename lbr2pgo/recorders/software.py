"""The software LBR: run a command under QEMU with the branch-recording plugin, write perf.data.

What it simulates, and how, stands in the plugin's sources (plugin/lbr.c, plugin/predictor.h).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.recorders.delivery import (
    check_writable,
    deliver,
    holds_something,
    reserved_room,
    work_directory,
)
from lbr2pgo.recorders.emulation import (
    DEFAULT_PERIOD,
    emulator_command,
    environment_of,
)
from lbr2pgo.recorders.exact_streams import (
    exact_counts,
    sum_front_end,
    sum_totals,
)
from lbr2pgo.recorders.foreground import Ending, run_foreground
from lbr2pgo.recorders.front_end import FrontEndCounts
from lbr2pgo.recorders.guest import EMULATOR_CURE, Guest, find_guest, refuse_shadow_memory
from lbr2pgo.recorders.hardware import exit_code
from lbr2pgo.recorders.options import RecordOptions, Watch
from lbr2pgo.recorders.plugin_build import built_plugin, plugin_path
from lbr2pgo.recorders.plugin_stream import (
    Note,
    NoteKind,
    Stream,
    read_streams,
    totals_so_far,
)
from lbr2pgo.recorders.started import never_started, of_start
from lbr2pgo.recorders.stream_recording import write_streams
from lbr2pgo.recorders.thinning import longest_period, thinned
from lbr2pgo.support.counted import counted
from lbr2pgo.support.errors import MissingToolError, OutputError
from lbr2pgo.support.output import is_standard_output


@dataclass(frozen=True, slots=True)
class RecordResult:
    """What came of a recording."""

    output: Path
    exit_code: int
    """Of the program, 128 + n if signal n ended it."""
    samples: int
    period: int
    """Taken branches between them in the end."""
    totals: Totals
    front_end: FrontEndCounts | None
    """None where none was simulated."""
    warnings: tuple[str, ...]
    """What could not be recorded, in whole sentences."""


def planned_command(
    options: RecordOptions, environment: Mapping[str, str] = os.environ
) -> tuple[str, ...]:
    """The emulator's command line, with the name of a directory that does not exist yet."""
    guest = find_guest(options.command, environment)
    directory = options.output.resolve().parent / ".lbr2pgo-work"
    return tuple(emulator_command(options, guest, plugin_path(environment), directory))


def record_software(
    options: RecordOptions,
    environment: Mapping[str, str] = os.environ,
    program_output: BinaryIO | None = None,
    watch: Watch | None = None,
) -> RecordResult:
    """Run the command under emulation and write what it recorded.

    The program's own output and signals pass through; `program_output` takes the output instead.
    Where the recording goes to standard output, the
    program's output goes to standard error. `watch` is entered while it runs. A program that
    crashes or is killed leaves a valid recording of what it did until then. An older recording is
    kept as `FILE.old`, and stays in its place where nothing was recorded. Raises MissingToolError
    without QEMU, a compiler or the guest's libraries, InputError for a program that can't be
    emulated, OutputError where the files can't be written.
    """
    guest = find_guest(options.command, environment)
    refuse_shadow_memory(guest)
    plugin = built_plugin(environment)
    for path in (options.output, options.exact):
        if path is not None and not is_standard_output(path):
            check_writable(path)
    with work_directory(options.output) as directory:
        command = emulator_command(options, guest, plugin, directory)
        with (
            reserved_room(directory) as room,
            watch(partial(_recorded, directory)) if watch else nullcontext(),
        ):
            given = environment_of(options, guest, environment)
            code = _run(command, given, program_output, options, directory)
        taken = _streams_of(directory, guest, code)
        period = longest_period(taken, options.period or DEFAULT_PERIOD)
        kept = [thinned(each, options.period or DEFAULT_PERIOD, period) for each in taken]
        streams, has_started = of_start(kept)
        exact = exact_counts(streams) if options.exact is not None else None
        unfinished = directory / "perf.data"
        samples = write_streams(unfinished, options, guest, streams, room, period)
        is_kept = not samples and holds_something(options.output)
        if not is_kept:
            deliver(unfinished, options.output)
    if exact is not None and options.exact is not None:
        exact.save(options.exact)
    counters = [c for stream in streams for c in stream.counters]
    model = options.front_end
    return RecordResult(
        output=options.output,
        exit_code=exit_code(code),
        samples=samples,
        period=period,
        totals=sum_totals(counters),
        front_end=None if model is None else sum_front_end(counters, model),
        warnings=(
            *_hints(guest, exit_code(code)),
            *_warnings(streams),
            *(_what_differs(streams) if options.reproducible else ()),
            *(() if has_started else never_started(options)),
            *([] if samples else [_nothing(options.output, is_kept=is_kept)]),
        ),
    )


def _nothing(output: Path, *, is_kept: bool) -> str:
    """Why there are no samples, and what to do."""
    before = f" ({output} is as it was)" if is_kept else ""
    return (
        f"Nothing was recorded{before}: the program ran for less than a period. "
        "Let it work longer, or shorten the period with -c."
    )


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    output: BinaryIO | None,
    options: RecordOptions,
    directory: Path,
) -> int:
    ending = None
    if options.duration is not None:
        is_due = None if options.until is None else (directory / "started").exists
        others = partial(_emulated, directory)
        ending = Ending(options.duration, signal.SIGTERM, is_due, others)
    if output is None and is_standard_output(options.output):
        # As perf does (tools/perf/util/evlist.c, evlist__prepare_workload).
        with os.fdopen(os.dup(2), "wb") as error_stream:
            return run_foreground(command, environment, error_stream, ending, options.input)
    return run_foreground(command, environment, output, ending, options.input)


def _emulated(directory: Path) -> Iterator[int]:
    """Processes that record there, by their streams' names and their command lines."""
    for number in {int(path.name.split("-")[0]) for path in directory.glob("*.lbr")}:
        with suppress(OSError):
            if os.fsencode(directory) in Path(f"/proc/{number}/cmdline").read_bytes():
                yield number


def _recorded(directory: Path) -> str:
    """How far a run has come, in words."""
    totals = totals_so_far(directory)
    samples = counted(totals["samples"], "sample")
    return f"{samples}, {totals['instructions'] / 1e6:,.0f} M instructions"


def _streams_of(directory: Path, guest: Guest, code: int) -> list[Stream]:
    streams = read_streams(directory)
    if streams:
        return streams
    if any(directory.glob("*.lbr")):
        raise OutputError(
            "nothing could be recorded, there is no room for it",
            where=str(directory.parent),
            cure="Free some space, or record to another disk with -o.",
        )
    raise MissingToolError(
        f"{guest.emulator} did not run the program with the plugin (exit code {code})",
        cure=f"Its own message is above. {EMULATOR_CURE}",
    )


def _hints(guest: Guest, code: int) -> Iterator[str]:
    if code == 128 + signal.SIGILL:
        yield (
            f"The program met an illegal instruction: {Path(guest.emulator).name} may lack an "
            "extension that it was built for, or have it off: QEMU_CPU chooses its processor."
        )


def _warnings(streams: Sequence[Stream]) -> Iterator[str]:
    lost = sum(stream.lost_samples for stream in streams)
    if lost:
        error = max(int(c.totals["write_error"]) for s in streams for c in s.counters)
        yield f"{lost} samples could not be written: {os.strerror(error)}."
    notes = dict.fromkeys(note for stream in streams for note in stream.notes)
    yield from (_warning(note) for note in notes if note.kind not in _DIFFERS)


_DIFFERS = {
    NoteKind.TOLD_TIME: "the time",
    NoteKind.TOLD_PROCESS: "its process ids",
    NoteKind.TOLD_BY_NETWORK: "what a network tells",
    NoteKind.THREADS_WAIT: "when its threads wake from waiting",
}


def _what_differs(streams: Sequence[Stream]) -> Iterator[str]:
    """What no two runs have alike, of which the program made something."""
    kinds = {note.kind for stream in streams for note in stream.notes}
    found = [what for kind, what in _DIFFERS.items() if kind in kinds]
    if found:
        yield f"Other runs may differ by {', '.join(found)}, which the program has used."


def _warning(note: Note) -> str:
    reason = os.strerror(note.error) if note.error else "no reason given"
    return _WARNINGS[note.kind].format(text=note.text, reason=reason)


_WARNINGS = {
    NoteKind.EXEC_NOT_FOLLOWED: "{text} ran natively and was not recorded: it can't be emulated "
    "here.",
    NoteKind.NO_COUNTERS: "Some counts are missing, there was no room for them: {reason}.",
    NoteKind.NO_MEMORY: "Some code was not recorded: memory ran out.",
    NoteKind.UNKNOWN_LOAD_ADDRESS: "It is unknown where {text} was loaded: {reason}.",
    NoteKind.NO_STACK_POINTER: "Call chains may be wrong after longjmp, exceptions and switches of "
    "stacks: this emulator does not show the stack pointer.",
}
