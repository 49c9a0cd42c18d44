"""Which branch recorder a machine has, what it can do, and why it has none.

Presence is judged by what the kernel shows, never by its version: distributions carry drivers
back. The version only explains an absence.
"""

from __future__ import annotations

from dataclasses import dataclass

from lbr2pgo.recorders.branch_recorder import (
    AMD_BRS,
    AMD_LBR_V2,
    ARM_BRBE,
    INTEL_ARCH_LBR,
    INTEL_LBR,
    RISCV_CTR,
    Recorder,
)
from lbr2pgo.recorders.machine import Machine, Pmu

CALL_STACK_SINCE = (4, 1)  # PERF_SAMPLE_BRANCH_CALL_STACK
CYCLES_SINCE = (4, 3)  # `cycles` in struct perf_branch_entry, with Skylake's LBR_INFO
CAPS_SINCE = (4, 14)  # caps/branches in sysfs


@dataclass(frozen=True, slots=True)
class Facility:
    """The recorder that can be used, or the reason why none can."""

    recorder: Recorder | None
    """What the processor has as far as one can tell, usable or not."""
    usable: bool
    reason: str
    """In words: what shows that it is there, or why it can't be used."""
    depth: int | None = None
    cycles: bool = False
    call_stack: bool = False
    pmus: tuple[Pmu, ...] = ()
    """The PMUs that record branches, several on hybrid processors."""


def find_facility(machine: Machine) -> Facility:
    """The branch recorder of a machine, or why it has none."""
    recorder, absence = _by_processor(machine)
    pmus = tuple(pmu for pmu in machine.pmus if pmu.branches)
    if recorder is not None and not pmus and _predates_caps(machine):
        pmus = machine.pmus
    if recorder is None:
        return Facility(None, False, absence)
    if not pmus:
        return Facility(recorder, False, _why_not_shown(machine, recorder))
    depth = min((pmu.branches for pmu in pmus if pmu.branches), default=None)
    return Facility(
        recorder=recorder,
        usable=True,
        reason=f"{pmus[0].name}/caps/branches in sysfs says {depth}"
        if depth
        else f"every {recorder.name} that this kernel drives; it doesn't tell the depth",
        depth=depth,
        cycles=recorder.has_cycles(machine.cpu, depth),
        call_stack=recorder.has_call_stack(machine.cpu, depth),
        pmus=pmus,
    )


def _by_processor(machine: Machine) -> tuple[Recorder | None, str]:
    """The recorder that this processor should have, or why it can't have one."""
    cpu = machine.cpu
    if cpu.vendor == "GenuineIntel":
        return (INTEL_ARCH_LBR if "arch_lbr" in cpu.flags else INTEL_LBR), ""
    if cpu.vendor in ("AuthenticAMD", "HygonGenuine"):
        return _amd_recorder(machine)
    if cpu.architecture == "aarch64":
        return ARM_BRBE, ""
    if cpu.architecture == "riscv64":
        return _riscv_recorder(machine)
    if cpu.architecture is None:
        return None, "the processor is not known: /proc/cpuinfo is missing or of another kind"
    return None, f"no branch recorder of {cpu.vendor} processors is known"


def _amd_recorder(machine: Machine) -> tuple[Recorder | None, str]:
    cpu = machine.cpu
    if "amd_lbr_v2" in cpu.flags:
        return AMD_LBR_V2, ""
    if "brs" in cpu.flags:
        return AMD_BRS, ""
    family = cpu.family or 0
    if family < 0x19:
        return None, "AMD processors before Zen 3 have no branch records that Linux can use"
    zen3 = family == 0x19 and (cpu.model or 0) >> 4 in (0x0, 0x2, 0x3, 0x4, 0x5)
    return (AMD_BRS if zen3 else AMD_LBR_V2), ""


def _riscv_recorder(machine: Machine) -> tuple[Recorder | None, str]:
    # Linux: those patches, arch/riscv/kernel/cpufeature.c
    if machine.cpu.flags & {"smctr", "ssctr"}:
        return RISCV_CTR, ""
    return None, "the isa in /proc/cpuinfo has no CTR (smctr, ssctr)"


def _why_not_shown(machine: Machine, recorder: Recorder) -> str:
    """Why the kernel shows no branch ring, the most fundamental reason first."""
    if not machine.has_sysfs:
        where = "this container" if machine.container else "this system"
        return f"{where} shows no /sys/bus/event_source: mount sysfs, or look on the host"
    since, kernel = recorder.since, machine.kernel
    if machine.hypervisor is not None:
        shown = "no branch records" if machine.pmus else "no performance counters"
        known = "" if machine.hypervisor == "unknown" else f" ({machine.hypervisor})"
        return f"the hypervisor{known} shows {shown} to this guest"
    if since is not None and kernel is not None and kernel < since:
        return (
            f"{recorder.name} needs Linux {since[0]}.{since[1]} or newer, "
            f"this is {machine.kernel_release}"
        )
    return recorder.why_not_shown


def _predates_caps(machine: Machine) -> bool:
    """Whether the kernel drives an LBR without saying so: old, on bare metal, with a PMU."""
    kernel = machine.kernel
    return (
        machine.cpu.vendor == "GenuineIntel"
        and kernel is not None
        and (INTEL_LBR.since or CAPS_SINCE) <= kernel < CAPS_SINCE
        and machine.hypervisor is None
    )
