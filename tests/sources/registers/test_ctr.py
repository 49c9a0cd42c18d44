"""Register dumps written by an encoder of the layout in the Smctr extension, version 1.0."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from builders import perf_data as build
from builders.fixtures import TESTBINS
from builders.outputs import outputs
from builders.perf_data import Entry
from builders.recordings import FEATURE_ARCH
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.cli import main
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model import branch_stacks as stacks
from lbr2pgo.model.address_space_events import Mmap
from lbr2pgo.program.elf.image import Image
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.sources import open_source
from lbr2pgo.sources.base import Sniff
from lbr2pgo.sources.perf_data.reader import PerfData
from lbr2pgo.sources.registers.ctr import FORMAT, RECORDS, cycles_of, decode_record, decoded
from lbr2pgo.sources.registers.dump_source import Decoded
from lbr2pgo.sources.registers.register_dump import parse
from lbr2pgo.support.errors import InputError

P, M = stacks.PREDICTED, stacks.MISPREDICTED
TAKEN, NOT_TAKEN, RETURN, CALL = 5, 4, 13, 9
U, S, RASEMU = 1 << 0, 1 << 1, 1 << 7


def data(kind: int = TAKEN, cycles: int | None = None) -> int:
    """`ctrdata`: CCE is 0 below 4096, else the highest bit's index less 11 ("Cycle Counting")."""
    if cycles is None:
        return kind
    exponent = 0 if cycles < 4096 else cycles.bit_length() - 12
    mantissa = cycles if exponent == 0 else cycles >> exponent - 1 & 0xFFF
    return kind | 1 << 15 | mantissa << 16 | exponent << 28


def dump(depth: int = 16, valid: int | None = None, words: dict[int, int] | None = None) -> str:
    """Record k goes from 0x1000 + 2k to 0x2000 + 2k; from `valid` on none is valid."""
    lines = []
    for i in range(depth):
        v = valid is None or i < valid
        word = (words or {}).get(i, data())
        lines.append(f"ctrsource{i} {0x1000 + 2 * i | v:#x}\n")
        lines.append(f"ctrtarget{i} {0x2000 + 2 * i:#x}\nctrdata{i} {word:#x}\n")
    return "".join(lines)


def of(text: str) -> Decoded:
    return decoded(parse(text, "dump"), "dump")


@pytest.mark.parametrize("depth", RECORDS.depths)
def test_record_0_is_the_newest(depth: int) -> None:
    found = of(dump(depth))
    assert [entry[:2] for entry in found.entries] == [
        (0x1000 + 2 * i, 0x2000 + 2 * i) for i in range(depth)
    ]
    assert (found.machine, found.details["depth"]) == ("riscv64", str(depth))


def test_records_end_at_the_first_invalid_one() -> None:
    text = dump(valid=5).replace("ctrsource9 0x1012", "ctrsource9 0x1013")
    found = of(text)
    assert len(found.entries) == 5
    assert found.losses["valid records behind an invalid one, which ends the stack"] == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (1, "SYSCALL"), (2, "IRQ"), (3, "ERET"), (5, "COND"), (6, ""), (8, "IND_CALL"),
        (9, "CALL"), (10, "IND"), (11, "UNCOND"), (12, "IND_CALL"), (13, "RET"), (14, "IND"),
        (15, "UNCOND"), (0, ""),
    ],
)  # fmt: skip
def test_types_and_predictions(kind: int, name: str) -> None:
    entry, missed = (decode_record(0x1001, 0x2000 | bit, kind) for bit in (0, 1))
    assert entry is not None
    assert missed is not None
    assert stacks.type_name(entry.flags) == name
    predicts = kind not in (1, 2, 3)
    assert (entry.flags & (P | M), missed.flags & (P | M)) == ((P, M) if predicts else (0, 0))
    assert missed.target == 0x2000


@given(st.integers(0, 134_201_343))
def test_cycles_lose_only_the_bits_that_the_mantissa_has_no_place_for(cycles: int) -> None:
    found = cycles_of(data(cycles=cycles))
    lost = max(0, cycles.bit_length() - 13)
    assert found == cycles >> lost << lost


def test_cycles_that_are_not_valid_are_missing() -> None:
    entry = decode_record(0x1001, 0x2000, data(cycles=7) & ~(1 << 15))
    assert entry is not None
    assert stacks.cycles_of(entry.flags) == stacks.MISSING


def test_branches_that_were_not_taken_are_no_entries() -> None:
    """NTBREN: the fall-through between its neighbours passes over it."""
    found = of(dump(words={3: data(NOT_TAKEN)}))
    assert len(found.entries) == 15
    assert 0x1006 not in [source for source, _, _ in found.entries]
    assert found.losses["branches that were not taken, which no entry needs"] == 1


