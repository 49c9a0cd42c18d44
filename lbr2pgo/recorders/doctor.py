"""What this machine can record, and why not: one row for each thing that decides it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from lbr2pgo.recorders.branch_recorder import ARM_BRBE, INTEL_LBR
from lbr2pgo.recorders.facility import (
    CALL_STACK_SINCE,
    CYCLES_SINCE,
    Facility,
    find_facility,
)
from lbr2pgo.recorders.hardware import (
    Choice,
    build_commands,
    choose_recorder,
    find_event_obstacle,
)
from lbr2pgo.recorders.machine import Machine
from lbr2pgo.recorders.options import RecordOptions

PERF_SINCE = (3, 4)  # perf's own -b and -j

EXAMPLE = RecordOptions(
    output=Path("perf.data"), command=("PROGRAM", "ARGUMENTS"), cycles=True, dry_run=True
)
"""The plainest recording, which the advised command makes."""


class Status(Enum):
    """How a row bears on recording."""

    YES = "yes"
    NO = "no"
    LIMITED = "limited"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class DoctorRow:
    """One fact: its name, how it bears on recording, its value, and why."""

    name: str
    status: Status
    value: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All rows, the recorder that `record` would choose, and the command to use."""

    rows: tuple[DoctorRow, ...]
    choice: Choice
    command: tuple[str, ...]
    missing: tuple[str, ...]
    """What has to be installed before anything can record here; empty where something can."""


def diagnose(machine: Machine) -> Diagnosis:
    """Judge a machine."""
    facility = find_facility(machine)
    choice = choose_recorder(machine, EXAMPLE, settles=True)
    rows = (
        _cpu(machine),
        _recorder(facility),
        _depth(facility),
        _cycles(machine, facility),
        _call_stack(machine, facility),
        _call_chains(facility),
        _instructions(machine),
        _pmus(machine),
        _kernel(machine, facility),
        _paranoid(machine),
        _kptr_restrict(machine),
        _hypervisor(machine, facility),
        _container(machine),
        _perf(machine),
        _software(machine),
    )
    missing = () if choice.hardware else tuple(_missing_for_emulation(machine))
    return Diagnosis(rows, choice, advised_command(machine, choice), missing)


def advised_command(machine: Machine, choice: Choice) -> tuple[str, ...]:
    """What to type for the plainest recording: perf itself, or the software LBR."""
    if choice.hardware:
        return build_commands(machine, replace(EXAMPLE, no_lbr=not choice.branches))[0]
    return ("lbr2pgo", "record", "-o", str(EXAMPLE.output), "--", *EXAMPLE.command)


def command_line(command: tuple[str, ...]) -> str:
    """A command as one types it into a shell."""
    return shlex.join(command)


def _cpu(machine: Machine) -> DoctorRow:
    cpu = machine.cpu
    numbers = ""
    if cpu.architecture == "x86-64" and cpu.family is not None and cpu.model is not None:
        numbers = f"family {cpu.family:#x}, model {cpu.model:#x}"
    return DoctorRow("CPU", Status.INFO, f"{cpu.vendor} {cpu.name}", numbers)


def _recorder(facility: Facility) -> DoctorRow:
    name = facility.recorder.name if facility.recorder else "none"
    status = Status.YES if facility.usable else Status.NO
    return DoctorRow("branch recorder", status, name, facility.reason)


def _depth(facility: Facility) -> DoctorRow:
    if not facility.usable:
        return DoctorRow("depth", Status.NO, "-", "no branch recorder can be used")
    if facility.depth is None:
        return DoctorRow("depth", Status.INFO, "unknown", "kernels before 4.14 don't tell it")
    entries = ", ".join(f"{pmu.name} {pmu.branches}" for pmu in facility.pmus)
    return DoctorRow("depth", Status.YES, f"{facility.depth} entries", entries)


def _cycles(machine: Machine, facility: Facility) -> DoctorRow:
    name = "cycle counts"
    if not facility.usable:
        return DoctorRow(name, Status.NO, "-", "no branch recorder can be used")
    if not facility.cycles:
        return DoctorRow(name, Status.NO, "no", _why_no_cycles(facility))
    if _older(machine, CYCLES_SINCE):
        return DoctorRow(name, Status.NO, "no", "Linux passes them on from 4.3 on")
    if facility.recorder is ARM_BRBE:
        return DoctorRow(name, Status.YES, "yes", "where BRBE knows them: entries may have none")
    return DoctorRow(name, Status.YES, "yes")


def _why_no_cycles(facility: Facility) -> str:
    if facility.recorder is INTEL_LBR:
        return "Intel counts them from Skylake and Goldmont on, with rings of 32"
    assert facility.recorder is not None
    return f"{facility.recorder.name} doesn't count them"


def _call_stack(machine: Machine, facility: Facility) -> DoctorRow:
    name = "call-stack mode"
    if not facility.usable:
        return DoctorRow(name, Status.NO, "-", "no branch recorder can be used")
    if facility.call_stack and _older(machine, CALL_STACK_SINCE):
        return DoctorRow(name, Status.NO, "no", "Linux offers it from 4.1 on")
    if facility.call_stack:
        return DoctorRow(name, Status.YES, "yes", "perf record --call-graph lbr")
    return DoctorRow(name, Status.NO, "no", "only Intel, from Haswell on, and RISC-V have it")


