"""The branch recorders that Linux drives: one record says all that is known of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lbr2pgo.recorders.machine import Cpu
from lbr2pgo.recorders.options import KIND_FILTERS

# Haswell and Broadwell: 16 entries like their elders, but with LBR_SELECT's call-stack bit
# (Linux: arch/x86/events/intel/core.c, the models that call intel_pmu_lbr_init_hsw).
_HASWELL_TO_BROADWELL = frozenset({0x3C, 0x3F, 0x45, 0x46, 0x3D, 0x47, 0x4F, 0x56})
_TRANSACTIONS = frozenset({"abort_tx", "in_tx", "no_tx"})


def _always(cpu: Cpu, depth: int | None) -> bool:
    return True


def _never(cpu: Cpu, depth: int | None) -> bool:
    return False


def _from_skylake(cpu: Cpu, depth: int | None) -> bool:
    """On Intel the ring of 32 came with Skylake and Goldmont (Linux: intel_pmu_lbr_init_skl)."""
    return (depth or 0) >= 32


def _from_haswell(cpu: Cpu, depth: int | None) -> bool:
    """Linux: arch/x86/events/intel/lbr.c, x86_pmu_has_lbr_callstack."""
    return _from_skylake(cpu, depth) or cpu.model in _HASWELL_TO_BROADWELL


@dataclass(frozen=True, slots=True)
class Recorder:
    """A kind of recorder."""

    name: str
    since: tuple[int, int] | None
    """First mainline Linux that records with it; None: no release does."""
    why_not_shown: str
    """What it can be that keeps a kernel from showing it."""
    unsupported: frozenset[str] = frozenset()
    """Names of `perf record -j` that it can't do."""
    has_cycles: Callable[[Cpu, int | None], bool] = _never
    """Whether entries say how many cycles passed, by the processor and the depth of its ring."""
    has_call_stack: Callable[[Cpu, int | None], bool] = _never
    """Whether the ring can keep the open calls."""


def _no_caps(name: str) -> str:
    return f"the kernel shows no {name}: no core PMU in sysfs has caps/branches"


INTEL_LBR = Recorder(
    "Intel LBR",
    (3, 4),  # PERF_SAMPLE_BRANCH_STACK, arch/x86/events/intel/lbr.c
    _no_caps("Intel LBR"),
    has_cycles=_from_skylake,
    has_call_stack=_from_haswell,
)
INTEL_ARCH_LBR = Recorder(
    "Intel architectural LBR",
    (5, 9),
    _no_caps("Intel architectural LBR"),
    has_cycles=_always,
    has_call_stack=_always,
)
AMD_BRS = Recorder(
    "AMD BRS",
    (5, 19),
    "the kernel shows no BRS: it needs CONFIG_PERF_EVENTS_AMD_BRS",
    # Linux: amd/brs.c, amd_brs_setup_filter takes `any` and privilege levels alone.
    unsupported=(frozenset(KIND_FILTERS) - {"any"}) | {"save_type", "priv"},
)
AMD_LBR_V2 = Recorder(
    "AMD LbrExtV2",
    (6, 1),
    _no_caps("AMD LbrExtV2"),
    unsupported=_TRANSACTIONS,  # Linux: amd/lbr.c, the LBR_NOT_SUPP of lbr_select_map
)
ARM_BRBE = Recorder(
    "Arm BRBE",
    (6, 17),
    "no core PMU has caps/branches: no BRBE, or no CONFIG_ARM64_BRBE in the kernel",
    unsupported=_TRANSACTIONS,  # Linux: arm_brbe.c, BRBE_EXCLUDE_BRANCH_FILTERS
    has_cycles=_always,
)
RISCV_CTR = Recorder(
    "RISC-V CTR",
    None,  # its driver is in patches of May 2025
    "no core PMU has caps/branches: the driver of CTR is in patches of Linux alone",
    unsupported=_TRANSACTIONS,
    has_cycles=_always,
    has_call_stack=_always,
)
