from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lbr2pgo.record.doctor import Diagnosis, DoctorRow, Status, diagnose
from lbr2pgo.record.machine import Machine

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


def test_sapphire_rapids_has_architectural_lbr(make_machine: Make, pmus: Pmus) -> None:
    row = rows(diagnose(make_machine("sapphirerapids", pmus["lbr32"])))
    assert row["branch recorder"].value == "Intel architectural LBR"
    assert row["kernel"].reason == "Intel architectural LBR came with Linux 5.9"


def test_haswell_keeps_call_stacks_but_counts_no_cycles(make_machine: Make) -> None:
    row = rows(diagnose(make_machine("haswell", {"cpu": {"caps/branches": "16"}})))
    assert row["depth"].value == "16 entries"
    assert (row["cycle counts"].status, row["call-stack mode"].status) == (Status.NO, Status.YES)
    assert "Skylake" in row["cycle counts"].reason


def test_sandy_bridge_has_neither(make_machine: Make) -> None:
    row = rows(diagnose(make_machine("sandybridge", {"cpu": {"caps/branches": "16"}})))
    assert (row["cycle counts"].status, row["call-stack mode"].status) == (Status.NO, Status.NO)


def test_hybrid_names_both_pmus(make_machine: Make, pmus: Pmus) -> None:
    row = rows(diagnose(make_machine("alderlake", pmus["hybrid"])))
    assert row["core PMUs"].value == "cpu_atom, cpu_core"
    assert row["depth"].reason == "cpu_atom 32, cpu_core 32"


def test_kernel_without_caps_still_drives_the_lbr(make_machine: Make) -> None:
    machine = make_machine("skylake", {"cpu": {"format/event": "config:0-7"}}, kernel="4.9.0")
    row = rows(diagnose(machine))
    assert row["branch recorder"].status is Status.YES
    assert row["depth"].value == "unknown"


@pytest.mark.parametrize(("kernel", "cycles"), [("4.2.0", Status.NO), ("4.3.0", Status.YES)])
def test_cycles_need_linux_4_3(make_machine: Make, pmus: Pmus, kernel: str, cycles: Status) -> None:
    row = rows(diagnose(make_machine("skylake", pmus["lbr32"], kernel=kernel)))
    assert row["cycle counts"].status is cycles


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


def test_zen3_kernel_too_old(make_machine: Make, pmus: Pmus) -> None:
    row = rows(diagnose(make_machine("zen3-old-kernel", pmus["none"], kernel="5.10.0-8")))
    assert row["branch recorder"].reason == "AMD BRS needs Linux 5.19 or newer, this is 5.10.0-8"
    assert row["kernel"].status is Status.NO


def test_zen3_kernel_built_without_brs(make_machine: Make, pmus: Pmus) -> None:
    row = rows(diagnose(make_machine("zen3", pmus["none"], kernel="6.1.0")))
    assert "CONFIG_PERF_EVENTS_AMD_BRS" in row["branch recorder"].reason
    assert row["kernel"].status is Status.INFO


def test_zen4_has_lbr_v2(make_machine: Make, pmus: Pmus) -> None:
    diagnosis = diagnose(make_machine("zen4", pmus["amd16"]))
    row = rows(diagnosis)
    assert row["branch recorder"].value == "AMD LbrExtV2"
    assert row["depth"].value == "16 entries"
    assert row["cycle counts"].reason == "AMD LbrExtV2 doesn't count them"
    assert diagnosis.command[2:4] == ("-e", "ex_ret_brn_tkn:u")


def test_backported_driver_beats_the_kernel_number(make_machine: Make, pmus: Pmus) -> None:
    row = rows(diagnose(make_machine("zen4", pmus["amd16"], kernel="5.14.0-427.el9")))
    assert row["branch recorder"].status is Status.YES
    assert row["kernel"].status is Status.YES


def test_arm_with_brbe(make_machine: Make, pmus: Pmus) -> None:
    diagnosis = diagnose(make_machine("neoverse-v3", pmus["brbe64"]))
    row = rows(diagnosis)
    assert row["CPU"].value == "Arm Neoverse V3"
    assert (row["branch recorder"].value, row["depth"].value) == ("Arm BRBE", "64 entries")
    assert row["cycle counts"].status is Status.YES
    assert row["call-stack mode"].status is Status.NO
    assert "-b" in diagnosis.command


@pytest.mark.parametrize(
    ("kernel", "reason"), [("6.16.0", "needs Linux 6.17"), ("6.17.0", "no BRBE")]
)
def test_arm_without_brbe(make_machine: Make, kernel: str, reason: str) -> None:
    row = rows(diagnose(make_machine("neoverse-n1", {"armv8_pmuv3_0": {}}, kernel=kernel)))
    assert reason in row["branch recorder"].reason


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


@pytest.mark.parametrize(
    ("cpu", "reason"),
    [
        ("riscv", "the processor is not known"),
        ("via", "no branch recorder of CentaurHauls"),
        ("hygon", "before Zen 3"),
    ],
)
def test_other_processors(make_machine: Make, pmus: Pmus, cpu: str, reason: str) -> None:
    assert reason in rows(diagnose(make_machine(cpu, pmus["empty"])))["branch recorder"].reason


def test_an_empty_root_is_a_machine_that_can_do_nothing(tmp_path: Any) -> None:
    from lbr2pgo.record.machine import read_machine

    machine = read_machine(tmp_path, which=lambda _: None, perf_version=lambda: None)
    diagnosis = diagnose(machine)
    assert not diagnosis.choice.hardware
    assert all(row.status is not Status.YES or row.name == "hypervisor" for row in diagnosis.rows)


def test_this_machine_can_be_judged() -> None:
    from lbr2pgo.record.machine import read_machine

    diagnosis = diagnose(read_machine())
    assert len({row.name for row in diagnosis.rows}) == len(diagnosis.rows) == 15
