from __future__ import annotations

import json
import os
import shlex
import struct
from pathlib import Path

import pytest

from lbr2pgo.cli import msr
from lbr2pgo.cli.parser import Parser
from lbr2pgo.support.errors import InputError, MissingToolError


def run(*arguments: str) -> int:
    parser = Parser()
    msr.add_parser(parser.add_subparsers())
    args = parser.parse_args(["msr", *arguments])
    return int(args.run(args))


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.txt"
    lines = ["MSR_LBR_TOS 0x1", "MSR_LBR_SELECT 0x1", "IA32_DEBUGCTL 0x0"]
    for i in range(4):
        lines += [f"{0x680 + i:#x} {0x401000 + i:#x}", f"{0x6C0 + i:#x} 0x402000"]
        lines += [f"{0xDC0 + i:#x} {1 << 63 | i:#x}"]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A Skylake whose core 2 can be read."""
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    (root / "proc/cpuinfo").write_text("vendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\n")
    caps = root / "sys/bus/event_source/devices/cpu/caps"
    caps.mkdir(parents=True)
    (caps / "branches").write_text("32\n")
    device = root / "dev/cpu/2/msr"
    device.parent.mkdir(parents=True)
    with device.open("wb") as stream:
        stream.truncate(8 * 0x1000)
        for number, value in ((0x1C9, 0), (0x680, 0x10), (0x6C0, 0x20), (0xDC0, 7)):
            os.pwrite(stream.fileno(), struct.pack("<Q", value), 8 * number)
    return root


def test_decode_as_json(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("decode", str(dump), "--format", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["facts"]["filter"] == "records every kind of branch in user code"
    assert answer["facts"]["still recording"] == "no"
    assert [entry["from"] for entry in answer["entries"]] == [
        "0x401001", "0x401000", "0x401003", "0x401002",
    ]  # fmt: skip
    assert answer["entries"][1] == {
        "from": "0x401000",
        "to": "0x402000",
        "mispredicted": True,
        "in_transaction": False,
        "abort": False,
        "cycles": None,
        "type": None,
        "speculation": None,
        "level": None,
    }


def test_decode_as_table(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("decode", str(dump)) == 0
    out = capsys.readouterr().out
    assert "0x401001" in out
    assert "filter: records every kind of branch in user code" in out


def test_decode_needs_one_thing(dump: Path) -> None:
    with pytest.raises(InputError, match="one thing to decode"):
        run("decode")
    with pytest.raises(InputError, match="one thing to decode"):
        run("decode", str(dump), "--device", str(dump))


def test_decode_reads_what_amd_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "amd.txt"
    path.write_text("0xc0010300 0x8000000000001000\n0xc0010301 0xc000000000002000\n")
    assert run("decode", str(path), "--format", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["facts"]["recorder"] == "AMD LbrExtV2"
    (entry,) = answer["entries"]
    assert (entry["from"], entry["to"], entry["mispredicted"]) == ("0x1000", "0x2000", True)
    assert entry["speculation"] == "SPEC_CORRECT_PATH"


def test_decode_reads_what_arm_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Newest first: a loop's branch with 69,888 cycles, and a system call to where nobody knows."""
    path = tmp_path / "brbe.txt"
    infos = [3 | 8 << 8 | 1 << 5 | 0x911 << 32, 2 | 0x22 << 8 | 1 << 46, *[0] * 6]
    path.write_text(
        "".join(
            f"BRBSRC{i}_EL1 {0x1000 + 8 * i:#x}\nBRBTGT{i}_EL1 0x2000\nBRBINF{i}_EL1 {word:#x}\n"
            for i, word in enumerate(infos)
        )
        + "BRBFCR_EL1 0x7e0080\nBRBCR_EL1 0x19\n"
    )
    assert run("decode", str(path), "--format", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["facts"]["still recording"] == "no"
    loop, call = answer["entries"]
    assert (loop["cycles"], loop["mispredicted"], loop["type"]) == (69_888, True, "COND")
    assert (call["from"], call["to"], call["type"]) == ("0x1008", None, "SYSCALL")
    assert (call["cycles"], call["mispredicted"]) == (None, None)
    assert (loop["level"], call["level"]) == ("EL0", None)
    assert run("decode", str(path)) == 0
    assert "69888" in capsys.readouterr().out


def test_decode_says_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("0x10 0x1000\n0x11 0x2000\n")
    with pytest.raises(InputError, match="holds no last-branch registers"):
        run("decode", str(path))


def test_plan_as_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plan", "-j", "cond", "--root", str(root), "--format", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    select = next(w for w in answer["writes"] if w["name"] == "MSR_LBR_SELECT")
    assert (select["register"], select["value"]) == ("0x1c8", "0x1f9")
    assert len(answer["writes"]) == 3 + 3 * 32
    assert len(answer["traps"]) == 2


def test_plan_takes_the_filter_that_perf_takes(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", "-j", "any_call,u", "--root", str(root), "--format", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert next(w["value"] for w in answer["writes"] if w["name"] == "MSR_LBR_SELECT") == "0xe5"


@pytest.mark.parametrize(
    ("vendor", "words"),
    [
        ("AuthenticAMD", "one of AuthenticAMD"),
        ("CentaurHauls", "one of CentaurHauls"),
        ("", "not known"),
    ],
)
def test_no_writes_for_another_vendors_machine_without_a_word(
    root: Path, capsys: pytest.CaptureFixture[str], vendor: str, words: str
) -> None:
    cpuinfo = f"vendor_id : {vendor}\ncpu family : 25\nmodel : 17\n" if vendor else ""
    (root / "proc/cpuinfo").write_text(cpuinfo)
    with pytest.raises(InputError, match=words) as raised:
        run("plan", "--root", str(root))
    assert "--model core2, bonnell" in str(raised.value.cure)
    assert run("plan", "--model", "skylake", "--root", str(root)) == 0
    assert words in capsys.readouterr().out.splitlines()[-1]


def test_rings_of_16_differ_in_what_they_filter(root: Path) -> None:
    (root / "sys/bus/event_source/devices/cpu/caps/branches").write_text("16\n")
    with pytest.raises(InputError, match="16 entries differ") as raised:
        run("plan", "--root", str(root))
    assert str(raised.value.cure) == "Say which: --model nehalem, sandybridge, haswell."
    (root / "proc/cpuinfo").write_text("vendor_id : GenuineIntel\ncpu family : 6\nmodel : 42\n")
    with pytest.raises(InputError, match="no call-stack mode"):
        run("plan", "--call-stack", "--root", str(root))


def test_an_unknown_model_names_those_that_are_known(root: Path) -> None:
    with pytest.raises(InputError, match="no ring of 'zen4' is known") as raised:
        run("plan", "--model", "zen4", "--root", str(root))
    assert "nehalem, sandybridge, haswell, skylake" in str(raised.value.cure)


def test_a_netburst_machine_is_refused_by_name(root: Path) -> None:
    (root / "proc/cpuinfo").write_text("vendor_id : GenuineIntel\ncpu family : 15\nmodel : 2\n")
    for command in (("plan",), ("snapshot", "--cpu", "2")):
        with pytest.raises(InputError, match="is a NetBurst"):
            run(*command, "--root", str(root))


@pytest.mark.parametrize(("family", "model"), [(5, 4), (6, 8), (6, 13), (6, 14)])
def test_so_is_a_machine_before_core_2(root: Path, family: int, model: int) -> None:
    text = f"vendor_id : GenuineIntel\ncpu family : {family}\nmodel : {model}\n"
    (root / "proc/cpuinfo").write_text(text)
    with pytest.raises(InputError, match="older than Core 2"):
        run("plan", "--root", str(root))


def test_plan_works_without_the_hardware(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan", "--architectural", "--root", str(tmp_path)) == 0
    out = capsys.readouterr().out
    assert "IA32_LBR_CTL" in out
    assert "Trap 2: " in out


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The commands that were printed, without comments, as a shell takes them apart."""
    lines = capsys.readouterr().out.splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize(
    ("options", "where"), [((), ["-a"]), (("--cpu", "3"), ["-p", "3"])], ids=["all", "one"]
)
def test_a_plan_can_be_run_as_it_is_printed(
    root: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], where: list[str]
) -> None:
    assert run("plan", "-j", "cond", "--root", str(root), *options) == 0
    first, *writes = lines_of(capsys)
    assert first == ["modprobe", "msr"]
    assert all(words[: 1 + len(where)] == ["wrmsr", *where] for words in writes)
    values = [tuple(int(word, 16) for word in words[-2:]) for words in writes]
    assert values[:2] == [(0x1D9, 0), (0x1C8, 0x1F9)]
    assert values[-1] == (0x1D9, 0x801)
    assert len(values) == 3 + 3 * 32


@pytest.mark.parametrize(
    ("options", "first"),
    [
        (("--depth", "4", "--kernel"), "0x40"),
        (("--model", "bonnell", "--kernel"), "0x40"),
        (("--depth", "8", "--model", "knl"), "0x680"),
        (("--model", "skylake"), "0x680"),
    ],
)
def test_a_short_ring_is_planned_by_its_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], first: str
) -> None:
    assert run("plan", "--root", str(tmp_path), *options) == 0
    registers = [words[-2] for words in lines_of(capsys)[1:]]
    assert first in registers
    assert ({"0x40", "0x680"} - {first}).isdisjoint(registers)


def test_eight_entries_need_the_model_to_be_said_or_found(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="8 entries differ") as raised:
        run("plan", "--root", str(tmp_path), "--depth", "8")
    assert "--model bonnell, silvermont, knl" in str(raised.value.cure)
    with pytest.raises(InputError, match="core2 has no ring of 8 entries"):
        run("plan", "--root", str(tmp_path), "--depth", "8", "--model", "core2")
    (root / "proc/cpuinfo").write_text("vendor_id : GenuineIntel\ncpu family : 6\nmodel : 55\n")
    (root / "sys/bus/event_source/devices/cpu/caps/branches").write_text("8\n")
    assert run("plan", "--root", str(root)) == 0
    registers = [words[-2] for words in lines_of(capsys)[1:]]
    assert {"0x40", "0x1c8"} <= set(registers)


def test_snapshot_reads_what_decode_reads(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "snapshot.txt"
    assert run("snapshot", "--cpu", "2", "--root", str(root), "-o", str(output)) == 0
    assert run("decode", str(output), "--format", "json") == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert (entry["from"], entry["to"], entry["cycles"]) == ("0x10", "0x20", 7)


def test_decode_reads_a_device(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    device = str(root / "dev/cpu/2/msr")
    assert run("decode", "--device", device, "--depth", "16", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["facts"]["depth"] == "16"


def test_snapshot_refuses_where_it_may_not(root: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match="No such file"):
        run("snapshot", "--cpu", "7", "--root", str(root))
    (root / "proc/cpuinfo").write_text("vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\n")
    with pytest.raises(MissingToolError, match="no Intel processor but one of AuthenticAMD"):
        run("snapshot", "--cpu", "2", "--root", str(root))


def test_snapshot_needs_to_know_the_depth(root: Path) -> None:
    (root / "sys/bus/event_source/devices/cpu/caps/branches").unlink()
    with pytest.raises(InputError, match="how many entries"):
        run("snapshot", "--cpu", "2", "--root", str(root))
    with pytest.raises(InputError, match="never has 5 entries"):
        run("snapshot", "--cpu", "2", "--root", str(root), "--depth", "5")
