"""RISC-V's instructions of two and four bytes, and its calls of two instructions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from builders.objdump import disassembly
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.code.decode import decode, text
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.code.regions import code_ranges
from lbr2pgo.program.code.riscv import sweep
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.errors import InputError

LOADER = Path("/usr/riscv64-linux-gnu/lib/ld-linux-riscv64-lp64d.so.1")
Link = Callable[..., Path]


@pytest.fixture
def table(link: Link) -> Callable[[str], InstructionTable]:
    def call(assembly: str) -> InstructionTable:
        flags = ("--image-base=0x100000000", "--no-relax")
        image = Image.open(link(f"_start:\n{assembly}\n", *flags, machine="riscv64"))
        return decode(image, code_ranges(image))

    return call


def one_after_the_other(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at + 2 <= len(data):
        size = 4 if data[at] & 3 == 3 else 2
        if at + size <= len(data):
            yield at, size
        at += size


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_lengths_are_those_of_one_instruction_after_the_other(pieces: list[bytes]) -> None:
    bounds = np.cumsum([0, *map(len, pieces)]).tolist()
    offset, size = sweep(np.frombuffer(b"".join([*pieces, bytes(16)]), np.uint8), bounds)
    expected = [
        (start + at, n)
        for start, piece in zip(bounds, pieces, strict=False)
        for at, n in one_after_the_other(piece)
    ]
    assert list(zip(offset.tolist(), size.tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("c.jr ra", Kind.RET),
        ("c.jr t0", Kind.RET),
        ("c.jr a5", Kind.INDIRECT_JUMP),
        ("c.jalr a5", Kind.INDIRECT_CALL),
        ("jalr zero, 4(ra)", Kind.RET),
        ("jalr ra, 0(t0)", Kind.INDIRECT_CALL),  # a coroutine's: it pops and pushes
        ("jalr t1, 0(t3)", Kind.INDIRECT_JUMP),
        ("jalr t0, 0(t2)", Kind.INDIRECT_CALL),
        ("c.add a0, a1", Kind.OTHER),
        ("c.mv a0, a1", Kind.OTHER),
        ("c.ebreak", Kind.TRAP),
        ("ebreak", Kind.TRAP),
        ("ecall", Kind.SYSCALL),
        ("csrw fcsr, a0", Kind.OTHER),
        ("mret", Kind.RET),
        ("unimp", Kind.TRAP),
        ("c.unimp", Kind.TRAP),
        ("vadd.vv v1, v2, v3", Kind.OTHER),
        (".insn 4, 0x0000000b", Kind.OTHER),  # custom-0: a vendor's
    ],
)
def test_registers_tell_calls_and_returns_from_jumps(
    line: str, kind: Kind, table: Callable[[str], InstructionTable]
) -> None:
    found = table(f"{line}\nnop\n")
    assert found.kind.tolist()[0] == kind
    assert not found.has_target[0]


@pytest.mark.parametrize("distance", [-256, -2, 0, 2, 6, 254])
def test_short_branches_go_where_they_say(
    distance: int, table: Callable[[str], InstructionTable]
) -> None:
    found = table(f".skip 256\nhere: c.bnez a0, here + {distance}\n.skip 256\n")
    row = int(np.flatnonzero(found.kind == Kind.COND)[0])
    assert int(found.target[row]) - int(found.address[row]) == distance


@pytest.mark.parametrize(
    ("line", "kind", "distance"),
    [
        ("c.j . + 2046", Kind.JUMP, 2046),
        ("c.j . - 2048", Kind.JUMP, -2048),
        ("j . + 0xffffe", Kind.JUMP, 0xFFFFE),
        ("j . - 0x100000", Kind.JUMP, -0x100000),
        ("jal ra, . + 0x7fe", Kind.CALL, 0x7FE),
        ("jal t0, . + 0x800", Kind.CALL, 0x800),
        ("jal t1, . + 0x800", Kind.JUMP, 0x800),
        ("beq a0, a1, . + 4094", Kind.COND, 4094),
        ("bgeu a0, a1, . - 4096", Kind.COND, -4096),
    ],
)
def test_direct_branches_go_where_they_say(
    line: str, kind: Kind, distance: int, table: Callable[[str], InstructionTable]
) -> None:
    found = table(line)
    assert found.kind.tolist() == [kind]
    assert int(found.target[0]) - int(found.address[0]) == distance


@pytest.mark.parametrize(
    ("lines", "kind", "distance"),
    [
        ("auipc ra, 0x12\njalr ra, 0x7fc(ra)", Kind.CALL, 0x127FC),
        ("auipc ra, 0xfffee\njalr ra, -4(ra)", Kind.CALL, -0x12004),
        ("auipc t1, 1\njalr zero, 8(t1)", Kind.JUMP, 0x1008),
        ("auipc t1, 1\njalr zero, 8(t2)", Kind.INDIRECT_JUMP, None),
        ("auipc t1, 1\nc.nop\njalr zero, 8(t1)", Kind.INDIRECT_JUMP, None),
        ("lui t1, 1\njalr ra, 8(t1)", Kind.INDIRECT_CALL, None),
    ],
)
def test_a_far_branch_is_two_instructions(
    lines: str, kind: Kind, distance: int | None, table: Callable[[str], InstructionTable]
) -> None:
    found = table(lines)
    assert found.kind[-1] == kind
    assert found.has_target[-1] == (distance is not None)
    if distance is not None:
        assert int(found.target[-1]) - int(found.address[0]) == distance


@pytest.mark.slow
def test_a_library_is_as_objdump_lists_it() -> None:
    if not LOADER.exists():
        pytest.skip("no C library for RISC-V (make toolchain, as root)")
    image = Image.open(LOADER)
    found = decode(image, code_ranges(image))
    row = {address: i for i, address in enumerate(found.address.tolist())}
    far = {int(a) for a in found.address[found.has_target & (found.size == 4)]}
    listed = disassembly(LOADER)
    wrong = [
        line.text
        for line in listed
        if line.text != "<unknown>"
        and (found.size[row[line.address]], found.kind[row[line.address]]) != (line.size, line.kind)
        and not (line.address in far and "jalr" in line.text.replace("jr", "jalr"))
    ]
    assert len(listed) > 20_000
    assert wrong == []


def test_what_the_disassembler_does_not_know_is_written_as_a_number(link: Link) -> None:
    image = Image.open(link("_start: .insn 4, 0x0000000b\nret\n", machine="riscv64"))
    (start, end), *_ = code_ranges(image).pairs()
    assert [line for _, _, line in text(image, start, end)] == [".insn 4, 0x0000000b", "c.jr ra"]


SUMS = """
int sum(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += a[i] * 3; return s; }
void _start(void) { static int x[64]; while (sum(x, 64)) *x += sum(x + 1, 9); }
"""


@pytest.mark.parametrize(
    "extensions", ["v", "v_xtheadba_xtheadbb_xtheadcmo_xtheadmac_xtheadmemidx_xtheadmempair"]
)
def test_vectors_and_what_vendors_add_are_passed(
    extensions: str, compiled: Callable[..., Path]
) -> None:
    target = f"--target=riscv64-linux-gnu -march=rv64gc{extensions} -O3 -nostdlib -fuse-ld=lld"
    program = compiled("clang-22", SUMS, *target.split())
    image = Image.open(program)
    found = decode(image, code_ranges(image))
    rows = zip(found.address.tolist(), found.size.tolist(), found.kind.tolist(), strict=True)
    listed = disassembly(program)
    assert list(rows) == [(each.address, each.size, each.kind) for each in listed]
    assert any(each.text.startswith("th." if "th" in extensions else "vset") for each in listed)


def test_the_other_byte_order_is_refused(link: Link, tmp_path: Path) -> None:
    data = bytearray(link("_start: ret\n", machine="riscv64").read_bytes())
    data[5], data[16:20] = 2, data[17:15:-1] + data[19:17:-1]  # EI_DATA; e_type, e_machine
    program = tmp_path / "program"
    program.write_bytes(data)
    with pytest.raises(InputError, match="big-endian"):
        Image.open(program)


def test_programs_of_32_bits_are_refused(tmp_path: Path, tool: Callable[[str], str]) -> None:
    source, program = tmp_path / "a.s", tmp_path / "a.out"
    source.write_text("_start: ret\n")
    assemble = [tool("llvm-mc-22"), "--triple=riscv32", "--filetype=obj", source, "-o", program]
    subprocess.run(assemble, check=True)
    with pytest.raises(InputError, match="32-bit"):
        Image.open(program)
