"""Instructions, judged by llvm-objdump line by line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import capstone
import numpy as np
import pytest
from builders.fixtures import TESTBINS, Corpus, Link, Tool
from builders.objdump import Listed, disassembly
from builders.recordings import PIE, RECORDED
from hypothesis import given, settings
from hypothesis import strategies as st

from lbr2pgo.program.code.decode import decode, text
from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.code.regions import code_ranges
from lbr2pgo.program.code.x86 import X86_64
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ByteRanges

ASSEMBLY = Path(__file__).parent / "assembly"


def decode_all(binary: Path) -> InstructionTable:
    image = Image.open(binary)
    return decode(image, code_ranges(image))


def differences(table: InstructionTable, listed: Iterable[Listed]) -> list[str]:
    """What the disassembly says differently, line by line."""
    row = {address: i for i, address in enumerate(table.address.tolist())}
    found = []
    for line in listed:
        i = row.get(line.address)
        if i is None:
            found.append(f"{line.address:#x} {line.text}: missing")
        elif (table.size[i], table.kind[i]) != (line.size, line.kind):
            found.append(f"{line.address:#x} {line.text}: {table.size[i]}, {Kind(table.kind[i])!r}")
        elif table.has_target[i] and int(table.target[i]) not in line.numbers:
            found.append(f"{line.address:#x} {line.text}: goes to {int(table.target[i]):#x}")
    return found


def in_functions(binary: Path, listed: list[Listed]) -> list[Listed]:
    addresses = np.array([line.address for line in listed], dtype=np.uint64)
    inside = Program.open(binary).functions.containing(addresses) >= 0
    return [line for line, keep in zip(listed, inside, strict=True) if keep]


def agrees(binary: Path, *, at_least: int) -> None:
    program = Program.open(binary)
    table = program.instructions_for(program.functions.start)
    listed = in_functions(binary, disassembly(binary))
    assert len(listed) >= at_least
    assert differences(table, listed) == []


@pytest.mark.parametrize("name", ["func-split", "multi-load-segs", "inline-noprobe2"])
def test_small_corpus_programs(name: str, corpus: Corpus, tool: object) -> None:
    agrees(corpus(f"llvm-profgen/{name}.perfbin"), at_least=100)


def test_autofdo_program(corpus: Corpus) -> None:
    agrees(corpus("autofdo/test.binary"), at_least=7000)


@pytest.mark.slow
def test_sqlite(corpus: Corpus) -> None:
    agrees(corpus("sqlite/sq.zst"), at_least=250_000)


@pytest.mark.slow
@pytest.mark.parametrize("start", [0x401000, 0x8C0000])
def test_openssl(start: int, corpus: Corpus) -> None:
    """In all functions but those where objdump itself lacks instructions (MPX)."""
    binary = corpus("bolt/openssl.zst")
    program = Program.open(binary)
    table = program.instructions_for(program.functions.start)
    window = (f"--start-address={start}", f"--stop-address={start + 0x40000}")
    listed = in_functions(binary, disassembly(binary, *window))
    function = program.functions.containing(np.array([x.address for x in listed], dtype=np.uint64))
    unknown = {f for f, x in zip(function, listed, strict=True) if x.text == "<unknown>"}
    known = [x for f, x in zip(function, listed, strict=True) if f not in unknown]
    assert len(known) > 40_000
    assert differences(table, known) == []


@pytest.mark.parametrize("name", [f"{m}/{name}" for m, name in RECORDED if name.endswith(".pie")])
def test_own_programs(name: str, tool: Tool) -> None:
    tool("llvm-objdump-22")
    agrees(TESTBINS / name, at_least=500)


@pytest.mark.slow
def test_static_aarch64_program(tool: Tool) -> None:
    tool("llvm-objdump-22")
    agrees(TESTBINS / "aarch64/interp.static", at_least=80_000)


@pytest.mark.parametrize(
    ("source", "machine"), [("x86_newest.s", "x86-64"), ("aarch64_control.s", "aarch64")]
)
def test_newest_instructions_leave_no_gap(source: str, machine: str, link: Link) -> None:
    binary = link(ASSEMBLY / source, machine=machine)
    table = decode_all(binary)
    listed = [line for line in disassembly(binary) if line.text != "<unknown>"]
    assert len(listed) > 50
    assert differences(table, listed) == []
    assert table.run.tolist() == [0] * len(table)


def test_kinds_that_objdump_has_no_word_for(link: Link) -> None:
    binary = link("_start: .byte 0xf1\n.byte 0x0f, 0xff, 0xc0, 0x90\n")
    assert decode_all(binary).kind.tolist()[:2] == [Kind.TRAP, Kind.TRAP]


def test_ud1_is_not_cut_short(link: Link) -> None:
    """clang's -fsanitize-trap leaves `ud1l 4(%eax), %eax`; its operand is not code."""
    table = decode_all(link("_start: ud1l 4(%eax), %eax\nret\n"))
    assert table.size.tolist() == [5, 1]
    assert table.kind.tolist() == [Kind.TRAP, Kind.RET]