def _call_chains(facility: Facility) -> DoctorRow:
    if not facility.usable:
        return DoctorRow(
            "call chains", Status.INFO, "exact", "record --call-graph, in the software LBR"
        )
    flags = "-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-optimize-sibling-calls"
    reason = f"record --call-graph, of programs built with {flags}"
    return DoctorRow("call chains", Status.LIMITED, "by frame pointers", reason)


def _instructions(machine: Machine) -> DoctorRow:
    name, obstacle = "instruction samples", find_event_obstacle(machine, EXAMPLE)
    if obstacle is not None:
        return DoctorRow(name, Status.NO, "no", obstacle)
    return DoctorRow(
        name, Status.YES, "yes", "record --no-lbr, convert --no-lbr: branches are inferred"
    )


def _pmus(machine: Machine) -> DoctorRow:
    name = "core PMUs"
    if machine.pmus:
        names = ", ".join(pmu.name for pmu in machine.pmus)
        return DoctorRow(name, Status.YES, names, "/sys/bus/event_source/devices")
    if not machine.has_sysfs:
        return DoctorRow(name, Status.NO, "unknown", "/sys/bus/event_source can't be read here")
    return DoctorRow(name, Status.NO, "none", "the kernel shows no performance counters")


def _kernel(machine: Machine, facility: Facility) -> DoctorRow:
    value = machine.kernel_release or "unknown"
    if facility.recorder is None:
        return DoctorRow("kernel", Status.INFO, value)
    name, since = facility.recorder.name, facility.recorder.since
    if since is None:
        return DoctorRow("kernel", Status.INFO, value, f"no known release drives {name}")
    needs = f"{name} came with Linux {since[0]}.{since[1]}"
    if facility.usable:
        return DoctorRow("kernel", Status.YES, value, needs)
    return DoctorRow("kernel", Status.NO if _older(machine, since) else Status.INFO, value, needs)


def _older(machine: Machine, version: tuple[int, int]) -> bool:
    return machine.kernel is not None and machine.kernel < version


def _paranoid(machine: Machine) -> DoctorRow:
    name, level = "perf_event_paranoid", machine.paranoid
    if level is None:
        return DoctorRow(name, Status.INFO, "unknown", "/proc/sys/kernel can't be read here")
    if machine.privileged:
        return DoctorRow(
            name, Status.YES, str(level), "doesn't bind you: you hold CAP_PERFMON or more"
        )
    if level > 2:
        cure = "bars you from recording: sudo sysctl kernel.perf_event_paranoid=2"
        return DoctorRow(name, Status.NO, str(level), cure)
    if level == 2:
        return DoctorRow(name, Status.LIMITED, "2", "user code only, your own processes only")
    return DoctorRow(name, Status.YES, str(level), "user and kernel code")


def _kptr_restrict(machine: Machine) -> DoctorRow:
    name, level = "kptr_restrict", machine.kptr_restrict
    if level is None:
        return DoctorRow(name, Status.INFO, "unknown")
    hidden = level >= 2 or (level == 1 and not machine.privileged)
    reason = "hides kernel symbols; user code isn't affected" if hidden else ""
    return DoctorRow(name, Status.LIMITED if hidden else Status.YES, str(level), reason)


def _hypervisor(machine: Machine, facility: Facility) -> DoctorRow:
    if machine.hypervisor is None:
        return DoctorRow("hypervisor", Status.YES, "none seen")
    if facility.usable:
        reason = "it lets this guest use the branch recorder"
        return DoctorRow("hypervisor", Status.YES, machine.hypervisor, reason)
    if facility.recorder is None:
        return DoctorRow("hypervisor", Status.INFO, machine.hypervisor)
    reason = "ask for a bare-metal instance, or a guest with a virtual PMU that has branch records"
    return DoctorRow("hypervisor", Status.NO, machine.hypervisor, reason)


def _container(machine: Machine) -> DoctorRow:
    if not machine.container:
        return DoctorRow("container", Status.INFO, "none seen")
    reason = "its seccomp profile may bar perf_event_open: --cap-add PERFMON"
    return DoctorRow("container", Status.LIMITED, "yes", reason)


def _perf(machine: Machine) -> DoctorRow:
    version = machine.perf_version
    if version is None:
        reason = (
            "not installed: apt-get install linux-perf (Debian) or linux-tools-generic (Ubuntu)"
        )
        return DoctorRow("perf", Status.NO, "none", reason)
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < PERF_SINCE:
        return DoctorRow("perf", Status.NO, version, "perf records branches from 3.4 on")
    return DoctorRow("perf", Status.YES, version)


def _software(machine: Machine) -> DoctorRow:
    """Whether the fallback that needs no hardware would work."""
    missing = list(_missing_for_emulation(machine))
    if missing:
        return DoctorRow("software LBR", Status.NO, "no", f"missing: {', '.join(missing)}")
    emulators = ", ".join(machine.emulators)
    return DoctorRow("software LBR", Status.YES, "yes", f"{emulators} and {machine.compiler}")


def _missing_for_emulation(machine: Machine) -> Iterator[str]:
    """What the software LBR lacks, and how to get it."""
    if not machine.emulators:
        yield "qemu-user (apt-get install qemu-user)"
    if not machine.compiler:
        yield "a C compiler (apt-get install gcc)"
