"""Record with the processor's own branch recorder: choose, build and run `perf record`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from lbr2pgo.program.code.registry import ARCHITECTURES
from lbr2pgo.record.facility import Facility, Recorder, find_facility
from lbr2pgo.record.foreground import run_foreground
from lbr2pgo.record.machine import Machine
from lbr2pgo.record.options import KIND_FILTERS, PRIVILEGE_FILTERS, RecordOptions
from lbr2pgo.record.triggers import Trigger, find_triggers
from lbr2pgo.support.errors import InputError, MissingToolError

Command = tuple[str, ...]
Run = Callable[[Command], "subprocess.CompletedProcess[str]"]

_CURE = "`lbr2pgo doctor` tells what this machine can do; --emulate uses the software LBR."

_TRANSACTIONS = frozenset({"abort_tx", "in_tx", "no_tx"})
_UNSUPPORTED: dict[Recorder, frozenset[str]] = {
    Recorder.INTEL_LBR: frozenset(),
    Recorder.INTEL_ARCH_LBR: frozenset(),
    # Linux: amd/brs.c, amd_brs_setup_filter takes `any` and privilege levels alone.
    Recorder.AMD_BRS: (frozenset(KIND_FILTERS) - {"any"}) | {"save_type", "priv"},
    # Linux: amd/lbr.c, the LBR_NOT_SUPP of lbr_select_map.
    Recorder.AMD_LBR_V2: _TRANSACTIONS,
    # Linux: arm_brbe.c, BRBE_EXCLUDE_BRANCH_FILTERS.
    Recorder.ARM_BRBE: _TRANSACTIONS,
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which recorder takes a recording, and why in words."""

    hardware: bool
    reason: str


def choose_recorder(machine: Machine, options: RecordOptions) -> Choice:
    """Hardware where it can do what is asked, otherwise the software LBR."""
    if options.emulate:
        return Choice(False, "the software LBR was asked for")
    if options.exact is not None:
        return Choice(False, "exact counts can only be had from the software LBR")
    facility = find_facility(machine)
    obstacle = find_obstacle(machine, facility) or _refusal(machine, facility, options)
    if obstacle:
        return Choice(False, obstacle)
    foreign = _foreign_architecture(machine, options.command[0])
    if foreign:
        return Choice(False, f"the program is for {foreign}, which this processor can't run")
    assert facility.recorder is not None
    return Choice(True, f"this machine has {facility.recorder.value} ({facility.reason})")


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
    if not facility.usable:
        return facility.reason
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
    name = facility.recorder.value
    if options.call_stack and not facility.call_stack:
        return f"{name} has no call-stack mode"
    if options.depth is not None and facility.depth and options.depth != facility.depth:
        return f"{name} always keeps {facility.depth} entries here, not {options.depth}"
    unsupported = _UNSUPPORTED[facility.recorder] & set(options.filters)
    if "counter" in options.filters and not any(pmu.branch_counters for pmu in facility.pmus):
        unsupported |= {"counter"}
    if unsupported:
        return f"{name} has no filter {', '.join(sorted(unsupported))} here"
    if not machine.privileged and (machine.paranoid or 0) > 1 and {"k", "hv"} & {*options.filters}:
        return f"kernel.perf_event_paranoid is {machine.paranoid}: user code only"
    return None


def build_commands(machine: Machine, options: RecordOptions) -> tuple[Command, ...]:
    """Every `perf record` that would do, the best first.

    Raises MissingToolError if this machine can't make the recording, InputError for a period that
    its recorder refuses.
    """
    facility = find_facility(machine)
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
    if facility.recorder is Recorder.AMD_BRS and too_short:
        raise InputError(
            f"AMD BRS refuses a period of {options.period}",
            cure=f"Give a period above {depth}, better a prime above 1000.",
        )


def _command(trigger: Trigger, options: RecordOptions) -> Command:
    events = (word for event in trigger.events for word in ("-e", event))
    return (
        "perf", "record", *events, "-c", str(trigger.period), *_branch_options(options),
        "-o", str(options.output), "--", *options.command,
    )  # fmt: skip


def _branch_options(options: RecordOptions) -> Command:
    """What the ring keeps: `-b` for everything, `-j` for a choice, or the open calls."""
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
) -> int:
    """Record with perf; returns the program's exit code (128 + n if signal n ended it).

    `trial` runs a command and gives its output, `record` runs one in the foreground. Raises
    MissingToolError if perf accepts none of the commands, with perf's own reason.
    """
    command = _first_accepted(machine, options, trial or _run_captured)
    return exit_code((record or _run_foreground)(command).returncode)


def exit_code(returncode: int) -> int:
    """The shell's form of a `subprocess` return code: perf dies of its program's signal."""
    return 128 - returncode if returncode < 0 else returncode


def _first_accepted(machine: Machine, options: RecordOptions, run: Run) -> Command:
    """The first command that perf and the kernel accept, tried on a program that does nothing."""
    complaints: list[str] = []
    with TemporaryDirectory() as directory:
        harmless = replace(options, output=Path(directory) / "trial", command=("true",))
        trials = build_commands(machine, harmless)
        for command, trial in zip(build_commands(machine, options), trials, strict=True):
            done = run(trial)
            if done.returncode == 0:
                return command
            complaints.append(_complaint(done.stderr))
    raise MissingToolError(f"perf can't record branches here: {complaints[-1]}", cure=_CURE)


def _complaint(stderr: str) -> str:
    """The line of perf's output that says what is wrong."""
    lines = [line.strip() for line in stderr.splitlines()]
    telling = (line for line in lines if line and line != "Error:")
    return next(telling, "it gave no reason")


def _run_captured(command: Command) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _run_foreground(command: Command) -> subprocess.CompletedProcess[str]:
    """Wait for a command through Ctrl-C: perf gets it too, and finishes its file."""
    return subprocess.CompletedProcess(command, run_foreground(command, os.environ))
