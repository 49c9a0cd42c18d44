"""Register dumps written from the layout in Linux arch/arm64/tools/sysreg."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from builders.evidence import evidence
from builders.sources import Sample

from lbr2pgo.counting.count import count
from lbr2pgo.evidence.cycle_counts import CYCLES
from lbr2pgo.model import branch_stacks as stacks
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.sources.base import Sniff, StackSource
from lbr2pgo.sources.registers.brbe import FORMAT, decode, decode_record, decoded
from lbr2pgo.sources.registers.register_dump import parse
from lbr2pgo.support.errors import InputError

FULL, SOURCE, TARGET = 3, 2, 1
P, M = stacks.PREDICTED, stacks.MISPREDICTED
USER, KERNEL = 1 << 30, 2 << 30


def info(valid: int = FULL, kind: int = 0, mispredicted: int = 0, level: int = 0) -> int:
    return valid | mispredicted << 5 | level << 6 | kind << 8 | 1 << 46


def record(word: int) -> tuple[int, int, int]:
    found = decode_record(0x1000, 0x2000, word)
    assert found is not None
    return found.source, found.target, found.flags


def dump(depth: int, valid: int | None = None, form: str = "BRB{}{}_EL1 {:#x}\n") -> str:
    """Record k goes from 0x1000 + k to 0x2000 + k; from `valid` on none is valid."""
    lines = []
    for i in range(depth):
        word = 0 if valid is not None and i >= valid else info()
        registers = (("SRC", 0x1000 + i), ("TGT", 0x2000 + i), ("INF", word))
        lines += [form.format(kind, i, value) for kind, value in registers]
    return "".join(lines)


@pytest.mark.parametrize("depth", [8, 16, 32, 64])
def test_record_0_is_the_newest(depth: int) -> None:
    buffer = decode(parse(dump(depth), "dump"), "dump")
    assert buffer.depth == depth
    assert [r.source for r in buffer.records] == list(range(0x1000, 0x1000 + depth))
    assert {r.flags for r in buffer.records} == {P | USER | 2 << 20}


def test_records_end_at_the_first_invalid_one() -> None:
    assert len(decode(parse(dump(16, valid=5), "dump"), "dump").records) == 5
    assert decode(parse(dump(8, valid=0), "dump"), "dump").records == ()


def test_valid_records_that_are_not_read_are_counted() -> None:
    """Behind an invalid one: some were injected, or the dump was taken while they moved."""
    text = dump(16).replace(f"BRBINF5_EL1 {info():#x}", "BRBINF5_EL1 0x0")
    losses = decoded(parse(text, "dump"), "dump").losses
    assert losses["valid records behind an invalid one, which ends the stack"] == 10
    losses = decoded(parse(dump(16) + "BRBIDR0_EL1 0x5008\n", "dump"), "dump").losses
    assert losses["records beyond the depth that BRBIDR0_EL1 states"] == 8
    assert losses["valid records behind an invalid one, which ends the stack"] == 0


def test_registers_that_are_not_read_are_told() -> None:
    assert "not read" not in told("BRBIDR0_EL1 0x5008\nBRBFCR_EL1 0x0\nMDCR_EL3 0x0\n")
    assert told("BRBTS_EL1 0x12\nBRBINFINJ_EL1 0\n")["not read"] == "BRBINFINJ_EL1, BRBTS_EL1"


def test_half_records_have_no_other_end() -> None:
    assert record(info(SOURCE, mispredicted=1)) == (0x1000, 0, M | 2 << 20)
    assert record(info(TARGET, level=1)) == (0, 0x2000, KERNEL | 2 << 20)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (0x00, "UNCOND"), (0x01, "IND"), (0x02, "CALL"), (0x03, "IND_CALL"), (0x05, "RET"),
        (0x07, "ERET"), (0x08, "COND"), (0x21, "ARM64_DEBUG_HALT"), (0x22, "SYSCALL"),
        (0x23, "ARM64_TRAP"), (0x24, "SERROR"), (0x26, "ARM64_DEBUG_INST"),
        (0x27, "ARM64_DEBUG_DATA"), (0x2A, "FAULT_ALGN"), (0x2B, "FAULT_INST"),
        (0x2C, "FAULT_DATA"), (0x2E, "IRQ"), (0x2F, "ARM64_FIQ"), (0x30, "ARM64_TRAP_EL3"),
        (0x39, "ARM64_DEBUG_EXIT"), (0x3F, ""),
    ],
)  # fmt: skip
def test_types(kind: int, name: str) -> None:
    """Arm ARM, BRBINF<n>_EL1.TYPE; all but branches and system calls are counted as exceptions."""
    flags = record(info(kind=kind))[2]
    assert stacks.type_name(flags) == name
    is_exception = int(stacks.type_of(np.uint64(flags))) >= stacks.FIRST_EXCEPTION
    assert is_exception == (name == "ERET" or (kind >= 0x21 and name not in ("SYSCALL", "")))


def test_new_types_have_the_numbers_of_perf() -> None:
    """Linux: include/uapi/linux/perf_event.h, PERF_BR_NEW_* and PERF_BR_ARM64_*."""
    kinds = (0x2A, 0x2C, 0x2B, 0x2F, 0x21, 0x39, 0x26, 0x27)
    assert [record(info(kind=kind))[2] >> 26 & 15 for kind in kinds] == list(range(8))


@pytest.mark.parametrize(
    ("hcr", "privileges"),
    [("", [1, 2, 2, 0]), (f"HCR_EL2 {1 << 34:#x}\n", [1, 2, 2, 0]), ("HCR_EL2 0\n", [1, 2, 3, 0])],
)
def test_the_exception_level_is_that_of_the_target(hcr: str, privileges: list[int]) -> None:
    text = dump(8)
    for level in range(4):
        before, after = info(), info(level=level)
        text = text.replace(f"BRBINF{level}_EL1 {before:#x}", f"BRBINF{level}_EL1 {after:#x}")
    text = text.replace(f"BRBINF4_EL1 {info():#x}", f"BRBINF4_EL1 {info(SOURCE, level=1):#x}")
    found = decoded(parse(text + hcr, "dump"), "dump")
    assert list(found.levels)[:5] == ["EL0", "EL1", "EL2", "EL3", None]
    assert [flags >> 30 & 7 for _, _, flags in found.entries][:5] == [*privileges, 0]


@pytest.mark.parametrize(("kind", "flag"), [(8, M), (5, M), (7, M), (0x22, 0), (0x2E, 0)])
def test_only_branches_and_returns_are_mispredicted(kind: int, flag: int) -> None:
    assert record(info(kind=kind, mispredicted=1))[2] & (M | P) == flag


@pytest.mark.parametrize(
    ("field", "cycles", "saturated"),
    [
        (0x00FF, 255, False),
        (0x0100, 256, False),
        (0x0801, 257 << 7, False),
        (0x0911, 69_888, False),
        (0x09FF, 511 << 8, False),
        (0x0CFF, 511 << 11, False),
        (0x0D00, stacks.SATURATED, True),
        (0x3FFF, stacks.SATURATED, True),
        (0x0000, 0, False),
    ],
)
def test_cycles_are_mantissa_and_exponent(field: int, cycles: int, saturated: bool) -> None:
    found = decode_record(1, 2, FULL | field << 32)
    assert found is not None
    assert (stacks.cycles_of(found.flags), found.is_saturated) == (cycles, saturated)


def test_cycles_above_perfs_limit_reach_the_tables() -> None:
    """69,888 is a number, 65,535 in perf's field of 16 bits the end of a counter."""
    inside = [(0x1012, 0x1015, P | stacks.cycle_flags(69_888)), (0x1006, 0x1010, P)]
    ended = [(0x1012, 0x1015, P | 0xFFFF << 4), (0x1006, 0x1010, P)]
    found = evidence(Sample(inside), Sample(ended)).found(CYCLES)
    assert found.cycles.tolist() == [69_888, stacks.SATURATED]
    assert found.count.tolist() == [1, 1]


