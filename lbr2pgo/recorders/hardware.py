"""Record with the processor's own branch recorder: choose, build and run `perf record`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from lbr2pgo.program.code.registry import ARCHITECTURES
from lbr2pgo.recorders.branch_recorder import AMD_BRS
from lbr2pgo.recorders.facility import Facility, find_facility
from lbr2pgo.recorders.foreground import Ending, run_foreground
from lbr2pgo.recorders.machine import Machine
from lbr2pgo.recorders.options import KIND_FILTERS, PRIVILEGE_FILTERS, RecordOptions, Watch
from lbr2pgo.recorders.triggers import Trigger, find_triggers, instruction_triggers
from lbr2pgo.support.errors import InputError, MissingToolError

Command = tuple[str, ...]
Run = Callable[[Command], "subprocess.CompletedProcess[str]"]

_CURE = "`lbr2pgo doctor` tells what this machine can do; --emulate uses the software LBR."

_AT_ONCE = 0.01
"""Seconds of a recording that only shows whether it can be made."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which recorder takes a recording, and why in words."""

    hardware: bool
    reason: str
    branches: bool = True
    """Whether branches are recorded, and not instructions alone."""


def choose_recorder(machine: Machine, options: RecordOptions, *, settles: bool = False) -> Choice:
    """Hardware where it can do what is asked, otherwise the software LBR.

    One who settles for less takes perf's samples of instructions before that, where perf has events
    but no branch records. Raises InputError where none can, and MissingToolError where samples of
    instructions are asked for and can't be had.
    """
    facility = find_facility(machine)
    if options.no_lbr:
        _refuse_without_events(machine, options)
        return Choice(True, "samples of instructions were asked for", branches=False)
    obstacle = _why_emulated(machine, facility, options)
    if obstacle is not None:
        if settles and _can_settle(machine, facility, options):
            return Choice(True, obstacle, branches=False)
        _refuse_emulation(options, obstacle)
        return Choice(False, obstacle)
    assert facility.recorder is not None
    return Choice(True, f"this machine has {facility.recorder.name} ({facility.reason})")


def _can_settle(machine: Machine, facility: Facility, options: RecordOptions) -> bool:
    """Whether samples of instructions do what is asked as well as can be here."""
    wants_more = options.needs_branches or options.needs_emulation
    is_foreign = bool(options.command and _foreign_architecture(machine, options.command[0]))
    has_events = find_event_obstacle(machine, options) is None
    return has_events and not (facility.usable or wants_more or is_foreign)


def _refuse_without_events(machine: Machine, options: RecordOptions) -> None:
    obstacle = find_event_obstacle(machine, options)
    if obstacle:
        raise MissingToolError(f"perf can't sample instructions here: {obstacle}", cure=_CURE)


def _why_emulated(machine: Machine, facility: Facility, options: RecordOptions) -> str | None:
    """Why the software LBR has to record, if it has."""
    if options.emulate:
        return "the software LBR was asked for"
    if options.front_end is not None:
        return "a front end can only be simulated by the software LBR"
    if options.exact is not None:
        return "exact counts can only be had from the software LBR"
    obstacle = find_obstacle(machine, facility) or _refusal(machine, facility, options)
    if obstacle or not options.command:
        return obstacle
    foreign = _foreign_architecture(machine, options.command[0])
    return foreign and f"the program is for {foreign}, which this processor can't run"


def _refuse_emulation(options: RecordOptions, obstacle: str) -> None:
    """Raise InputError for what an emulator can't do: it runs one program, from its start on."""
    wishes = {
        "processes that run already (-p)": options.pids,
        "all that runs on the machine (-a)": options.all_cpus,
        "so many samples a second (-F)": options.frequency,
        "the time behind a --delay": options.delay,
    }
    asked = next((name for name, wish in wishes.items() if wish), None)
    if asked is not None:
        raise InputError(
            f"the software LBR can't record {asked}: it emulates a program from its start on and "
            f"counts branches, not time; and perf is not used here: {obstacle}",
            cure="Let it start the program: lbr2pgo record [-c N] -- program arguments. "
            "`lbr2pgo doctor` tells what this machine can do.",
        )