@pytest.mark.parametrize(
    ("line", "kind", "distance"),
    [
        ("jmp .+2", Kind.JUMP, 2),
        ("jmp .-100", Kind.JUMP, -100),
        (".byte 0xe9; .long 0x7fffffff", Kind.JUMP, 0x80000004),
        (".byte 0xe8; .long 0x80000000", Kind.CALL, 5 - 0x80000000),
        ("xbegin .+6", Kind.COND, 6),
        (".byte 0x66, 0xc7, 0xf8, 0xff, 0xff", Kind.COND, 4),
        (".byte 0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0", Kind.CALL, 8),
        ("jrcxz .", Kind.COND, 0),
        ("jmpabs $0x100001234", Kind.JUMP, None),
        (".byte 0x2e, 0x75, 0x10", Kind.COND, 0x13),
        (".byte 0xf2, 0x75, 0x10", Kind.COND, 0x13),
    ],
)
def test_targets(line: str, kind: Kind, distance: int | None, link: Link) -> None:
    table = decode_all(link(f"_start: {line}\n ret\n", "--image-base=0x100000000"))
    assert table.kind[0] == kind
    assert table.has_target[0]
    if distance is None:
        assert int(table.target[0]) == 0x100001234
    else:
        assert int(table.target[0]) - int(table.address[0]) == distance


def test_addresses_of_the_upper_half(link: Link) -> None:
    """Kernels are linked there."""
    table = decode_all(link("_start: jmp _start\n", "-Ttext=0xffffffff81000000"))
    assert table.address.tolist() == table.target.tolist() == [0xFFFFFFFF81000000]
    assert table.index_of(np.array([0xFFFFFFFF81000000], dtype=np.uint64)).tolist() == [0]


def test_lookups(link: Link) -> None:
    table = decode_all(link("_start: nopl (%rax)\n ret\n"))
    start = int(table.address[0])
    addresses = np.array([0, start - 1, start, start + 1, start + 3, start + 4], dtype=np.uint64)
    assert table.index_of(addresses).tolist() == [-1, -1, 0, -1, 1, -1]
    assert table.covering(addresses).tolist() == [-1, -1, 0, 0, 1, -1]
    assert table.ends_line.tolist() == [False, True]


def test_lookups_in_an_empty_table(link: Link) -> None:
    image = Image.open(link("_start: ret\n"))
    for table in (decode(image, ByteRanges.of(some)) for some in ([], [(1, 9)])):
        assert len(table) == 0
        assert table.index_of(np.array([0, 1], dtype=np.uint64)).tolist() == [-1, -1]
        assert table.run.tolist() == []


