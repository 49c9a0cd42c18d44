"""Facts about the machine that decide whether it can record branches.

Everything is read below an injectable root, so a directory with a few files is a machine. What a
fact means for recording is told elsewhere (`facility`, `doctor`); here stands only what the kernel
shows. The files: /proc/cpuinfo, /sys/bus/event_source/devices (Linux:
Documentation/ABI/testing/sysfs-bus-event_source-devices-caps), /proc/sys/kernel/*
(Documentation/admin-guide/sysctl/kernel.rst), /proc/self/status (capabilities(7)).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.recorders.guest import EMULATORS

CAP_SYS_ADMIN, CAP_PERFMON = 21, 38

# Core PMUs in sysfs; the others there count uncore, software or tracing events.
_CORE_PMU = re.compile(r"(cpu(_(core|atom|lowpower))?|armv[89]\w*|apple_\w+)$")

# MIDR_EL1.Implementer and .PartNum (Linux: arch/arm64/include/asm/cputype.h).
ARM_IMPLEMENTERS = {
    0x41: "Arm", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon",
    0x4E: "NVIDIA", 0x51: "Qualcomm", 0x61: "Apple", 0x6D: "Microsoft", 0xC0: "Ampere",
}  # fmt: skip
ARM_PARTS = {
    (0x41, 0xD0C): "Neoverse N1", (0x41, 0xD40): "Neoverse V1", (0x41, 0xD49): "Neoverse N2",
    (0x41, 0xD4F): "Neoverse V2", (0x41, 0xD84): "Neoverse V3", (0x41, 0xD83): "Neoverse V3AE",
    (0x41, 0xD8E): "Neoverse N3", (0xC0, 0xAC3): "Ampere1", (0xC0, 0xAC4): "Ampere1a",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cpu:
    """The first processor of /proc/cpuinfo."""

    architecture: str | None
    """A name of the registry's, or None where cpuinfo is missing or of another architecture."""
    vendor: str
    """`GenuineIntel`, `AuthenticAMD`, … or the Arm implementer's name; `unknown`."""
    name: str
    family: int | None
    model: int | None
    flags: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pmu:
    """One core PMU as sysfs shows it."""

    name: str
    branches: int | None
    """Depth of its branch ring; None if the kernel shows none."""
    max_precise: int | None
    """How many `p` an event may have; None if the kernel doesn't say."""
    branch_counters: int
    events: frozenset[str]


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides about recording."""

    cpu: Cpu
    pmus: tuple[Pmu, ...]
    """Ordered by name."""
    has_sysfs: bool
    kernel_release: str | None
    paranoid: int | None
    kptr_restrict: int | None
    privileged: bool
    """Whether perf_event_paranoid doesn't bind this process (CAP_PERFMON or CAP_SYS_ADMIN)."""
    hypervisor: str | None
    """Its name, `unknown` if only its presence is known, None if there seems to be none."""
    container: bool
    perf_version: str | None
    """As `perf version` says it; None if perf isn't installed."""
    emulators: tuple[str, ...]
    """Programs that the software LBR can run on: qemu-user for the architectures it knows."""
    compiler: str | None
    """A C compiler, which the software LBR needs once."""

    @property
    def kernel(self) -> tuple[int, int] | None:
        """Major and minor number of the kernel; None where it doesn't say."""
        found = re.match(r"(\d+)\.(\d+)", self.kernel_release or "")
        return (int(found[1]), int(found[2])) if found else None


def read_machine(
    root: Path = Path("/"),
    *,
    which: Callable[[str], str | None] = shutil.which,
    perf_version: Callable[[], str | None] | None = None,
) -> Machine:
    """Read the machine below `root`; `which` finds programs, `perf_version` asks perf."""
    cpu = parse_cpuinfo(_text(root / "proc/cpuinfo") or "")
    pmus, has_sysfs = _read_pmus(root / "sys")
    kernel = root / "proc/sys/kernel"
    emulators = tuple(name for name in EMULATORS.values() if which(name))
    return Machine(
        cpu=cpu,
        pmus=pmus,
        has_sysfs=has_sysfs,
        kernel_release=_text(kernel / "osrelease"),
        paranoid=_integer(kernel / "perf_event_paranoid"),
        kptr_restrict=_integer(kernel / "kptr_restrict"),
        privileged=_is_privileged(_text(root / "proc/self/status") or ""),
        hypervisor=_hypervisor(root, cpu),
        container=_in_container(root),
        perf_version=(perf_version or (lambda: ask_perf_version(which)))(),
        emulators=emulators,
        compiler=next((c for c in ("cc", "gcc", "clang") if which(c)), None),
    )