def _foreign_architecture(machine: Machine, program: str) -> str | None:
    """Architecture of a program that is for another kind of processor; None otherwise."""
    path = shutil.which(program)
    try:
        with open(path or os.devnull, "rb") as file:
            head = file.read(20)
    except OSError:
        return None
    number = int.from_bytes(head[18:20], "little") if head.startswith(b"\x7fELF") else 0
    names = (each.name for each in ARCHITECTURES if each.elf_machine == number)
    return next((name for name in names if name != machine.cpu.architecture), None)


def find_obstacle(machine: Machine, facility: Facility) -> str | None:
    """Why perf can record no branches at all on this machine, if so."""
    return _obstacle_to_perf(machine) if facility.usable else facility.reason


def find_event_obstacle(machine: Machine, options: RecordOptions) -> str | None:
    """Why perf can't sample instructions, if so."""
    if not machine.pmus:
        return "the kernel shows no performance counters"
    forbidden = None if machine.privileged else _forbidden(machine.paranoid or 0, options)
    return _obstacle_to_perf(machine) or forbidden


def _obstacle_to_perf(machine: Machine) -> str | None:
    if machine.perf_version is None:
        return "perf is not installed"
    if not machine.privileged and (machine.paranoid or 0) > 2:
        return (
            f"kernel.perf_event_paranoid is {machine.paranoid}: "
            "the kernel lets only privileged users record"
        )
    return None


def _refusal(machine: Machine, facility: Facility, options: RecordOptions) -> str | None:
    """What a usable recorder can't do of what is asked, if anything."""
    assert facility.recorder is not None
    name = facility.recorder.name
    if options.call_stack and not facility.call_stack:
        return f"{name} has no call-stack mode"
    if options.depth is not None and facility.depth and options.depth != facility.depth:
        return f"{name} always keeps {facility.depth} entries here, not {options.depth}"
    unsupported = facility.recorder.unsupported & set(options.filters)
    if "counter" in options.filters and not any(pmu.branch_counters for pmu in facility.pmus):
        unsupported |= {"counter"}
    if unsupported:
        return f"{name} has no filter {', '.join(sorted(unsupported))} here"
    if options.frequency is not None and facility.recorder is AMD_BRS:
        return f"{name} has no samples by frequency"  # Linux: amd/brs.c, amd_brs_hw_config
    return None if machine.privileged else _forbidden(machine.paranoid or 0, options)


def _forbidden(paranoid: int, options: RecordOptions) -> str | None:
    """What the kernel lets only privileged users do (Linux: Documentation/admin-guide/sysctl)."""
    if paranoid > 1 and {"k", "hv"} & {*options.filters}:
        return f"kernel.perf_event_paranoid is {paranoid}: user code only"
    if paranoid > 0 and options.all_cpus:
        return f"kernel.perf_event_paranoid is {paranoid}: only privileged users record with -a"
    return None


def build_commands(machine: Machine, options: RecordOptions) -> tuple[Command, ...]:
    """Every `perf record` that would do, the best first.

    Raises MissingToolError if this machine can't make the recording, InputError for a period that
    its recorder refuses.
    """
    facility = find_facility(machine)
    if options.no_lbr:
        _refuse_without_events(machine, options)
        triggers = instruction_triggers(machine, options)
        return tuple(_command(trigger, options) for trigger in triggers)
    obstacle = find_obstacle(machine, facility) or _refusal(machine, facility, options)
    if obstacle:
        raise MissingToolError(f"this machine can't record it: {obstacle}", cure=_CURE)
    _check_period(facility, options)
    return tuple(
        _command(trigger, options) for trigger in find_triggers(machine, facility, options)
    )


def _check_period(facility: Facility, options: RecordOptions) -> None:
    # Linux: amd/brs.c, amd_brs_hw_config: the kernel takes the depth off the period.
    depth = facility.depth or 16
    too_short = options.period is not None and options.period <= depth
    if facility.recorder is AMD_BRS and too_short:
        raise InputError(
            f"AMD BRS refuses a period of {options.period}",
            cure=f"Give a period above {depth}, better a prime above 1000.",
        )


def _command(trigger: Trigger, options: RecordOptions) -> Command:
    events = (word for event in trigger.events for word in ("-e", event))
    rate = ("-c", trigger.period) if options.frequency is None else ("-F", options.frequency)
    delay = () if not options.delay else ("-D", round(options.delay * 1000))  # milliseconds
    words = (*rate, *_branch_options(options), *delay, "-o", options.output, *_target(options))
    return ("perf", "record", *events, *map(str, words))