@pytest.mark.parametrize("field", [0x00FF, 0x0000])
def test_unknown_cycles_are_missing(field: int) -> None:
    assert stacks.cycles_of(record(FULL | field << 32 | 1 << 46)[2]) == stacks.MISSING


def test_transactions() -> None:
    assert record(info() | 1 << 16)[2] & stacks.IN_TRANSACTION
    assert record(info() | 1 << 17)[2] & stacks.ABORT


ALL_KINDS = 0x7E0000


def told(controls: str, records: str | None = None) -> dict[str, str]:
    """What a dump with these control registers says of itself."""
    registers = parse((records or dump(8)) + controls, "dump")
    return dict(decoded(registers, "dump").details)


@pytest.mark.parametrize(
    ("controls", "flags"),
    [
        ("", P | 12 << 4), ("BRBCR_EL1 0x19\n", P | 12 << 4), ("BRBCR_EL1 0x11\n", P),
        ("BRBCR_EL1 0x09\n", 12 << 4), ("BRBCR_EL1 0x19\nBRBCR_EL2 0x11\n", P),
        ("BRBCR_EL1 0x19\nBRBCR_EL2 0x09\n", 12 << 4), ("BRBCR_EL12 0x0\nBRBCR_EL1 0x19\n", 0),
    ],
)  # fmt: skip
def test_what_is_not_recorded_at_every_level_is_unknown(controls: str, flags: int) -> None:
    """Neither predicted nor of no cycles, whatever the records' fields hold."""
    records = dump(8).replace(f"{info():#x}", f"{FULL | 12 << 32:#x}")
    buffer = decode(parse(records + controls, "dump"), "dump")
    assert {r.flags & (P | M | 0xFFFF << 4) for r in buffer.records} == {flags}


