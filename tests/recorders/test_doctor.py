from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lbr2pgo.recorders.doctor import Diagnosis, DoctorRow, Status, diagnose
from lbr2pgo.recorders.machine import Machine

Make = Callable[..., Machine]
Pmus = Mapping[str, Any]


def rows(diagnosis: Diagnosis) -> dict[str, DoctorRow]:
    return {row.name: row for row in diagnosis.rows}


def test_skylake_records_32_entries_with_cycles_and_call_stacks(
    make_machine: Make, pmus: Pmus
) -> None:
    diagnosis = diagnose(make_machine("skylake", pmus["lbr32"]))
    row = rows(diagnosis)
    assert row["CPU"].value == "GenuineIntel Intel(R) Xeon(R) Gold 6148"
    assert row["CPU"].reason == "family 0x6, model 0x55"
    assert (row["branch recorder"].status, row["branch recorder"].value) == (
        Status.YES,
        "Intel LBR",
    )
    assert row["depth"].value == "32 entries"
    assert row["cycle counts"].status is Status.YES
    assert row["call-stack mode"].status is Status.YES
    assert row["kernel"].status is Status.YES
    assert row["hypervisor"].status is Status.YES
    assert diagnosis.choice.hardware
    assert " ".join(diagnosis.command) == (
        "perf record -e br_inst_retired.near_taken:uppp -c 500009 -b -o perf.data"
        " -- PROGRAM ARGUMENTS"
    )


RING_OF_16 = {"cpu": {"caps/branches": "16"}}
NO_CAPS = {"cpu": {"format/event": "config:0-7"}}
NO_BRBE = {"armv8_pmuv3_0": {}}


@pytest.mark.parametrize(
    ("cpu", "pmu", "kernel", "row", "status", "said"),
    [
        ("sapphirerapids", "lbr32", None, "branch recorder", Status.YES, "Intel architectural LBR"),
        ("sapphirerapids", "lbr32", None, "kernel", Status.YES, "LBR came with Linux 5.9"),
        ("haswell", RING_OF_16, None, "depth", Status.YES, "16 entries"),
        ("haswell", RING_OF_16, None, "cycle counts", Status.NO, "Skylake"),
        ("haswell", RING_OF_16, None, "call-stack mode", Status.YES, ""),
        ("sandybridge", RING_OF_16, None, "cycle counts", Status.NO, ""),
        ("sandybridge", RING_OF_16, None, "call-stack mode", Status.NO, ""),
        ("alderlake", "hybrid", None, "core PMUs", Status.YES, "cpu_atom, cpu_core"),
        ("alderlake", "hybrid", None, "depth", Status.YES, "cpu_atom 32, cpu_core 32"),
        ("skylake", NO_CAPS, "4.9.0", "branch recorder", Status.YES, ""),
        ("skylake", NO_CAPS, "4.9.0", "depth", Status.INFO, "unknown"),
        ("skylake", "lbr32", "4.2.0", "cycle counts", Status.NO, ""),
        ("skylake", "lbr32", "4.3.0", "cycle counts", Status.YES, ""),
        ("zen3-old-kernel", "none", "5.10.0-8", "branch recorder", Status.NO,
         "AMD BRS needs Linux 5.19 or newer, this is 5.10.0-8"),
        ("zen3-old-kernel", "none", "5.10.0-8", "kernel", Status.NO, ""),
        ("zen3", "none", "6.1.0", "branch recorder", Status.NO, "CONFIG_PERF_EVENTS_AMD_BRS"),
        ("zen3", "none", "6.1.0", "kernel", Status.INFO, ""),
        # A driver that was backported beats the kernel's number.
        ("zen4", "amd16", "5.14.0-427.el9", "branch recorder", Status.YES, ""),
        ("zen4", "amd16", "5.14.0-427.el9", "kernel", Status.YES, ""),
        ("neoverse-n1", NO_BRBE, "6.16.0", "branch recorder", Status.NO, "needs Linux 6.17"),
        ("neoverse-n1", NO_BRBE, "6.17.0", "branch recorder", Status.NO, "no BRBE"),
        ("riscv", "empty", None, "CPU", Status.INFO, "RISC-V sifive,u74-mc"),
        ("riscv", "empty", None, "branch recorder", Status.NO, "has no CTR (smctr, ssctr)"),
        ("riscv-ctr", "none", None, "branch recorder", Status.NO, "RISC-V CTR; no core PMU"),
        ("riscv-ctr", "none", None, "kernel", Status.INFO, "no known release drives"),
        ("riscv-ctr", "lbr32", None, "call-stack mode", Status.YES, "yes"),
        ("riscv32", "empty", None, "branch recorder", Status.NO, "the processor is not known"),
        ("via", "empty", None, "branch recorder", Status.NO, "no branch recorder of CentaurHauls"),
        ("hygon", "empty", None, "branch recorder", Status.NO, "before Zen 3"),
    ],
)  # fmt: skip
def test_what_a_machine_has_and_why(
    make_machine: Make, pmus: Pmus, cpu: str, pmu: Any, kernel: str | None, row: str,
    status: Status, said: str,
) -> None:  # fmt: skip
    options = {} if kernel is None else {"kernel": kernel}
    machine = make_machine(cpu, pmus[pmu] if isinstance(pmu, str) else pmu, **options)
    found = rows(diagnose(machine))[row]
    assert found.status is status
    assert said in f"{found.value}; {found.reason}"


