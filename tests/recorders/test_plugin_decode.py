"""The plugin's decoder against llvm-objdump, over whole C libraries."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders.fixtures import TESTBINS, Tool
from builders.objdump import LINKS

from lbr2pgo.program.code import registry

LOADER = Path("/usr/riscv64-linux-gnu/lib/ld-linux-riscv64-lp64d.so.1")
PLUGIN = Path(__file__).parents[2] / "lbr2pgo" / "recorders" / "plugin"

OTHER, COND, UNCOND, IND, CALL, IND_CALL, RET, SYSCALL = range(8)
REPEAT, TRAP = 16, 17

HARNESS = r"""
#include <stdio.h>
#include <stdlib.h>
#include "architecture.h"
int main(int argc, char **argv) {
    (void)argc;
    unsigned long address;
    char hex[64];
    while (scanf("%lx %63s", &address, hex) == 2) {
        uint8_t bytes[16];
        size_t size = 0;
        for (; hex[2 * size] && size < 16; size++) {
            unsigned byte;
            sscanf(hex + 2 * size, "%2x", &byte);
            bytes[size] = (uint8_t)byte;
        }
        struct decoded d = architecture_of((uint64_t)atoi(argv[1]))->decode(address, bytes, size);
        printf("%u %lx\n", (unsigned)d.kind, d.kind ? (unsigned long)d.target : 0);
    }
    return 0;
}
"""

Decode = Callable[[str, list[tuple[int, str]]], list[tuple[int, int]]]


@pytest.fixture(scope="module")
def decode(tmp_path_factory: pytest.TempPathFactory, tool: Tool) -> Decode:
    directory = tmp_path_factory.mktemp("decode")
    (directory / "harness.c").write_text(HARNESS)
    program = directory / "harness"
    compiler = tool("cc")
    flags = ["-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", f"-I{PLUGIN}"]
    sources = [PLUGIN / f"{name}.c" for name in ("architecture", "x86_64", "aarch64", "riscv64")]
    command = [compiler, *flags, *sources, directory / "harness.c", "-o", program]
    subprocess.run(command, check=True)

    def call(machine: str, instructions: list[tuple[int, str]]) -> list[tuple[int, int]]:
        command = [str(program), str(registry.named(machine).elf_machine)]
        text = "".join(f"{address:x} {code}\n" for address, code in instructions)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        assert not done.stderr
        words = (line.split() for line in done.stdout.splitlines())
        return [(int(kind), int(target, 16)) for kind, target in words]

    return call


X86 = [
    (r"(bnd |notrack |rep |repz )*ret[qw]?$|i?retf?q?$|lret", RET),
    (r"(bnd |notrack )*call[ql]?$", CALL),
    (r"(bnd |notrack )*jmp[ql]?$", UNCOND),
    (r"loop|j[re]?cxz|xbegin|(bnd )?j[a-z]+$", COND),
    (r"syscall|sysenter|int$", SYSCALL),
    (r"ud[012]|hlt|int3|int1", TRAP),
    (r"rep.*(movs|stos|cmps|scas|lods|ins|outs)[bwlq]", REPEAT),
]
AARCH64 = [
    (r"ret|retaa|retab", RET),
    (r"bl$", CALL),
    (r"blr", IND_CALL),
    (r"br$|braa|brab", IND),
    (r"b$", UNCOND),
    (r"b\.|cbn?z|tbn?z|bc\.", COND),
    (r"svc", SYSCALL),
    (r"brk|hlt|udf|hvc|smc|dcps", TRAP),
]
RISCV64 = [
    (r"ret$|[sm]ret", RET),
    (r"jalr", IND_CALL),
    (r"jal$", CALL),
    (r"jr$", IND),
    (r"j$", UNCOND),
    (r"b(eq|ne|lt|ge|gt|le)", COND),
    (r"ecall", SYSCALL),
    (r"ebreak|unimp", TRAP),
]


def kind_of(machine: str, mnemonic: str, operands: str) -> int:
    table = {"aarch64": AARCH64, "riscv64": RISCV64, "x86-64": X86}[machine]
    kind = next((kind for pattern, kind in table if re.match(pattern, mnemonic)), OTHER)
    if machine == "riscv64" and "," in operands and operands.split(",")[0] not in LINKS:
        return {CALL: UNCOND, IND_CALL: IND}.get(kind, kind)
    if machine == "riscv64" and kind == IND and operands in LINKS:
        return RET
    if machine == "x86-64" and operands.startswith("*"):
        return {CALL: IND_CALL, UNCOND: IND}.get(kind, kind)
    return kind


def disassemble(objdump: str, path: Path) -> Iterator[tuple[int, str, str, str]]:
    output = subprocess.run(
        [objdump, "-d", "--no-leading-headers", path], capture_output=True, text=True, check=True
    ).stdout
    for line in output.splitlines():
        found = re.match(r"\s+([0-9a-f]+): ((?:[0-9a-f]{2,8} )+)\s*\t(.*)", line)
        if not found or "<unknown>" in line:
            continue
        code = found[2].replace(" ", "")
        if len(found[2].split()[0]) > 2:  # a word, printed as a number
            code = bytes.fromhex(code)[::-1].hex()
        text = re.sub(r"^((addr32|data16|lock|[c-gs]s)\s+)+", "", found[3])
        text = re.sub(
            r"^((rep\w*|bnd|notrack)\s+)+", lambda m: "rep " if "rep" in m[0] else "", text
        )
        mnemonic, _, operands = text.partition("\t")
        yield int(found[1], 16), code, mnemonic, operands


@pytest.mark.parametrize(
    ("machine", "path"),
    [
        ("x86-64", TESTBINS / "x86-64/interp.static"),
        ("aarch64", TESTBINS / "aarch64/interp.static"),
        ("riscv64", LOADER),
    ],
)
def test_every_instruction_of_a_c_library(
    machine: str, path: Path, decode: Decode, tool: Tool
) -> None:
    if not path.exists():
        pytest.skip("no C library for RISC-V (make toolchain, as root)")
    listing = list(disassemble(tool("llvm-objdump-22"), path))
    results = decode(machine, [(address, code) for address, code, _, _ in listing])
    seen: Counter[int] = Counter()
    for (address, code, mnemonic, operands), (kind, target) in zip(listing, results, strict=True):
        where = f"{address:x}: {code} {mnemonic} {operands}"
        assert kind == kind_of(machine, mnemonic, operands), where
        if kind in (COND, UNCOND, CALL):
            stated = re.findall(r"0x([0-9a-f]+)", operands.split(" <")[0])[-1]
            assert target == int(stated, 16), where
        seen[kind] += 1
    wanted = {OTHER, COND, UNCOND, IND, CALL, IND_CALL, RET, SYSCALL, TRAP}
    assert wanted <= set(seen)
    assert len(listing) > 25_000


@pytest.mark.parametrize(
    ("code", "kind", "target"),
    [
        ("c3", RET, 0),
        ("f3c3", RET, 0),
        ("f2c3", RET, 0),
        ("c20800", RET, 0),
        ("ebfe", UNCOND, 0x1000),
        ("3eff20", IND, 0),
        ("41ffd3", IND_CALL, 0),
        ("ff15 00000000", IND_CALL, 0),
        ("ff2d 00000000", IND, 0),  # far
        ("e2fe", COND, 0x1000),
        ("67e3fd", COND, 0x1000),
        ("c7f8fa0f0000", COND, 0x2000),  # xbegin
        ("c7c0fa0f0000", OTHER, 0),
        ("2e0f84fa0f0000", COND, 0x2001),
        ("f2e8f90f0000", CALL, 0x1FFF),
        ("f348ab", REPEAT, 0),
        ("f2a6", REPEAT, 0),
        ("48ab", OTHER, 0),
        ("0f05", SYSCALL, 0),
        ("cd80", SYSCALL, 0),
        ("0f0b", TRAP, 0),
        ("ff30", OTHER, 0),  # push
        ("c5fc77", OTHER, 0),  # vzeroupper: VEX, not lds
        ("62f17c48c2c100", OTHER, 0),  # EVEX
    ],
)
def test_x86_forms(code: str, kind: int, target: int, decode: Decode) -> None:
    assert decode("x86-64", [(0x1000, code.replace(" ", ""))]) == [(kind, target)]


@pytest.mark.parametrize(
    ("word", "kind", "target"),
    [
        (0x14000000, UNCOND, 0x1000),
        (0x17FFFFFF, UNCOND, 0xFFC),
        (0x94000002, CALL, 0x1008),
        (0x54000040, COND, 0x1008),
        (0x54000050, COND, 0x1008),  # bc.eq
        (0x34FFFFE0, COND, 0xFFC),
        (0x36000040, COND, 0x1008),
        (0xB7FFFFE0, COND, 0xFFC),
        (0x74000040, COND, 0x1008),  # cbgt
        (0xD61F0000, IND, 0),
        (0xD71F0800, IND, 0),  # braa
        (0xD63F0000, IND_CALL, 0),
        (0xD65F03C0, RET, 0),
        (0xD65F0BFF, RET, 0),  # retaa
        (0xD69F03E0, TRAP, 0),  # eret
        (0xD4000001, SYSCALL, 0),
        (0xD4200000, TRAP, 0),
        (0x00000000, TRAP, 0),
        (0xD503201F, OTHER, 0),
    ],
)
def test_aarch64_forms(word: int, kind: int, target: int, decode: Decode) -> None:
    assert decode("aarch64", [(0x1000, word.to_bytes(4, "little").hex())]) == [(kind, target)]