def test_what_is_no_instruction_leaves_a_gap(link: Link) -> None:
    table = decode_all(link("_start: nop\n.byte 0x06, 0x06\n nop\n nop\n"))
    assert (table.address - table.address[0]).tolist() == [0, 3, 4]
    assert table.run.tolist() == [0, 1, 1]


def test_an_instruction_does_not_cross_the_end_of_its_range(link: Link) -> None:
    image = Image.open(link("_start: nop\n movl $0x90909090, %eax\n"))
    start = image.section(".text").address  # type: ignore[union-attr]
    table = decode(image, ByteRanges.of([(start, start + 4), (start + 4, start + 6)]))
    assert (table.address - np.uint64(start)).tolist() == [0, 2, 3, 4, 5]


def test_overlapping_ranges_give_each_byte_once(link: Link) -> None:
    image = Image.open(link("_start:\n" + "nop\n" * 20))
    a = image.section(".text").address  # type: ignore[union-attr]
    bounds = [(a + 5, a + 8), (a, a + 10), (a + 9, a + 12), (a + 30, a + 20)]
    table = decode(image, ByteRanges.of(bounds))
    assert table.address.tolist() == list(range(a, a + 12))


def test_text_reads_as_objdump_writes(link: Link) -> None:
    image = Image.open(link("_start: leaq 8(%rax), %rbx\n jmp _start\n ret\n"))
    (start, end), *_ = code_ranges(image).pairs()
    lines = list(text(image, start, end))
    assert [line for _, _, line in lines] == ["leaq 8(%rax), %rbx", f"jmp {start:#x}", "retq"]
    assert lines[0][:2] == (start, bytes.fromhex("488d5808"))


def test_text_of_what_the_disassembler_does_not_know(link: Link) -> None:
    image = Image.open(link("_start: senduipi %rax\n ret\n"))
    (start, end), *_ = code_ranges(image).pairs()
    assert [line for _, _, line in text(image, start, end)] == ["(bad)", "retq"]


class Bytes:
    """Stands for an image: these bytes at address 0x1000."""

    architecture = X86_64

    def __init__(self, data: bytes) -> None:
        self.data = data

    def stored(self, address: int, size: int) -> memoryview:
        return memoryview(self.data)[address - 0x1000 :][:size]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_decode_as_capstone_does_until_it_stops(data: bytes) -> None:
    table = decode(Bytes(data), ByteRanges.of([(0x1000, 0x1000 + len(data))]))  # type: ignore[arg-type]
    ends = table.address + table.size
    assert (ends[:-1] <= table.address[1:]).all()
    assert not len(ends) or ends[-1] <= 0x1000 + len(data)
    handle = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    expected = []
    for address, size, mnemonic, _ in handle.disasm_lite(data, 0x1000):
        if mnemonic == "ud1":
            break
        expected.append((address, size))
    actual = list(zip(table.address.tolist(), table.size.tolist(), strict=True))
    assert actual[: len(expected)] == expected


@pytest.mark.parametrize("byte", [0x06, 0x00, 0xC5, 0x62, 0xF0, 0x66, 0x0F])
def test_one_byte_over_and_over_takes_linear_time(byte: int) -> None:
    data = bytes([byte]) * (1 << 17)
    table = decode(Bytes(data), ByteRanges.of([(0x1000, 0x1000 + len(data))]))  # type: ignore[arg-type]
    assert len(table) <= len(data)


def test_code_is_decoded_alike_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges that overlap stay together."""
    program = Program.open(PIE)
    ranges = program.regions.ranges
    longer = np.minimum(ranges.end + np.uint64(3), ranges.end.max())
    for each in (ranges, ByteRanges(ranges.start, longer)):
        whole = decode(program.image, each)
        monkeypatch.setattr("lbr2pgo.program.code.decode._AT_ONCE", 256)
        parts = decode(program.image, each)
        monkeypatch.undo()
        assert len(whole) > 500
        for name in ("address", "size", "kind", "target", "has_target"):
            assert np.array_equal(getattr(parts, name), getattr(whole, name))
