"""The software LBR: run a command under QEMU with the branch-recording plugin, write perf.data.

What it simulates, and how, stands in the plugin's sources (plugin/lbr.c, plugin/predictor.h).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import BinaryIO

from lbr2pgo.model.address_space_events import Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS, BranchStacks
from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.model.perf_abi import DATA_ACCESSES, FETCH_MISSES, SIMULATED_CPU
from lbr2pgo.recorders.emulation import (
    DEFAULT_PERIOD,
    access_period,
    emulator_command,
    environment_of,
    keeps_halves,
    miss_period,
)
from lbr2pgo.recorders.exact_streams import (
    StreamImages,
    exact_counts,
    sum_front_end,
    sum_totals,
)
from lbr2pgo.recorders.foreground import Ending, run_foreground
from lbr2pgo.recorders.front_end import FrontEndCounts
from lbr2pgo.recorders.guest import EMULATOR_CURE, Guest, find_guest, refuse_shadow_memory
from lbr2pgo.recorders.hardware import exit_code
from lbr2pgo.recorders.options import KIND_FILTERS, RecordOptions, Watch
from lbr2pgo.recorders.perf_data_writer import (
    MarkedChains,
    PerfDataWriter,
    RecordedEvent,
    RecordingFacts,
)
from lbr2pgo.recorders.plugin_build import built_plugin, plugin_path
from lbr2pgo.recorders.plugin_stream import (
    Note,
    NoteKind,
    RecordKind,
    Stream,
    read_streams,
    totals_so_far,
)
from lbr2pgo.recorders.started import never_started, of_start
from lbr2pgo.recorders.stream_samples import sample_batches
from lbr2pgo.recorders.thinning import longest_period, thinned
from lbr2pgo.support.counted import counted
from lbr2pgo.support.errors import MissingToolError, OutputError, writable
from lbr2pgo.support.output import is_standard_output, write_to

_RESERVE = 8 << 20  # bytes: for a batch of samples, the mappings and the header

_SAMPLE_SIZE_MAX = 64 * 24 + 128 * 8 + 96  # bytes, of perf's record and of ours

_EVENT = "taken-branches:u"
_THERE = "can't write there", "Choose a path that you may write."


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


def branch_sample_type(options: RecordOptions, *, kernel: bool = False) -> int:
    """PERF_SAMPLE_BRANCH_* bits that describe the recording; `kernel`: it holds system calls."""
    names = {"user", "save_type", "priv"}
    names |= {name for name in options.filters if name in KIND_FILTERS}
    if options.call_stack:  # as perf: tools/perf/util/evsel.c, __evsel__config_callchain
        names |= {"call_stack", "no_flags", "no_cycles"}
    elif not set(options.filters) & set(KIND_FILTERS):
        names.add("any")
    if not options.cycles:
        names.add("no_cycles")
    if kernel:
        names.add("kernel")
    return sum(1 << BRANCH_FILTER_BITS[name] for name in names)


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
            _check_writable(path)
    with _work_directory(options.output) as directory:
        command = emulator_command(options, guest, plugin, directory)
        with (
            _reserve(directory) as room,
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
        samples = _write_recording(unfinished, options, guest, streams, room, period)
        is_kept = not samples and _holds_something(options.output)
        if not is_kept:
            _deliver(unfinished, options.output)
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


@contextmanager
def _work_directory(output: Path) -> Iterator[Path]:
    """A directory beside the output, gone afterwards."""
    special = is_standard_output(output) or (output.exists() and not output.is_file())
    parent = tempfile.gettempdir() if special else output.resolve().parent
    with writable(output, *_THERE):
        directory = tempfile.mkdtemp(prefix=".lbr2pgo-", dir=parent)
    try:
        yield Path(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _check_writable(path: Path) -> None:
    """Find out before the program runs in vain; leaves no trace."""
    existed = path.exists()
    with writable(path, *_THERE):
        path.open("ab").close()
    if not existed:
        path.unlink()


@contextmanager
def _reserve(directory: Path) -> Iterator[int]:
    """Keep some room on the disk, so that what is recorded until it is full can be written.

    Yields the number of bytes.
    """
    path = directory / "reserve"
    room = os.statvfs(directory)
    size = min(_RESERVE, room.f_bavail * room.f_frsize // 2)
    with path.open("wb") as file, suppress(OSError):
        os.posix_fallocate(file.fileno(), 0, max(size, 1))
    try:
        yield size
    finally:
        path.unlink()


def _holds_something(output: Path) -> bool:
    return output.is_file() and output.stat().st_size > 0


def _deliver(unfinished: Path, output: Path) -> None:
    """Put the file in its place; pipes and devices get its content.

    What was there is kept as `.old`, unless it is empty (perf: tools/perf/util/data.c,
    check_backup).
    """
    if is_standard_output(output):
        with unfinished.open("rb") as source:
            write_to(output, lambda sink: shutil.copyfileobj(source, sink))
        return
    target = output.resolve()  # a symbolic link stays
    with writable(output, *_THERE):
        if target.is_file():
            unfinished.chmod(target.stat().st_mode & 0o777)
        if _holds_something(target):
            target.replace(target.with_name(f"{target.name}.old"))
        if target.is_file() or not target.exists():
            unfinished.replace(target)
        else:
            with unfinished.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)


def _write_recording(
    path: Path,
    options: RecordOptions,
    guest: Guest,
    streams: Sequence[Stream],
    room: int,
    period: int,
) -> int:
    """Write the streams, sampled with one period, as one perf.data; gives the number of samples.

    Batches need little of the room on the disk, given in bytes: a stream shrinks as it is read.
    """
    most = max(1, min(room // (4 * _SAMPLE_SIZE_MAX), 1 << 12))
    branches = branch_sample_type(options, kernel=keeps_halves(options, guest))
    recorded = {RecordKind.SAMPLE: RecordedEvent(_EVENT, period, branches)}
    if options.front_end is not None:
        recorded[RecordKind.MISS] = RecordedEvent(FETCH_MISSES, miss_period(options), branches)
    if options.data:
        recorded[RecordKind.ACCESS] = RecordedEvent(DATA_ACCESSES, access_period(options), branches)
    numbers = {kind: number for number, kind in enumerate(recorded)}
    events = [happening for stream in streams for happening in stream.events]
    images = StreamImages()
    samples = 0
    facts = _facts(options, guest)
    has_chains = options.emulates_chains or options.call_stack
    with PerfDataWriter(
        path, [*recorded.values()], facts, with_callchain=has_chains, with_accesses=options.data
    ) as writer:
        for happening in sorted(events, key=lambda e: e.time):
            writer.event(_with_build_id(happening, images))
        for stream in streams:
            for batch in sample_batches(stream, most, numbers):
                writer.samples(batch, callchains=_call_chains(batch) if has_chains else None)
                samples += int((batch.event == numbers[RecordKind.SAMPLE]).sum())
            if stream.lost_samples:
                start = stream.start
                writer.lost(stream.lost_samples, pid=start.pid, tid=start.tid, time=start.time)
    return samples


def _call_chains(batch: BranchStacks) -> MarkedChains:
    """In call-stack mode the interrupted instruction alone: perf puts the calls in behind it.

    perf: tools/perf/util/machine.c, resolve_lbr_callchain_sample.
    """
    assert batch.chains is not None
    return MarkedChains.of_user(batch.chains)


def _with_build_id(event: SpaceEvent, images: StreamImages) -> SpaceEvent:
    if not isinstance(event, Mmap):
        return event
    return event._replace(build_id=images.build_ids[images.index(event.path)])


def _facts(options: RecordOptions, guest: Guest) -> RecordingFacts:
    system = os.uname()
    asked = ("--call-graph",) if options.call_graph else ()
    try:
        own_version = version("lbr2pgo")
    except PackageNotFoundError:
        own_version = "unknown"
    return RecordingFacts(
        hostname=system.nodename,
        os_release=system.release,
        version=f"lbr2pgo {own_version}",
        machine=guest.architecture.uname[0],
        cpu_description=f"simulated: the software LBR of lbr2pgo on {_emulator_version(guest)}",
        cpu_id=SIMULATED_CPU,
        cpus=os.cpu_count(),
        command=("lbr2pgo", "record", "--emulate", *asked, "--", *options.command),
    )


def _emulator_version(guest: Guest) -> str:
    done = subprocess.run(
        [guest.emulator, "--version"], capture_output=True, text=True, check=False
    )
    found = re.search(r"version (\S+)", done.stdout)
    return f"{Path(guest.emulator).name} {found.group(1) if found else '(unknown version)'}"


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