def test_one_end_is_unknown_where_a_mode_is_not_recorded() -> None:
    text = dump(words={1: data(1)}).replace("ctrtarget1 0x2002", "ctrtarget1 0x0")
    text = text.replace("ctrsource2 0x1005", "ctrsource2 0x1")
    assert [entry[:2] for entry in of(text).entries][1:3] == [(0x1002, 0), (0, 0x2004)]


ANY, USER, KERNEL, CALL_STACK, CALLS = 1 << 3, 1, 2, 1 << 11, 1 << 13 | 1 << 6


@pytest.mark.parametrize(
    ("controls", "bits", "words"),
    [
        ("", None, "unknown"),
        (f"sctrctl {U:#x}\n", ANY | USER, "in U mode"),
        (f"sctrctl {U:#x}\nmctrctl {S:#x}\n", ANY | USER | KERNEL, "in U and S mode"),
        (f"sctrctl {U | RASEMU:#x}\n", ANY | USER | CALL_STACK,
         "calls that have not returned, in U mode (RAS emulation)"),
        (f"sctrctl {U | 0xFC2000000000:#x}\n", USER | CALLS,
         "in U mode; without taken branches, indirect jumps, direct jumps, co-routine swaps, "
         "returns, other indirect jumps, other direct jumps"),
        (f"sctrctl {U | 1 << 8:#x}\n", ANY | USER, "in U mode; traps to other modes"),
    ],
)  # fmt: skip
def test_control_registers_tell_the_filter(controls: str, bits: int | None, words: str) -> None:
    found = of(dump() + controls)
    assert found.event.branch_sample_type == bits
    assert found.details["filter"] == words


def test_a_buffer_that_was_not_frozen_may_have_moved() -> None:
    assert "still recording" not in of(dump()).details
    assert of(dump() + f"sctrstatus {1 << 31:#x}\n").details["still recording"] == "no"
    assert of(dump() + "sctrstatus 0x5\n").details["still recording"].startswith("yes")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (dump().replace("ctrdata7 0x5\n", ""), "ctrdata7 is missing: there are 16 records"),
        (dump(15), "15 records are no depth of these registers: ctrsource15 may"),
        (dump(16) + "sctrdepth 0x1\n", "ctrsource16 is missing: there are 32 records"),
        (dump(16) + "sctrdepth 0x6\n", "missing: there are 1024 records"),
        (dump(16) + "ctrdata3 0x5\n", "stands here a second time"),
        ("sctrctl 0x1\n", "holds no branch records"),
    ],
)
def test_dumps_that_are_not_whole_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        of(text)


def test_more_records_than_the_depth_are_read_only_as_far_as_it_reaches() -> None:
    assert len(of(dump(32) + "sctrdepth 0x0\n").entries) == 16


def test_a_dump_is_recognised_and_decoded_as_text_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [line.split() for line in dump().splitlines()]
    forms = (dump(), json.dumps(dict(words)))
    for number, text in enumerate(forms):
        assert FORMAT.sniff(text.encode()) is Sniff.YES
        path = tmp_path / f"{number}.txt"
        path.write_text(text)
        (batch,) = open_source(path).batches()
        assert batch.entries[:, 0].tolist() == [0x1000 + 2 * i for i in range(16)]
    assert main(["msr", "decode", str(path)]) == 0
    assert "RISC-V CTR" in capsys.readouterr().out


# perf.data as the third version of the patches for Linux writes it (drivers/perf/riscv_ctr.c of
# 22 May 2025): ctr_perf_map, ctr_get_cycles and capture_ctr_flags, into struct perf_branch_entry.
PERF_TYPES = (0, 7, 12, 11, 1, 1, 0, 0, 5, 4, 3, 2, 0, 6, 3, 2)
RECORDED_AS = {"COND": TAKEN, "UNCOND": 11, "IND": 10, "CALL": CALL, "IND_CALL": 8, "RET": RETURN}
TYPE_SAVE = 1 << 16


def perf_entry(source: int, target: int, word: int, *, types: bool = True) -> Entry:
    """What the driver makes of a record; MISP is bit 0 of the target."""
    mantissa, exponent = word >> 16 & 0xFFF, word >> 28
    cycles = mantissa if exponent == 0 else (4096 + mantissa) << exponent - 1
    cycles = 0 if word >> 15 & 1 else cycles & 0xFFFF
    missed = target & 1
    kind = PERF_TYPES[word & 15] if types else 0
    return source & ~1, target & ~1, missed | (not missed) << 1 | cycles << 4 | kind << 20


