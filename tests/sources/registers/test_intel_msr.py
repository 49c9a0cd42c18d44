"""Register dumps written from the bit layout of Intel SDM vol. 3 and Linux' lbr.c."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from lbr2pgo.model import branch_stacks as stacks
from lbr2pgo.sources.base import Sniff, StackSource
from lbr2pgo.sources.registers.intel_msr import FORMAT, Ring, decode, facts
from lbr2pgo.sources.registers.register_dump import parse
from lbr2pgo.support.errors import InputError

FROM, TO, INFO, TOS, SELECT, DEBUGCTL, CAPABILITIES = (
    0x680,
    0x6C0,
    0xDC0,
    0x1C9,
    0x1C8,
    0x1D9,
    0x345,
)
P, M = stacks.PREDICTED, stacks.MISPREDICTED


def ring(registers: Mapping[int, int]) -> Ring:
    text = "".join(f"{number:#x} {value:#x}\n" for number, value in registers.items())
    return decode(parse(text, "dump"), "dump")


def model_specific(depth: int, top: int, info: bool = False) -> dict[int, int]:
    """Entry k (0 newest) goes from 0x1000 + k to 0x2000 + k."""
    registers = {TOS: top}
    for age in range(depth):
        i = (top - age) % depth
        registers |= {FROM + i: 0x1000 + age, TO + i: 0x2000 + age}
        if info:
            registers[INFO + i] = age + 1
    return registers


def entries(found: Ring) -> list[tuple[int, int, int]]:
    return [(e.source, e.target, e.flags) for e in found.entries]


@pytest.mark.parametrize("depth", [4, 8, 16, 32])
def test_the_ring_runs_downwards_from_tos(depth: int) -> None:
    for top in (0, 1, depth - 1):
        found = ring(model_specific(depth, top))
        assert found.depth == depth
        assert entries(found) == [(0x1000 + k, 0x2000 + k, 0) for k in range(depth)]


def test_info_registers_hold_mispredictions_transactions_and_cycles() -> None:
    registers = model_specific(4, 3, info=True)
    registers |= {INFO + 3: 1 << 63 | 77, INFO + 2: 1 << 62 | 5, INFO + 1: 1 << 61, INFO: 0xFFFF}
    flags = [flags for _, _, flags in entries(ring(registers))]
    assert flags == [
        M | 77 << 4,
        P | stacks.IN_TRANSACTION | 5 << 4,
        P | stacks.ABORT,
        P | 0xFFFF << 4,
    ]


def test_without_info_bit_63_of_from_is_the_misprediction() -> None:
    """Of any entry: it shows what that bit means in all others."""
    registers = model_specific(4, 0) | {FROM: 1 << 63 | 0x401000}
    found = ring(registers)
    assert entries(found)[:2] == [(0x401000, 0x2000, M), (0x1001, 0x2001, P)]
    assert facts(found)["predictions"] == "recorded"


@pytest.mark.parametrize("said", [{}, {CAPABILITIES: 0}, {CAPABILITIES: 1}, {CAPABILITIES: 2}])
@pytest.mark.parametrize("source", [0x401000, 0xFFFF_FFFF_8100_0010])
def test_a_prediction_that_no_register_holds_is_not_known(
    said: Mapping[int, int], source: int
) -> None:
    found = ring(model_specific(16, 0) | {FROM: source} | said)
    assert entries(found)[0] == (source, 0x2000, 0)
    assert facts(found)["predictions"].startswith("not known: no INFO register")
    assert {flags for _, _, flags in entries(found)} == {0}


def test_knights_landing_has_predictions_though_its_format_says_none() -> None:
    """Linux: arch/x86/events/intel/lbr.c, intel_pmu_lbr_init_knl."""
    assert entries(ring(model_specific(8, 0) | {CAPABILITIES: 1}))[0][2] == P


@pytest.mark.parametrize(
    "stored",
    [0xFFFF_FFFF_8100_0010, 0x0000_FFFF_8100_0010, 0x7FFF_FFFF_8100_0010, 0x1FFF_FFFF_8100_0010],
)
def test_kernel_addresses_are_sign_extended_from_bit_47(stored: int) -> None:
    source, _, flags = entries(ring(model_specific(4, 0) | {FROM: stored, CAPABILITIES: 3}))[0]
    assert source == (0xFFFF_FFFF_8100_0010 if stored >> 32 & 0xFFFF == 0xFFFF else source)
    assert source >> 47 == 0x1FFFF
    assert flags == (M if stored >> 63 else P)


def test_five_level_paging_extends_from_bit_56() -> None:
    registers = model_specific(4, 1) | {
        FROM: 0x00A5_8000_0000_1000,
        FROM + 1: 0x01A5_0000_0000_0000,
    }
    found = entries(ring(registers))
    assert found[1][0] == 0x00A5_8000_0000_1000
    assert found[0][0] == 0xFFA5_0000_0000_0000


@pytest.mark.parametrize("said", [{}, {CAPABILITIES: 4}])
def test_transaction_flags_of_haswell_show_without_the_capabilities(
    said: Mapping[int, int],
) -> None:
    registers = model_specific(4, 0) | {FROM: 1 << 62 | 1 << 61 | 0x401000} | said
    tsx = entries(ring(registers))[0]
    assert tsx == (0x401000, 0x2000, P | stacks.IN_TRANSACTION | stacks.ABORT)


def test_goldmont_counts_cycles_in_to() -> None:
    registers = model_specific(4, 0) | {TO: 123 << 48 | 0x402000, CAPABILITIES: 6}
    assert entries(ring(registers))[0] == (0x1000, 0x402000, P | 123 << 4)


def test_info_without_transactions() -> None:
    registers = model_specific(4, 0, info=True) | {INFO: 1 << 62 | 9, CAPABILITIES: 7}
    assert entries(ring(registers))[0][2] == P | 9 << 4


def architectural(depth: int) -> dict[int, int]:
    registers = {0x14CE: 0x7F0001 | 4, 0x14CF: depth}
    for i in range(depth):
        registers |= {0x1500 + i: 0x1000 + i, 0x1600 + i: 0x2000 + i, 0x1200 + i: i << 56}
    return registers


def test_architectural_lbr_keeps_the_newest_in_register_0() -> None:
    registers = architectural(8) | {0x1200: 1 << 63 | 1 << 60 | 44, 0x1201: 55 | 1 << 56}
    found = ring(registers)
    kinds = [stacks.BRANCH_TYPES[e.flags >> 20 & 15] for e in found.entries]
    assert kinds == ["COND", "IND", "UNCOND", "IND_CALL", "CALL", "RET", "UNKNOWN", "UNKNOWN"]
    assert entries(found)[0] == (0x1000, 0x2000, M | 44 << 4 | 1 << 20)
    assert stacks.cycles_of(entries(found)[1][2]) == stacks.MISSING  # it isn't marked valid
    zero, full = (ring(registers | {0x1200: 1 << 60 | n}).entries[0].flags for n in (0, 0xFFFF))
    assert (stacks.cycles_of(zero), stacks.cycles_of(full)) == (0, stacks.SATURATED)
    assert found.recording is True
    assert "may have been overwritten" in facts(found)["still recording"]


def test_architectural_depth_may_be_smaller_than_the_dump() -> None:
    assert len(ring(architectural(32) | {0x14CF: 16}).entries) == 16


def test_core_registers() -> None:
    registers = (
        {TOS: 2} | {0x40 + i: 0x10 + i for i in range(4)} | {0x60 + i: 0x20 for i in range(4)}
    )
    found = ring(registers)
    assert [e.source for e in found.entries] == [0x12, 0x11, 0x10, 0x13]


def test_places_never_written_are_left_out() -> None:
    registers = model_specific(16, 2)
    for i in range(3, 16):
        registers |= {FROM + i: 0, TO + i: 0}
    assert [e.source for e in ring(registers).entries] == [0x1000, 0x1001, 0x1002]
    empty = ring({TOS: 0} | {base + i: 0 for base in (FROM, TO) for i in range(4)})
    assert empty.entries == ()


@pytest.mark.parametrize(
    ("select", "words", "names"),
    [
        (0x1, "records every kind of branch in user code", {"user", "any"}),
        (0x0, "records every kind of branch in user and kernel code", {"user", "kernel", "any"}),
        (
            0x101,
            "records conditional branches, direct calls, indirect calls, returns, indirect jumps, "
            "direct jumps in user code; not far branches (system calls, interrupts)",
            {"user", "any"},
        ),
        (
            0x1C5,
            "records direct calls, indirect calls, returns in user code; not conditional branches, "
            "indirect jumps, direct jumps, far branches (system calls, interrupts)",
            {"user", "call", "ind_call", "any_ret"},
        ),
        (
            0x3C5,
            "records direct calls, indirect calls, returns in user code; not conditional branches, "
            "indirect jumps, direct jumps, far branches (system calls, interrupts); call-stack "
            "mode: returns remove their calls",
            {"user", "call_stack"},
        ),
        (0x17D, "records direct jumps in user code", {"user", "ind_jmp"}),
        (0x3, "no privilege level: nothing", {"any"}),
    ],
)
def test_lbr_select_in_words(select: int, words: str, names: set[str]) -> None:
    found = ring(model_specific(4, 0) | {SELECT: select}).filter
    assert found is not None
    assert words in found.words()
    bits = found.branch_sample_type()
    assert {name for name, bit in stacks.BRANCH_FILTER_BITS.items() if bits >> bit & 1} == names


def test_lbr_ctl_in_words() -> None:
    found = ring(architectural(8) | {0x14CE: 1 << 16 | 4}).filter
    assert found is not None
    assert found.words().startswith("records conditional branches in user code; not direct jumps")
    assert found.branch_sample_type() == 1 << 0 | 1 << 10


def test_names_text_and_json_are_equal(tmp_path: Path) -> None:
    numbers = model_specific(4, 1, info=True) | {SELECT: 1, DEBUGCTL: 0}
    names = {
        TOS: "MSR_LASTBRANCH_TOS", SELECT: "msr_lbr_select", DEBUGCTL: "IA32_DEBUGCTL",
        **{FROM + i: f"MSR_LASTBRANCH_{i}_FROM_IP" for i in range(4)},
        **{TO + i: f"LBR_TO_{i}" for i in range(4)},
        **{INFO + i: f"MSR_LBR_INFO_{i}" for i in range(4)},
    }  # fmt: skip
    forms = [
        "".join(f"{number:#x}: {value:#018x}\n" for number, value in numbers.items()),
        "".join(f"rdmsr {number:x} = {value:x}\r\n" for number, value in numbers.items()),
        "# core 3\n\n" + "".join(f"{names[n]}\t{v:#x}  # {n}\n" for n, v in numbers.items()),
        "".join(f"{names[n]} {n:#x} {v:#x}\n" for n, v in numbers.items()),
        json.dumps({f"{n:#x}": v for n, v in numbers.items()}),
        json.dumps({names[n]: f"{v:#x}" for n, v in numbers.items()}),
        json.dumps({"cpu": 3, "msrs": {names[n]: v for n, v in numbers.items()}}),
        json.dumps([{"address": n, "value": v} for n, v in numbers.items()]),
        json.dumps([{"name": names[n], "value": f"{v:x}"} for n, v in numbers.items()]),
    ]
    expected = entries(ring(numbers))
    for i, form in enumerate(forms):
        path = tmp_path / str(i)
        path.write_text(form)
        assert FORMAT.sniff(form.encode()) is Sniff.YES, form
        source = FORMAT.open(path)
        assert isinstance(source, StackSource)
        (batch,) = source.batches()
        assert list(map(tuple, batch.entries.tolist())) == expected


def test_source_yields_one_sample(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_text(
        "".join(f"{n:#x} {v:#x}\n" for n, v in model_specific(16, 5).items())
        + f"{SELECT:#x} 0x1c5\nIA32_APIC_BASE 0xfee00900\n0x10 0x1\n"
    )
    source = FORMAT.open(path)
    assert isinstance(source, StackSource)
    (batch,) = source.batches()
    assert len(batch) == 1
    assert batch.from_.tolist() == [0x1000 + k for k in range(16)]
    assert batch.event.tolist() == [0]
    assert source.info.events[0].branch_sample_type is not None
    assert source.info.details["filter"].startswith("records direct calls")
    assert source.health() == {"registers that are no last-branch registers": 2}
    assert list(source.space_events()) == []


DUMP = "".join(f"{n:#x} {v:#x}\n" for n, v in model_specific(4, 0).items())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DUMP.replace("0x1c9 0x0\n", ""), "LBR_TOS (0x1c9) is missing"),
        (DUMP.replace("0x1c9 0x0", "0x1c9 0x4"), "LBR_TOS (0x1c9) is 4, but the ring has 4"),
        (DUMP.replace("0x681 0x1003\n", ""), "MSR_LASTBRANCH_1_FROM_IP (0x681) is missing"),
        (DUMP.replace("0x6c3 0x2001\n", ""), "MSR_LASTBRANCH_3_TO_IP (0x6c3) is missing"),
        (DUMP + "0xdc0 0x1\n0xdc1 0x1\n", "MSR_LBR_INFO_2 (0xdc2) is missing"),
        (DUMP + "0x1c9 0x1\n", "dump:10: register 0x1c9 (0x1c9) stands here a second time"),
        (DUMP + "MSR_LBR_TOS 0\n", "dump:10: register 0x1c9 (MSR_LBR_TOS) stands here"),
        (DUMP + "0x684 1\n0x6c4 1\n", "5 entries are no depth"),
        (DUMP + "0x345 0x5\n", "MSR_LBR_INFO_0 (0xdc0) is missing: LBR format 5"),
        (DUMP + "0x345 0x9\n", "LBR format 9"),
        ("0x1c9 0x0\n", "holds no last-branch registers"),
        ("", "holds no last-branch registers"),
        (DUMP.replace("0x1c9", "0x1da"), "holds registers of NetBurst (Pentium 4)"),
        ("".join(f"{n:#x} 0x1\n" for n in range(0x1DB, 0x1DF)), "holds registers of NetBurst"),
        ("0x1d9 1\n0x1db 0x401000\n0x1dc 0x402000\n", "the one branch that P6"),
        ("MSR_LASTBRANCH_TOS 2\nMSR_LASTBRANCH_0 1\n", "holds registers of NetBurst"),
        ("MSR_IA32_LASTBRANCHFROMIP 1\n", "the one branch that P6"),
        (DUMP + "0x345\n", "dump:10: is not a register and its value"),
        (DUMP + "0x345 zebra\n", "dump:10: 'zebra' is not a hexadecimal value"),
        (DUMP + "0x345 0x10000000000000000\n", "is not a hexadecimal value of 64 bits"),
        (DUMP + "0x100000000 1\n", "no register's address"),
        ('{"0x1c9": ', "is no valid JSON"),
        (f'{{"0x1c9": {"7" * 5000}}}', "is no valid JSON"),
        ('{"0x1c9": 1.5}', "'1.5' is not a value of 64 bits"),
        ('{"0x1c9": -1}', "'-1' is not a value of 64 bits"),
        ('{"0x1c9": true}', "'True' is not a value of 64 bits"),
        ('[{"a": 1}]', "holds something that is not a register"),
        ("[" * 100_000, "is no valid JSON"),
        ("[[[]]]", "holds something that is not a register"),
        ('{"0x680": 1, "0x680": 2}', "stands here a second time"),
    ],
)
def test_bad_dumps_name_the_line_or_register(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        decode(parse(text, "dump"), "dump")
    assert message in str(caught.value)


def test_unreadable_and_oversized_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        FORMAT.open(tmp_path / "missing")
    large = tmp_path / "large"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(InputError, match="too large"):
        FORMAT.open(large)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"PERFILE2" + bytes(100),
        b"B 400 500 3 1\nF 400 410 2\n",
        b"2\n400-500:3\n410-420:1\n0\n1\n680->6c0:5\n",
        b'{"traceEvents": []}',
        b"0x1c9 0x5\n0x1d9 0x1\n",
        b"\xff\xfe\x00binary",
        b"sq 12 [000] 1.0: 1 cycles: 400 0x680/0x6c0/P/-/-/0\n",
    ],
)
def test_sniff_leaves_other_files_alone(head: bytes) -> None:
    assert FORMAT.sniff(head) is Sniff.NO


def test_what_is_refused_by_name_is_recognised() -> None:
    ring_of_four = "".join(f"{n:#x} 0x1\n" for n in range(0x1DA, 0x1DF))
    for head in (ring_of_four, DUMP.replace("0x1c9", "0x1da")):
        assert FORMAT.sniff(head.encode()) is Sniff.YES
    assert decode(parse(DUMP + ring_of_four, "dump"), "dump").depth == 4  # LBR_TOS is there


@pytest.mark.parametrize("damage", ["oops\n", "0x345 zebra\n", "0x1c9\n", "a b c d e\n"])
def test_sniff_recognises_a_broken_dump(damage: str) -> None:
    assert FORMAT.sniff((DUMP + damage).encode()) is Sniff.YES
    assert FORMAT.sniff(json.dumps({"0x680": 1, "0x6c0": 2})[:-1].encode()) is Sniff.YES