@pytest.mark.parametrize(
    ("controls", "words"),
    [
        ("", "unknown"),
        (f"BRBFCR_EL1 {ALL_KINDS | 1 << 7:#x}\nBRBCR_EL1 0x19\n", "no"),
        (f"BRBFCR_EL1 {ALL_KINDS:#x}\nBRBCR_EL1 0x18\n", "no"),
        (f"BRBFCR_EL1 {ALL_KINDS:#x}\nBRBCR_EL1 0x19\n", "yes: records may have been overwritten"),
        (f"BRBFCR_EL1 {ALL_KINDS:#x}\nBRBCR_EL2 0x1a\n", "yes: records may have been overwritten"),
    ],
)
def test_paused_says_whether_records_were_still_being_written(controls: str, words: str) -> None:
    assert told(controls)["still recording"].startswith(words)
    health = decoded(parse(dump(8) + controls, "dump"), "dump").losses
    expected = 8 if words.startswith("yes") else 0
    assert health["records that were read while others were being written"] == expected


def test_a_transaction_that_failed_last_is_told() -> None:
    assert "pending" not in told(f"BRBFCR_EL1 {ALL_KINDS:#x}\n")
    assert "is undone" in told(f"BRBFCR_EL1 {ALL_KINDS | 1 << 6:#x}\n")["pending"]


def test_records_at_the_border_of_a_prohibited_region_are_told() -> None:
    assert "prohibited regions" not in told("")
    halves = dump(8).replace(f"BRBINF3_EL1 {info():#x}", f"BRBINF3_EL1 {info(SOURCE):#x}")
    assert told("", halves)["prohibited regions"] == "1 record has one end there"


@pytest.mark.parametrize(
    ("controls", "levels"),
    [
        ("BRBCR_EL1 0x1\n", "EL0"), ("BRBCR_EL1 0x3\n", "EL0 and EL1"),
        ("BRBCR_EL2 0x3\n", "EL0 and EL2"), ("BRBCR_EL1 0x2\nBRBCR_EL2 0x2\n", "EL1 and EL2"),
        ("BRBCR_EL1 0x0\n", "no exception level"),
        # HCR_EL2.TGE says whose EL0 it is, E2H under which name BRBCR_EL2 stands there.
        ("BRBCR_EL1 0x3\nBRBCR_EL2 0x2\nHCR_EL2 0x0\n", "EL0 and EL1 and EL2"),
        (f"BRBCR_EL1 0x3\nBRBCR_EL2 0x2\nHCR_EL2 {1 << 27:#x}\n", "EL1 and EL2"),
        ("BRBCR_EL1 0x0\nBRBCR_EL2 0x1\nHCR_EL2 0x0\n", "no exception level"),
        (f"BRBCR_EL1 0x3\nHCR_EL2 {1 << 34 | 1 << 27:#x}\n", "EL0 and EL2"),
        ("BRBCR_EL12 0x0\nBRBCR_EL1 0x3\n", "EL0 and EL2"),
        # MDCR_EL3: SBRBE prohibits all but EL3, for which E3BREC and E3BREW must differ.
        ("BRBCR_EL1 0x3\nMDCR_EL3 0x0\n", "no exception level"),
        (f"BRBCR_EL1 0x3\nMDCR_EL3 {3 << 32:#x}\n", "EL0 and EL1"),
        (f"BRBCR_EL1 0x3\nMDCR_EL3 {1 << 32:#x}\n", "EL0 and EL1; not in Secure state"),
        (f"BRBCR_EL1 0x1\nMDCR_EL3 {1 << 38 | 3 << 32:#x}\n", "EL0 and EL3"),
        (f"MDCR_EL3 {1 << 37:#x}\n", "EL3"), (f"MDCR_EL3 {3 << 37:#x}\n", "no exception level"),
    ],
)  # fmt: skip
def test_levels_are_those_of_all_control_registers(controls: str, levels: str) -> None:
    assert told(controls)["filter"] == f"at {levels}"