def test_zen2_has_instructions_alone(make_machine: Make, pmus: Pmus) -> None:
    diagnosis = diagnose(make_machine("zen2", pmus["none"]))
    row = rows(diagnosis)
    assert row["branch recorder"].status is Status.NO
    assert "before Zen 3" in row["branch recorder"].reason
    assert row["instruction samples"].status is Status.YES
    assert diagnosis.choice.hardware
    assert not diagnosis.choice.branches
    assert diagnosis.command[:4] == ("perf", "record", "-e", "instructions:u")
    assert "-b" not in diagnosis.command


def test_without_events_there_are_no_samples_of_instructions(
    make_machine: Make, pmus: Pmus
) -> None:
    diagnosis = diagnose(make_machine("zen2", pmus["empty"]))
    assert rows(diagnosis)["instruction samples"].reason.endswith("no performance counters")
    assert not diagnosis.choice.hardware
    assert diagnosis.command[:2] == ("lbr2pgo", "record")


def test_zen3_has_brs(make_machine: Make, pmus: Pmus) -> None:
    diagnosis = diagnose(make_machine("zen3", pmus["brs16"]))
    row = rows(diagnosis)
    assert row["branch recorder"].value == "AMD BRS"
    assert (row["cycle counts"].status, row["call-stack mode"].status) == (Status.NO, Status.NO)
    assert diagnosis.command[2:6] == ("-e", "cpu/branch-brs/u", "-c", "500009")


def test_zen4_has_lbr_v2(make_machine: Make, pmus: Pmus) -> None:
    diagnosis = diagnose(make_machine("zen4", pmus["amd16"]))
    row = rows(diagnosis)
    assert row["branch recorder"].value == "AMD LbrExtV2"
    assert row["depth"].value == "16 entries"
    assert row["cycle counts"].reason == "AMD LbrExtV2 doesn't count them"
    assert diagnosis.command[2:4] == ("-e", "ex_ret_brn_tkn:u")


def test_arm_with_brbe(make_machine: Make, pmus: Pmus) -> None:
    diagnosis = diagnose(make_machine("neoverse-v3", pmus["brbe64"]))
    row = rows(diagnosis)
    assert row["CPU"].value == "Arm Neoverse V3"
    assert (row["branch recorder"].value, row["depth"].value) == ("Arm BRBE", "64 entries")
    assert row["cycle counts"].status is Status.YES
    assert row["call-stack mode"].status is Status.NO
    assert "-b" in diagnosis.command


