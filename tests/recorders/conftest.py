"""What the recorders' tests share.

For the hardware: machines made of a few files. For the software LBR: programs with known
branches, and a way to run it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from builders.fixtures import Tool

from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.recorders.machine import Machine, read_machine
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.plugin_build import built_plugin
from lbr2pgo.recorders.plugin_stream import Stream, read_streams
from lbr2pgo.recorders.software import RecordResult, record_software

PROGRAMS = Path(__file__).parent / "programs"
COMPILERS = {"x86-64": "gcc", "aarch64": "aarch64-linux-gnu-gcc",
             "riscv64": "riscv64-linux-gnu-gcc"}  # fmt: skip
EMULATORS = {"x86-64": "qemu-x86_64", "aarch64": "qemu-aarch64", "riscv64": "qemu-riscv64"}

# Straight-line blocks, one branch at the end of each.
BLOCKS = """
block 1 1000 90 7502
block 2 1003 90 eb0a
block 3 1005 90 ebf8
block 4 1010 90 c3
block 5 1020 ffd0
block 6 1022 90 ffe0
block 7 2000 90 90
block 8 2002 0f05
block 9 1001 7502
block 10 1010 f3aa
block 11 1012 ebfc
block 12 5ffe 90 ffd0
block 13 5fff ffd0
block 14 3000 e8fb000000
block 15 3100 e8fb000000
block 16 3200 c3
block 17 3005 90 c3
block 18 3105 c3
"""


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Callable[..., Path]:
    """`build("threads", machine, *flags)`: path of a program of tests/recorders/programs."""

    def call(name: str | Path, machine: str = "x86-64", *flags: str, output: str = "") -> Path:
        tool(EMULATORS[machine])
        path = tmp_path_factory.mktemp(f"{Path(name).name}-{machine}") / (output or name)
        source = PROGRAMS / f"{name}.c"
        command = [tool(COMPILERS[machine]), "-O1", *flags, source, "-o", path, "-pthread", "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        return path

    return call


@dataclass(frozen=True)
class Recording:
    """A recorded run, and how to look at it."""

    result: RecordResult
    path: Path
    exact_path: Path

    @property
    def exact(self) -> ExactCounts:
        return ExactCounts.load(self.exact_path)

    def branch(self, elf: Path, symbol: str) -> tuple[int, int]:
        """How often the branch at a symbol was taken and passed, by the exact counts."""
        exact = self.exact
        image = exact.find_image(None, str(elf))
        rows = (exact.from_image == image) & (exact.from_ == symbols_of(elf)[symbol])
        taken = exact.count[rows & exact.taken].sum()
        return int(taken), int(exact.count[rows & ~exact.taken].sum())

    def stacks(self) -> list[BranchStacks]:
        from lbr2pgo.sources.perf_data.reader import FORMAT

        source = FORMAT.open(self.path)
        return list(source.batches())  # type: ignore[union-attr]


def symbols_of(elf: Path) -> dict[str, int]:
    """Image addresses by name."""
    listing = subprocess.run(["nm", elf], capture_output=True, text=True, check=True).stdout
    words = (line.split() for line in listing.splitlines())
    return {w[2]: int(w[0], 16) for w in words if len(w) == 3}


@pytest.fixture
def record(tmp_path: Path, tool: Tool) -> Callable[..., Recording]:
    """`record(command…, period=…, filters=…)`: run a command under the software LBR."""
    for name in ("cc", *EMULATORS.values()):
        tool(name)

    def call(*command: object, period: int = 1009, **options: object) -> Recording:
        path, exact = tmp_path / "perf.data", tmp_path / "exact.npz"
        settings: dict[str, object] = {
            "output": path, "period": period, "filters": (), "depth": None, "call_stack": False,
            "call_graph": False, "cycles": True, "emulate": True, "dry_run": False,
            "exact": exact, "seed": 1,
        }  # fmt: skip
        words = tuple(str(word) for word in command)
        chosen = RecordOptions(command=words, **(settings | options))  # type: ignore[arg-type]
        return Recording(record_software(chosen), path, exact)

    return call


def x86_cpuinfo(vendor: str, family: int, model: int, flags: str, name: str = "CPU") -> str:
    return (
        f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
        f"model name\t: {name}\nstepping\t: 1\nflags\t\t: fpu vme {flags}\n\nprocessor\t: 1\n"
    )


def arm_cpuinfo(implementer: int, part: int) -> str:
    return (
        "processor\t: 0\nBogoMIPS\t: 100.00\nFeatures\t: fp asimd sve\n"
        f"CPU implementer\t: {implementer:#x}\nCPU architecture: 8\nCPU part\t: {part:#x}\n"
    )


CPUS = {
    "nehalem": x86_cpuinfo("GenuineIntel", 6, 0x1A, "dtes64"),
    "haswell": x86_cpuinfo("GenuineIntel", 6, 0x3F, "rtm"),
    "sandybridge": x86_cpuinfo("GenuineIntel", 6, 0x2D, ""),
    "goldmont": x86_cpuinfo("GenuineIntel", 6, 0x5C, ""),
    "skylake": x86_cpuinfo("GenuineIntel", 6, 0x55, "rtm", "Intel(R) Xeon(R) Gold 6148"),
    "sapphirerapids": x86_cpuinfo("GenuineIntel", 6, 0x8F, "arch_lbr"),
    "alderlake": x86_cpuinfo("GenuineIntel", 6, 0x97, "arch_lbr"),
    "sierraforest": x86_cpuinfo("GenuineIntel", 6, 0xAF, "arch_lbr"),
    "zen2": x86_cpuinfo("AuthenticAMD", 0x17, 0x31, "ibs"),
    "zen3": x86_cpuinfo("AuthenticAMD", 0x19, 0x01, "brs"),
    "zen3-old-kernel": x86_cpuinfo("AuthenticAMD", 0x19, 0x21, ""),
    "zen4": x86_cpuinfo("AuthenticAMD", 0x19, 0x11, "amd_lbr_v2 perfmon_v2"),
    "zen5-guest": x86_cpuinfo("AuthenticAMD", 0x1A, 0x02, "hypervisor"),
    "skylake-guest": x86_cpuinfo("GenuineIntel", 6, 0x55, "hypervisor"),
    "hygon": x86_cpuinfo("HygonGenuine", 0x18, 0, ""),
    "via": x86_cpuinfo("CentaurHauls", 7, 0, ""),
    "neoverse-n1": arm_cpuinfo(0x41, 0xD0C),
    "neoverse-v3": arm_cpuinfo(0x41, 0xD84),
    "riscv": "processor\t: 0\nhart\t\t: 0\nisa\t\t: rv64imafdc\nuarch\t\t: sifive,u74-mc\n",
    "riscv-ctr": "isa\t\t: rv64imafdc_sscofpmf_ssctr\nuarch\t\t: example,one\n",
    "riscv32": "processor\t: 0\nhart\t\t: 0\nisa\t\t: rv32imafdc\n",
}

Pmus = Mapping[str, Mapping[str, str]]
LBR_32: Pmus = {"cpu": {"caps/branches": "32\n", "caps/max_precise": "3\n"}}
AMD_16: Pmus = {"cpu": {"caps/branches": "16\n", "caps/max_precise": "0\n"}}
BRS_16: Pmus = {"cpu": {"caps/branches": "16\n", "events/branch-brs": "event=0xc4\n"}}
HYBRID: Pmus = {
    "cpu_core": {"caps/branches": "32\n", "caps/max_precise": "3\n"},
    "cpu_atom": {"caps/branches": "32\n", "caps/max_precise": "3\n"},
}
NO_LBR: Pmus = {"cpu": {"caps/max_precise": "0\n"}}
BRBE_64: Pmus = {"armv8_pmuv3_0": {"caps/branches": "64\n", "events/br_retired": "event=0x0021\n"}}


def write_machine(
    root: Path,
    cpu: str,
    pmus: Pmus | None,
    files: Mapping[str, str] | None = None,
    kernel: str = "6.18.0",
    paranoid: str = "2",
) -> Path:
    """A root directory; `pmus` None leaves sysfs away, as in a container."""
    contents = {
        "proc/cpuinfo": CPUS[cpu],
        "proc/sys/kernel/osrelease": f"{kernel}\n",
        "proc/sys/kernel/perf_event_paranoid": f"{paranoid}\n",
        "proc/sys/kernel/kptr_restrict": "0\n",
        "proc/self/status": "Name:\tlbr2pgo\nCapEff:\t0000000000000000\n",
        **(files or {}),
    }
    devices = "sys/bus/event_source/devices"
    if pmus is not None:
        contents |= {f"{devices}/software/type": "1\n", f"{devices}/uncore_imc_0/type": "20\n"}
        for pmu, entries in pmus.items():
            contents[f"{devices}/{pmu}/type"] = "4\n"
            contents |= {f"{devices}/{pmu}/{name}": text for name, text in entries.items()}
    for name, text in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def make_machine(tmp_path: Path) -> Callable[..., Machine]:
    """`make_machine("skylake", LBR_32, kernel=…, perf="6.1", programs=(…))`."""

    def make(
        cpu: str,
        pmus: Pmus | None,
        *,
        perf: str | None = "6.1.0",
        programs: tuple[str, ...] = ("qemu-x86_64", "cc"),
        **rest: Any,
    ) -> Machine:
        root = write_machine(tmp_path / f"{cpu}{len(list(tmp_path.iterdir()))}", cpu, pmus, **rest)
        found = {name: f"/usr/bin/{name}" for name in programs}
        return read_machine(root, which=found.get, perf_version=lambda: perf)

    return make


@pytest.fixture
def make_options(tmp_path: Path) -> Callable[..., RecordOptions]:
    """Plain options, with what a test wants otherwise."""

    def make(**changes: Any) -> RecordOptions:
        plain: dict[str, Any] = {
            "output": Path("perf.data"), "command": ("./program", "-x", "a b"), "cycles": True,
        }  # fmt: skip
        return RecordOptions(**{**plain, **changes})

    return make


@pytest.fixture
def pmus() -> Mapping[str, Pmus]:
    """Core PMUs as sysfs shows them, by a name."""
    return {
        "lbr32": LBR_32, "amd16": AMD_16, "brs16": BRS_16, "hybrid": HYBRID, "none": NO_LBR,
        "brbe64": BRBE_64, "empty": {},
    }  # fmt: skip


@pytest.fixture(autouse=True)
def _leaves_nothing(nothing_is_left: None) -> None:
    """Every test of a command is looked at."""


@pytest.fixture(scope="session")
def fake_qemu(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Callable[[int], Path]:
    def call(version: int) -> Path:
        path = tmp_path_factory.getbasetemp() / f"fake-qemu-{version}"
        if not path.exists():
            flags = ["-rdynamic", f"-DVERSION={version}"]
            command = [tool("cc"), *flags, PROGRAMS / "fake_qemu.c", "-o", path, "-ldl"]
            subprocess.run(command, check=True)
        return path

    return call


@pytest.fixture
def flow(fake_qemu: Callable[[int], Path], tmp_path: Path) -> Callable[..., Stream]:
    """`flow(script)`: what the plugin records of it."""

    def call(script: str, version: int = 1, machine: int = 62, **settings: object) -> Stream:
        chosen = {"machine": machine, "period": 1, "depth": 64, "exact": 1, "filter": 0xFFFF}
        words = [f"{name}={value}" for name, value in (chosen | settings).items()]
        command = [fake_qemu(version), built_plugin(), "x86_64", f"dir={tmp_path}", *words]
        done = subprocess.run(
            command, input=BLOCKS + script, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        (stream,) = read_streams(tmp_path)
        return stream

    return call