def ask_perf_version(which: Callable[[str], str | None] = shutil.which) -> str | None:
    """What `perf version` answers, without its name; None if perf is missing or broken."""
    perf = which("perf")
    if perf is None:
        return None
    try:
        done = subprocess.run([perf, "version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"perf version (\S+)", done.stdout)
    return found[1] if found else None


def parse_cpuinfo(text: str) -> Cpu:
    """Read the first processor of /proc/cpuinfo; all `unknown` if it is empty or foreign."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    if "vendor_id" in fields:
        return _x86_cpu(fields)
    if "CPU implementer" in fields:
        return _arm_cpu(fields)
    base, *extensions = fields.get("isa", "").split("_")
    if base.startswith("rv64"):
        uarch = fields.get("uarch", "unknown")
        return Cpu("riscv64", "RISC-V", uarch, None, None, frozenset(extensions))
    return Cpu(None, "unknown", fields.get("model name", "unknown"), None, None, frozenset())


def _x86_cpu(fields: Mapping[str, str]) -> Cpu:
    return Cpu(
        architecture="x86-64",
        vendor=fields["vendor_id"],
        name=fields.get("model name", "unknown"),
        family=_number(fields.get("cpu family")),
        model=_number(fields.get("model")),
        flags=frozenset(fields.get("flags", "").split()),
    )


def _arm_cpu(fields: Mapping[str, str]) -> Cpu:
    implementer = _number(fields["CPU implementer"])
    part = _number(fields.get("CPU part"))
    vendor = ARM_IMPLEMENTERS.get(-1 if implementer is None else implementer, "unknown")
    name = ARM_PARTS.get((implementer or 0, part or 0), f"part {fields.get('CPU part', '?')}")
    return Cpu(
        architecture="aarch64",
        vendor=vendor,
        name=name,
        family=implementer,
        model=part,
        flags=frozenset(fields.get("Features", "").split()),
    )


def _read_pmus(sys: Path) -> tuple[tuple[Pmu, ...], bool]:
    """The core PMUs, and whether sysfs shows event sources at all."""
    for devices in (sys / "bus/event_source/devices", sys / "devices"):
        names = _names(devices)
        if names:
            core = sorted(name for name in names if _CORE_PMU.match(name))
            pmus = tuple(_read_pmu(devices / name) for name in core if _is_pmu(devices / name))
            return pmus, True
    return (), False


def _is_pmu(path: Path) -> bool:
    # Every event source has a `type`; a stray /sys/devices/cpu* directory has none.
    return (path / "type").exists() or (path / "format").exists() or (path / "caps").exists()


def _read_pmu(path: Path) -> Pmu:
    return Pmu(
        name=path.name,
        branches=_integer(path / "caps/branches"),
        max_precise=_integer(path / "caps/max_precise"),
        branch_counters=_integer(path / "caps/branch_counter_nr") or 0,
        events=frozenset(_names(path / "events")),
    )


def _hypervisor(root: Path, cpu: Cpu) -> str | None:
    """Name of the hypervisor, from the places where one betrays itself."""
    kind = _text(root / "sys/hypervisor/type")
    if kind:
        return kind
    dmi = root / "sys/class/dmi/id"
    firmware = " ".join(_text(dmi / name) or "" for name in ("sys_vendor", "product_name"))
    for mark in ("KVM", "QEMU", "VMware", "VirtualBox", "Google Compute Engine", "Virtual Machine"):
        if mark in firmware:
            return mark
    if "hypervisor" in cpu.flags or (root / "proc/device-tree/hypervisor").exists():
        return "Amazon EC2" if "Amazon EC2" in firmware else "unknown"
    return None


def _in_container(root: Path) -> bool:
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return True
    groups = _text(root / "proc/1/cgroup") or ""
    return any(mark in groups for mark in ("docker", "kubepods", "containerd", "lxc", "libpod"))


def _is_privileged(status: str) -> bool:
    found = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", status, re.MULTILINE)
    capabilities = int(found[1], 16) if found else 0
    return bool(capabilities >> CAP_SYS_ADMIN & 1 or capabilities >> CAP_PERFMON & 1)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip("\0\n ")
    except OSError:
        return None


def _integer(path: Path) -> int | None:
    return _number(_text(path))


def _number(text: str | None) -> int | None:
    """A decimal or 0x… number; None for anything else."""
    try:
        return None if text is None else int(text, 0)
    except ValueError:
        return None
