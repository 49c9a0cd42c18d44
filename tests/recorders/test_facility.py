from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lbr2pgo.recorders import branch_recorder as recorders
from lbr2pgo.recorders.branch_recorder import Recorder
from lbr2pgo.recorders.facility import find_facility
from lbr2pgo.recorders.machine import Machine

Make = Callable[..., Machine]
Pmus = Mapping[str, Any]

RECORDERS = [
    ("skylake", "lbr32", recorders.INTEL_LBR, 32, True, True),
    ("sapphirerapids", "lbr32", recorders.INTEL_ARCH_LBR, 32, True, True),
    ("zen3", "brs16", recorders.AMD_BRS, 16, False, False),
    ("zen4", "amd16", recorders.AMD_LBR_V2, 16, False, False),
    ("neoverse-v3", "brbe64", recorders.ARM_BRBE, 64, True, False),
    ("riscv-ctr", "lbr32", recorders.RISCV_CTR, 32, True, True),
]


@pytest.mark.parametrize(
    ("cpu", "pmu", "recorder", "depth", "cycles", "call_stack"), RECORDERS,
    ids=[row[0] for row in RECORDERS],
)  # fmt: skip
def test_what_a_recorder_can_do(
    make_machine: Make, pmus: Pmus, cpu: str, pmu: str, recorder: Recorder, depth: int,
    cycles: bool, call_stack: bool,
) -> None:  # fmt: skip
    found = find_facility(make_machine(cpu, pmus[pmu]))
    assert (found.recorder, found.usable, found.depth) == (recorder, True, depth)
    assert (found.cycles, found.call_stack) == (cycles, call_stack)
    assert f"sysfs says {depth}" in found.reason


@pytest.mark.parametrize(
    ("cpu", "call_stack"), [("haswell", True), ("sandybridge", False), ("nehalem", False)]
)
def test_a_ring_of_16_keeps_calls_from_haswell_on_and_counts_no_cycles(
    make_machine: Make, cpu: str, call_stack: bool
) -> None:
    found = find_facility(make_machine(cpu, {"cpu": {"caps/branches": "16"}}))
    assert (found.call_stack, found.cycles) == (call_stack, False)


@pytest.mark.parametrize(
    ("kernel", "usable"), [("3.3.0", False), ("3.4.0", True), ("4.14.0", False)]
)
def test_an_old_kernel_drives_the_lbr_without_saying_so(
    make_machine: Make, kernel: str, usable: bool
) -> None:
    """Between the versions that record and that tell, a PMU without its depth has one."""
    found = find_facility(
        make_machine("skylake", {"cpu": {"caps/max_precise": "3"}}, kernel=kernel)
    )
    assert (found.usable, found.depth) == (usable, None)


@pytest.mark.parametrize(
    ("cpu", "pmu", "kernel", "reason"),
    [
        ("zen2", "none", "6.18.0", "before Zen 3"),
        ("via", "none", "6.18.0", "no branch recorder of CentaurHauls"),
        ("riscv", "none", "6.18.0", "has no CTR"),
        ("riscv-ctr", "none", "6.18.0", "in patches of Linux"),
        ("riscv32", "none", "6.18.0", "the processor is not known"),
        ("zen4", None, "6.18.0", "mount sysfs"),
        ("skylake-guest", "none", "6.18.0", "the hypervisor shows no branch records"),
        ("skylake-guest", "empty", "6.18.0", "the hypervisor shows no performance counters"),
        ("zen4", "none", "5.19.0", "needs Linux 6.1 or newer, this is 5.19.0"),
        ("zen3", "none", "6.18.0", "CONFIG_PERF_EVENTS_AMD_BRS"),
        ("neoverse-v3", "empty", "6.18.0", "CONFIG_ARM64_BRBE"),
        ("skylake", "none", "6.18.0", "no core PMU in sysfs has caps/branches"),
    ],
)
def test_why_nothing_can_be_recorded(
    make_machine: Make, pmus: Pmus, cpu: str, pmu: str | None, kernel: str, reason: str
) -> None:
    found = find_facility(make_machine(cpu, None if pmu is None else pmus[pmu], kernel=kernel))
    assert not found.usable
    assert reason in found.reason


def test_what_the_kernel_shows_outweighs_its_version(make_machine: Make, pmus: Pmus) -> None:
    for cpu, pmu, *_ in RECORDERS:
        assert find_facility(make_machine(cpu, pmus[pmu], kernel="2.6.18")).usable
