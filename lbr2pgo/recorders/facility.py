"""Which branch recorder a machine has, what it can do, and why it has none.

Presence is judged by what the kernel shows, never by its version: distributions carry drivers
back. The version only explains an absence.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lbr2pgo.recorders.machine import Machine, Pmu


class Recorder(Enum):
    """The branch recorders that Linux drives."""

    INTEL_LBR = "Intel LBR"
    INTEL_ARCH_LBR = "Intel architectural LBR"
    AMD_BRS = "AMD BRS"
    AMD_LBR_V2 = "AMD LbrExtV2"
    ARM_BRBE = "Arm BRBE"
    RISCV_CTR = "RISC-V CTR"


SINCE = {
    Recorder.INTEL_LBR: (3, 4),
    Recorder.INTEL_ARCH_LBR: (5, 9),
    Recorder.AMD_BRS: (5, 19),
    Recorder.AMD_LBR_V2: (6, 1),
    Recorder.ARM_BRBE: (6, 17),
}
"""First mainline Linux that records with it: PERF_SAMPLE_BRANCH_STACK of 3.4, then
arch/x86/events/intel/lbr.c, arch/x86/events/amd/brs.c and lbr.c, drivers/perf/arm_brbe.c. None is
known for CTR, whose driver is in patches of May 2025."""

CALL_STACK_SINCE = (4, 1)  # PERF_SAMPLE_BRANCH_CALL_STACK
CYCLES_SINCE = (4, 3)  # `cycles` in struct perf_branch_entry, with Skylake's LBR_INFO
CAPS_SINCE = (4, 14)  # caps/branches in sysfs

# Haswell and Broadwell: 16 entries like their elders, but with LBR_SELECT's call-stack bit
# (Linux: arch/x86/events/intel/core.c, the models that call intel_pmu_lbr_init_hsw).
_HASWELL_TO_BROADWELL = frozenset({0x3C, 0x3F, 0x45, 0x46, 0x3D, 0x47, 0x4F, 0x56})


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
        else f"every {recorder.value} that this kernel drives; it doesn't tell the depth",
        depth=depth,
        cycles=_has_cycles(recorder, depth),
        call_stack=_has_call_stack(machine, recorder, depth),
        pmus=pmus,
    )


def _by_processor(machine: Machine) -> tuple[Recorder | None, str]:
    """The recorder that this processor should have, or why it can't have one."""
    cpu = machine.cpu
    if cpu.vendor == "GenuineIntel":
        return (Recorder.INTEL_ARCH_LBR if "arch_lbr" in cpu.flags else Recorder.INTEL_LBR), ""
    if cpu.vendor in ("AuthenticAMD", "HygonGenuine"):
        return _amd_recorder(machine)
    if cpu.architecture == "aarch64":
        return Recorder.ARM_BRBE, ""
    if cpu.architecture == "riscv64":
        return _riscv_recorder(machine)
    if cpu.architecture is None:
        return None, "the processor is not known: /proc/cpuinfo is missing or of another kind"
    return None, f"no branch recorder of {cpu.vendor} processors is known"


def _amd_recorder(machine: Machine) -> tuple[Recorder | None, str]:
    cpu = machine.cpu
    if "amd_lbr_v2" in cpu.flags:
        return Recorder.AMD_LBR_V2, ""
    if "brs" in cpu.flags:
        return Recorder.AMD_BRS, ""
    family = cpu.family or 0
    if family < 0x19:
        return None, "AMD processors before Zen 3 have no branch records that Linux can use"
    zen3 = family == 0x19 and (cpu.model or 0) >> 4 in (0x0, 0x2, 0x3, 0x4, 0x5)
    return (Recorder.AMD_BRS if zen3 else Recorder.AMD_LBR_V2), ""


def _riscv_recorder(machine: Machine) -> tuple[Recorder | None, str]:
    # Linux: those patches, arch/riscv/kernel/cpufeature.c
    if machine.cpu.flags & {"smctr", "ssctr"}:
        return Recorder.RISCV_CTR, ""
    return None, "the isa in /proc/cpuinfo has no CTR (smctr, ssctr)"


def _why_not_shown(machine: Machine, recorder: Recorder) -> str:
    """Why the kernel shows no branch ring, the most fundamental reason first."""
    if not machine.has_sysfs:
        where = "this container" if machine.container else "this system"
        return f"{where} shows no /sys/bus/event_source: mount sysfs, or look on the host"
    since, kernel = SINCE.get(recorder), machine.kernel
    if machine.hypervisor is not None:
        shown = "no branch records" if machine.pmus else "no performance counters"
        known = "" if machine.hypervisor == "unknown" else f" ({machine.hypervisor})"
        return f"the hypervisor{known} shows {shown} to this guest"
    if since is not None and kernel is not None and kernel < since:
        return (
            f"{recorder.value} needs Linux {since[0]}.{since[1]} or newer, "
            f"this is {machine.kernel_release}"
        )
    return _missing_in_this_kernel(recorder)


def _missing_in_this_kernel(recorder: Recorder) -> str:
    if recorder is Recorder.AMD_BRS:
        return "the kernel shows no BRS: it needs CONFIG_PERF_EVENTS_AMD_BRS"
    if recorder is Recorder.ARM_BRBE:
        return "no core PMU has caps/branches: no BRBE, or no CONFIG_ARM64_BRBE in the kernel"
    if recorder is Recorder.RISCV_CTR:
        return "no core PMU has caps/branches: the driver of CTR is in patches of Linux alone"
    return f"the kernel shows no {recorder.value}: no core PMU in sysfs has caps/branches"


def _predates_caps(machine: Machine) -> bool:
    """Whether the kernel drives an LBR without saying so: old, on bare metal, with a PMU."""
    kernel = machine.kernel
    return (
        machine.cpu.vendor == "GenuineIntel"
        and kernel is not None
        and SINCE[Recorder.INTEL_LBR] <= kernel < CAPS_SINCE
        and machine.hypervisor is None
    )


def _has_cycles(recorder: Recorder, depth: int | None) -> bool:
    """Whether entries say how many cycles passed.

    On Intel the ring of 32 came together with the cycle count (Skylake, Goldmont; Linux:
    arch/x86/events/intel/lbr.c, intel_pmu_lbr_init_skl).
    """
    if recorder in (Recorder.INTEL_ARCH_LBR, Recorder.ARM_BRBE, Recorder.RISCV_CTR):
        return True
    return recorder is Recorder.INTEL_LBR and (depth or 0) >= 32


def _has_call_stack(machine: Machine, recorder: Recorder, depth: int | None) -> bool:
    """Whether the ring can keep the open calls (Linux: lbr.c, x86_pmu_has_lbr_callstack)."""
    if recorder in (Recorder.INTEL_ARCH_LBR, Recorder.RISCV_CTR):
        return True
    if recorder is not Recorder.INTEL_LBR:
        return False
    return (depth or 0) >= 32 or machine.cpu.model in _HASWELL_TO_BROADWELL