def _target(options: RecordOptions) -> Command:
    """Whom to record; what runs already is recorded as long as another command runs, or for ever.

    perf: tools/perf/Documentation/perf-record.txt.
    """
    pids = ("-p", ",".join(map(str, options.pids))) if options.pids else ()
    everything = ("-a",) if options.all_cpus else ()
    command = options.command
    if options.is_attached and options.duration is not None:
        command = ("sleep", f"{options.duration + (options.delay or 0):g}")
    return (*pids, *everything, *(("--", *command) if command else ()))


def _branch_options(options: RecordOptions) -> Command:
    """What the ring keeps: `-b` for everything, `-j` for a choice, the open calls, or nothing."""
    if options.no_lbr:
        return ()
    if options.call_stack:
        return ("--call-graph", "lbr")
    # The kernel walks frame pointers in the very interrupt that reads the branches; chains that
    # perf unwinds later (dwarf) are in no sample.
    chains = ("--call-graph", "fp") if options.call_graph else ()
    if not options.filters:
        return ("-b", *chains)
    names = tuple(dict.fromkeys(options.filters))
    kinds = () if set(names) & set(KIND_FILTERS) else ("any",)
    levels = () if set(names) & set(PRIVILEGE_FILTERS) else ("u",)
    return ("-j", ",".join((*kinds, *names, *levels)), *chains)


def record_hardware(
    machine: Machine,
    options: RecordOptions,
    *,
    trial: Run | None = None,
    record: Run | None = None,
    watch: Watch | None = None,
) -> int:
    """Record with perf; returns the program's exit code (128 + n if signal n ended it).

    0 where `duration` ended it, and where an interrupt ended what had no command. `trial` runs a
    command and gives its output, `record` runs one in the foreground; `watch` is entered
    meanwhile. Raises MissingToolError if perf accepts none of the commands, with perf's reason.
    """
    command = _first_accepted(machine, options, trial or _run_captured)
    with watch(partial(_recorded, options.output)) if watch else nullcontext():
        run = partial(_run_foreground, ending=_ending(options), source=options.input)
        done = (record or run)(command)
    is_usual_end = options.is_attached and done.returncode == -signal.SIGINT
    return 0 if is_usual_end else exit_code(done.returncode)


def _recorded(output: Path) -> str:
    """How much perf has written so far."""
    try:
        return f"{output.stat().st_size / 1e6:,.1f} MB recorded"
    except OSError:  # a stream, or not there yet
        return "recording"


def _ending(options: RecordOptions) -> Ending | None:
    """Of a command; perf ends it when it is interrupted itself."""
    if options.duration is None or options.is_attached:
        return None
    return Ending(options.duration + (options.delay or 0), signal.SIGINT)


def exit_code(returncode: int) -> int:
    """The shell's form of a `subprocess` return code: perf dies of its program's signal."""
    return 128 - returncode if returncode < 0 else returncode


def _first_accepted(machine: Machine, options: RecordOptions, run: Run) -> Command:
    """The first command that perf and the kernel accept, tried on what is over at once."""
    complaints: list[str] = []
    with TemporaryDirectory() as directory:
        harmless = replace(options, output=Path(directory) / "trial", delay=None)
        if options.is_attached:
            harmless = replace(harmless, duration=_AT_ONCE)
        else:
            harmless = replace(harmless, command=("true",))
        trials = build_commands(machine, harmless)
        for command, trial in zip(build_commands(machine, options), trials, strict=True):
            done = run(trial)
            if done.returncode == 0:
                return command
            complaints.append(_complaint(done.stderr))
    what = "sample instructions" if options.no_lbr else "record branches"
    raise MissingToolError(f"perf can't {what} here: {complaints[-1]}", cure=_CURE)


def _complaint(stderr: str) -> str:
    """The line of perf's output that says what is wrong."""
    lines = [line.strip() for line in stderr.splitlines()]
    telling = (line for line in lines if line and line != "Error:")
    return next(telling, "it gave no reason")


def _run_captured(command: Command) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _run_foreground(
    command: Command, ending: Ending | None = None, source: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Wait for a command through Ctrl-C: perf gets it too, and finishes its file."""
    code = run_foreground(command, os.environ, ending=ending, source=source)
    return subprocess.CompletedProcess(command, code)