@pytest.mark.parametrize(
    ("pmu", "reason"), [("empty", "no performance counters"), ("none", "no branch records")]
)
def test_guest_without_branch_records(
    make_machine: Make, pmus: Pmus, pmu: str, reason: str
) -> None:
    files = {"sys/class/dmi/id/product_name": "KVM Virtual Machine\n"}
    diagnosis = diagnose(make_machine("skylake-guest", pmus[pmu], files=files))
    row = rows(diagnosis)
    assert row["branch recorder"].reason == f"the hypervisor (KVM) shows {reason} to this guest"
    assert (row["hypervisor"].status, row["hypervisor"].value) == (Status.NO, "KVM")
    assert diagnosis.choice.reason == row["branch recorder"].reason


def test_guest_with_branch_records(make_machine: Make, pmus: Pmus) -> None:
    row = rows(diagnose(make_machine("skylake-guest", pmus["lbr32"])))
    assert row["hypervisor"].status is Status.YES
    assert row["hypervisor"].value == "unknown"


def test_container_without_sysfs(make_machine: Make) -> None:
    diagnosis = diagnose(make_machine("zen4", None, files={".dockerenv": ""}))
    row = rows(diagnosis)
    assert "this container shows no /sys/bus/event_source" in row["branch recorder"].reason
    assert row["core PMUs"].value == "unknown"
    assert (row["container"].status, row["container"].value) == (Status.LIMITED, "yes")


@pytest.mark.parametrize(
    ("level", "status", "hardware"),
    [("-1", Status.YES, True), ("2", Status.LIMITED, True), ("3", Status.NO, False)],
)
def test_paranoid(
    make_machine: Make, pmus: Pmus, level: str, status: Status, hardware: bool
) -> None:
    diagnosis = diagnose(make_machine("skylake", pmus["lbr32"], paranoid=level))
    assert rows(diagnosis)["perf_event_paranoid"].status is status
    assert diagnosis.choice.hardware is hardware


def test_privileged_users_pass_paranoid(make_machine: Make, pmus: Pmus) -> None:
    cap_perfmon = {"proc/self/status": f"CapEff:\t{1 << 38:016x}\n"}
    machine = make_machine("skylake", pmus["lbr32"], paranoid="4", files=cap_perfmon)
    diagnosis = diagnose(machine)
    assert rows(diagnosis)["perf_event_paranoid"].status is Status.YES
    assert diagnosis.choice.hardware


def test_hidden_kernel_symbols_are_told(make_machine: Make, pmus: Pmus) -> None:
    files = {"proc/sys/kernel/kptr_restrict": "1\n"}
    row = rows(diagnose(make_machine("skylake", pmus["lbr32"], files=files)))
    assert row["kptr_restrict"].status is Status.LIMITED


def test_perf_missing(make_machine: Make, pmus: Pmus) -> None:
    diagnosis = diagnose(make_machine("skylake", pmus["lbr32"], perf=None))
    assert rows(diagnosis)["perf"].status is Status.NO
    assert diagnosis.choice.reason == "perf is not installed"


def test_software_lbr_names_what_is_missing(make_machine: Make, pmus: Pmus) -> None:
    row = rows(diagnose(make_machine("zen2", pmus["none"], programs=())))["software LBR"]
    assert row.status is Status.NO
    assert "qemu-user" in row.reason
    assert "C compiler" in row.reason


def test_an_empty_root_is_a_machine_that_can_do_nothing(tmp_path: Any) -> None:
    from lbr2pgo.recorders.machine import read_machine

    machine = read_machine(tmp_path, which=lambda _: None, perf_version=lambda: None)
    diagnosis = diagnose(machine)
    assert not diagnosis.choice.hardware
    assert all(row.status is not Status.YES or row.name == "hypervisor" for row in diagnosis.rows)


def test_this_machine_can_be_judged() -> None:
    from lbr2pgo.recorders.machine import read_machine

    diagnosis = diagnose(read_machine())
    assert len({row.name for row in diagnosis.rows}) == len(diagnosis.rows) == 15