def perf_data(path: Path, recording: Path, taken: Sequence[Sequence[Entry]], types: bool) -> Path:
    """The stacks, beside what a recording says of address spaces."""
    wanted = ANY | USER | (TYPE_SAVE if types else 0)
    event = build.Event(branch_sample_type=wanted | build.HW_INDEX)
    space = [each for each in PerfData(recording).space_events() if isinstance(each, Mmap)]
    pid = space[0].pid
    data = b"".join(
        build.mmap2(pid, each.start, each.length, each.path, event.trailer(pid, pid, 1),
                    offset=each.file_offset)
        for each in space
    )  # fmt: skip
    for stack in taken:
        data += build.Sample(tuple(stack), pid=pid, tid=pid).encode(event)
    features = {FEATURE_ARCH: build.string("riscv64")}
    path.write_bytes(build.file_form([event], data, features))
    return path


@pytest.mark.parametrize("types", [True, False])
@pytest.mark.parametrize("name", ["interp.pie", "shapes.pie"])
def test_perf_data_of_the_drivers_patches_makes_the_profiles_of_the_same_stacks(
    name: str, types: bool, tmp_path: Path
) -> None:
    recording = TESTBINS / "recordings" / f"riscv64-{name}.perf.data"
    taken = []
    for batch in PerfData(recording).batches():
        rows = batch.entries.tolist()
        for first, last in pairwise(batch.offsets.tolist()):
            taken.append([
                perf_entry(a | 1, b | (flags & M), data(RECORDED_AS[stacks.type_name(flags)], 9),
                           types=types)
                for a, b, flags in rows[first:last]
            ])  # fmt: skip
    ours = perf_data(tmp_path / "ctr.data", recording, taken, types)
    found = []
    for source in (recording, ours):
        paths = {key: tmp_path / f"{source.name}.{key}" for key in ("llvm", "fdata", "afdo")}
        convert(ConvertOptions((source,), TESTBINS / "riscv64" / name, outputs(**paths)))
        found.append([path.read_bytes() for path in paths.values()])
    assert found[0] == found[1]


LOOP = """
_start: .globl _start
  addi a0, a0, -1
  ecall
  ld a1, 0(a2)
  bnez a0, _start
  ret
"""
ECALL, LOAD, BRANCH = 2, 6, 10
"""Distances in it: `addi` has two bytes, a `ld` of two is `c.ld`."""
TRAP, HANDLER = 0xFFFFFFFF80002000, 0xFFFFFFFF80003000


def runs_of(
    folder: Path, program: Path, stack: Sequence[Entry], wanted: int
) -> dict[tuple[int, int], int]:
    """Distances of the fall-throughs' ends from the program's entry, and how often each ran."""
    image = Image.open(program)
    code = next(each for each in image.sections if each.is_code)
    event = build.Event(branch_sample_type=wanted)
    space = build.mmap2(10, code.address, code.size, str(program), event.trailer(10, 10, 1),
                        offset=code.file_offset)  # fmt: skip
    sample = build.Sample(tuple(stack), pid=10, tid=10).encode(event)
    path = folder / "perf.data"
    features = {FEATURE_ARCH: build.string("riscv64")}
    path.write_bytes(build.file_form([event], space + sample, features))
    runs = read_and_replay(Inputs((path,), program)).flow.judged.runs
    ends = zip((runs.start - code.address).tolist(), (runs.end - code.address).tolist(),
               strict=True)  # fmt: skip
    return dict(zip(ends, runs.count.tolist(), strict=True))


@pytest.fixture(scope="module")
def looping(link: Callable[..., Path]) -> tuple[Path, int]:
    program = link(LOOP, machine="riscv64")
    return program, next(each.address for each in Image.open(program).sections if each.is_code)


def test_system_calls_leave_no_record_in_user_space(
    looping: tuple[Path, int], tmp_path: Path
) -> None:
    """External traps are not recorded without STE, which the driver leaves alone."""
    program, at = looping
    around = perf_entry(at + BRANCH | 1, at, data())
    assert runs_of(tmp_path, program, [around] * 256, ANY | USER) == {(0, BRANCH): 255}


def test_an_exception_is_a_system_call_where_the_kernel_is_recorded_too(
    looping: tuple[Path, int], tmp_path: Path
) -> None:
    program, at = looping
    around = perf_entry(at + BRANCH | 1, at, data())
    faulted = [
        around,
        perf_entry(TRAP | 1, at + LOAD, data(3)),
        perf_entry(at + LOAD | 1, HANDLER, data(1)),
        around,
    ]
    found = runs_of(tmp_path, program, faulted, ANY | USER | KERNEL)
    assert found == {(0, LOAD): 1, (LOAD, BRANCH): 1}


def test_cycles_of_the_drivers_patches_are_those_that_may_be_wrong() -> None:
    """And 16 bits of them; 0 is none."""
    words = data(cycles=9), data() | 9 << 16, data() | 6 << 28 | 5 << 16
    found = [stacks.cycles_of(perf_entry(1, 0, word)[2]) for word in words]
    assert found == [stacks.MISSING, 9, (4096 + 5 << 5) % 65536]