@pytest.mark.parametrize(
    ("control", "words", "bits"),
    [
        ("", "unknown", None),
        ("BRBFCR_EL1 0x7e0000\nBRBCR_EL1 0x1\n", "records conditional branches, direct calls, "
         "indirect calls, returns, indirect branches, direct branches; at EL0", {0, 3}),
        ("BRBFCR_EL1 0x400000\n", "records conditional branches", {10}),
        ("BRBFCR_EL1 0x3f0000\n", "records conditional branches", {10}),
        ("BRBFCR_EL1 0x0\nBRBCR_EL1 0xc00003\n", "records no branches; at EL0 and EL1; "
         "exceptions; exception returns", {0, 1}),
    ],
)  # fmt: skip
def test_filter_in_words(control: str, words: str, bits: set[int] | None) -> None:
    found = decode(parse(dump(8) + control, "dump"), "dump").filter
    assert found.words == words
    expected = None if bits is None else sum(1 << bit for bit in bits)
    assert found.branch_sample_type == expected


@pytest.mark.parametrize(
    "text",
    [
        dump(8),
        dump(8, form="brb{}{:02} = {:x}\n"),
        "# core 0\n" + dump(8) + "MPIDR_EL1 0x80000000\n",
        json.dumps({line.split()[0]: line.split()[1] for line in dump(8).splitlines()}),
    ],
)
def test_source_yields_one_sample(tmp_path: Path, text: str) -> None:
    assert FORMAT.sniff(text.encode()) is Sniff.YES
    path = tmp_path / "dump"
    path.write_text(text)
    source = FORMAT.open(path)
    assert isinstance(source, StackSource)
    (batch,) = source.batches()
    assert batch.to.tolist() == list(range(0x2000, 0x2008))
    assert (source.info.machine, source.info.details["depth"]) == ("aarch64", "8")
    others = {"registers that are no branch records": 1} if "MPIDR" in text else {}
    assert source.health() == others


def test_saturated_counts_are_told(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_text(
        dump(8).replace(f"BRBINF0_EL1 {info():#x}", f"BRBINF0_EL1 {3 | 0x3FFF << 32:#x}")
    )
    assert FORMAT.open(path).health() == {"cycle counts at their limit": 1}


def test_stated_depth_beats_the_registers_there() -> None:
    assert decode(parse(dump(16) + "BRBIDR0_EL1 0x5008\n", "dump"), "dump").depth == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (dump(8).replace("BRBSRC3_EL1 0x1003\n", ""), "BRBSRC3_EL1 is missing: there are 8"),
        (dump(8).replace(f"BRBINF7_EL1 {info():#x}\n", ""), "BRBINF7_EL1 is missing"),
        (dump(8) + "BRBTGT0_EL1 0x1\n", "dump:25: register BRBTGT0_EL1 stands here a second"),
        (dump(8) + "BRBFCR_EL1 0x1\nBRBFCR_EL1 0x1\n", "dump:26: register BRBFCR_EL1"),
        (dump(9), "9 records are no depth"),
        (dump(8) + "BRBIDR0_EL1 0x5010\n", "BRBSRC8_EL1 is missing: there are 16"),
        ("BRBFCR_EL1 0x1\n", "holds no branch records"),
        ("", "holds no branch records"),
        (dump(8) + "BRBCR_EL1 hello\n", "dump:25: 'hello' is not a hexadecimal value"),
    ],
)
def test_bad_dumps_name_the_line_or_register(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        decode(parse(text, "dump"), "dump")
    assert message in str(caught.value)


@pytest.mark.parametrize("head", [b"", b"PERFILE2", b"0x680 1\n0x6c0 2\n", b"BRBFCR_EL1 0x1\n"])
def test_sniff_leaves_other_files_alone(head: bytes) -> None:
    assert FORMAT.sniff(head) is Sniff.NO


def test_half_records_break_the_chain_when_counted(tmp_path: Path) -> None:
    """Newest first: 0 full, 1 source-only, 2 full, 3 target-only, 4 full, 5 not valid."""
    lines = []
    for i, valid in enumerate((FULL, SOURCE, FULL, TARGET, FULL, 0, 0, 0)):
        registers = (
            ("SRC", 0x110 - 2 * i),
            ("TGT", 0x100 - 2 * i),
            ("INF", info(valid) if valid else 0),
        )
        lines += [f"BRB{kind}{i}_EL1 {value:#x}\n" for kind, value in registers]
    path = tmp_path / "dump"
    path.write_text("".join(lines))
    segments = (Segment(0x80, 0, 4096, 4096, True),)
    layout = ImageLayout("a.out", None, "aarch64", False, segments)
    counts = count(FORMAT.open(path), layout).counts
    assert sorted(counts.rows()) == [
        "0x108 -> 0xf8, end unknown: 1, mispredicted 0",
        "0x10c -> 0xfc, straight on to 0x10e: 1, mispredicted 0",
        "0x10e -> outside, end unknown: 1, mispredicted 0",
        "0x110 -> 0x100, end unknown: 1, mispredicted 0",
        "outside -> 0xfa, straight on to 0x10c: 1, mispredicted 0",
    ]
