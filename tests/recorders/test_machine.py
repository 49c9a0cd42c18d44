from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lbr2pgo.recorders.machine import Machine, parse_cpuinfo, read_machine

Make = Callable[..., Machine]


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"sys/hypervisor/type": "xen\n"}, "xen"),
        ({"sys/class/dmi/id/sys_vendor": "QEMU\n"}, "QEMU"),
        ({"proc/device-tree/hypervisor/compatible": "linux,kvm"}, "unknown"),
    ],
)
def test_hypervisors_without_a_cpu_flag(
    make_machine: Make, files: dict[str, str], name: str
) -> None:
    assert make_machine("neoverse-n1", {"armv8_pmuv3_0": {}}, files=files).hypervisor == name


def test_the_first_processor_is_read(make_machine: Make) -> None:
    cpu = make_machine("skylake", {}).cpu
    assert (cpu.architecture, cpu.vendor, cpu.family, cpu.model) == (
        "x86-64", "GenuineIntel", 6, 0x55,
    )  # fmt: skip
    assert cpu.name == "Intel(R) Xeon(R) Gold 6148"
    assert "rtm" in cpu.flags
    arm = make_machine("neoverse-n1", {}).cpu
    assert (arm.architecture, arm.vendor, arm.name) == ("aarch64", "Arm", "Neoverse N1")


@pytest.mark.parametrize("text", ["", "processor : 0\n", "vendor_id", "CPU part : zebra"])
def test_foreign_or_damaged_cpuinfo_is_an_unknown_processor(text: str) -> None:
    cpu = parse_cpuinfo(text)
    assert (cpu.architecture, cpu.vendor, cpu.model) == (None, "unknown", None)


def test_only_core_pmus_count(make_machine: Make) -> None:
    shown = {"cpu": {"caps/branches": "32"}, "cpu_atom": {}, "uncore_cha_0": {"caps/branches": "9"}}
    machine = make_machine("skylake", shown)
    assert [(pmu.name, pmu.branches) for pmu in machine.pmus] == [("cpu", 32), ("cpu_atom", None)]


@pytest.mark.parametrize(
    ("release", "kernel"), [("6.18.44-fc-v595", (6, 18)), ("4.19", (4, 19)), ("custom", None)]
)
def test_the_kernels_version_is_read_of_its_release(
    make_machine: Make, release: str, kernel: tuple[int, int] | None
) -> None:
    assert make_machine("skylake", {}, kernel=release).kernel == kernel


def test_an_empty_root_tells_nothing(tmp_path: Path) -> None:
    machine = read_machine(tmp_path, which=lambda _: None, perf_version=lambda: None)
    assert (machine.pmus, machine.has_sysfs, machine.kernel) == ((), False, None)
    assert (machine.privileged, machine.container, machine.hypervisor) == (False, False, None)
    assert (machine.emulators, machine.compiler) == ((), None)
