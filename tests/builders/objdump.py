"""What llvm-objdump says of a program's instructions, in the words of lbr2pgo.program."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.program.code.instructions import Kind

_LINE = re.compile(r"^\s*([0-9a-f]+): ([0-9a-f ]+)\t(.*)")
_PREFIX = re.compile(r"^(?:rep\w*|bnd|notrack|lock|data16|rex64|rex\.\w+|[c-gs]s|addr32)\s+")
_RETURNS = ("ret", "lret", "iret", "sysret", "sysexit", "uiret", "rsm", "eretu", "erets")
_X86_KINDS = {
    Kind.COND: r"j(?!mp)\w+|loop\w*|xbegin",
    Kind.RET: rf"(?:{'|'.join(_RETURNS)})[lqw]?",
    Kind.SYSCALL: r"syscall|sysenter|int",
    Kind.TRAP: r"ud[012][lqw]?|int3|hlt",
}
_AARCH64_KINDS = {
    Kind.JUMP: r"b|b\.al|b\.nv",
    Kind.COND: r"bc?\.\w\w|cbn?z|tbn?z|cb[bh]?(?:eq|ne|gt|ge|hi|hs|lt|lo|le|ls)",
    Kind.CALL: r"bl",
    Kind.INDIRECT_JUMP: r"br|bra\w+",
    Kind.INDIRECT_CALL: r"blr\w*",
    Kind.RET: r"ret\w*|eret\w*|drps",
    Kind.SYSCALL: r"svc|hvc|smc",
    Kind.TRAP: r"brk|hlt|udf|dcps\d",
}
LINKS = ("ra", "t0")
_RISCV_KINDS = {
    Kind.JUMP: r"j",
    Kind.COND: r"b(?:eq|ne|lt|ge|gt|le)u?z?",
    Kind.CALL: r"jal",
    Kind.INDIRECT_JUMP: r"jr",
    Kind.INDIRECT_CALL: r"jalr",
    Kind.RET: r"ret|[sm]ret|mnret",
    Kind.SYSCALL: r"ecall",
    Kind.TRAP: r"ebreak|unimp",
}


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of a disassembly."""

    address: int
    size: int
    kind: Kind
    text: str

    @property
    def numbers(self) -> set[int]:
        """Everything in the text that could be a target."""
        return {int(digits, 16) for digits in re.findall(r"0x([0-9a-f]+)", self.text)}


def disassembly(binary: Path, *flags: str) -> list[Listed]:
    """All lines of all executable sections."""
    is_riscv = binary.read_bytes()[18:20] == b"\xf3\0"  # e_machine: its file says what it extends
    done = subprocess.run(
        ["llvm-objdump-22", "-d", *([] if is_riscv else ["--mattr=+all"]), *flags, binary],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    kind = _riscv_kind if is_riscv else _x86_kind
    kind = _aarch64_kind if "aarch64" in done.stdout[:200] else kind
    listed: list[Listed] = []
    prefix = 0
    for match in filter(None, map(_LINE.match, done.stdout.splitlines())):
        size = len(match[2].replace(" ", "")) // 2 + prefix
        text = match[3].strip().replace("\t", " ")
        if text in ("lock", "data16"):  # a line of its own for a part of an instruction
            prefix = size
            continue
        listed.append(Listed(int(match[1], 16) - prefix, size, kind(text), text))
        prefix = 0
    return listed


def _x86_kind(text: str) -> Kind:
    while match := _PREFIX.match(text):
        text = text[match.end() :]
    mnemonic, _, operands = text.partition(" ")
    indirect = operands.startswith("*")
    if re.match("l?jmp", mnemonic):
        return Kind.INDIRECT_JUMP if indirect else Kind.JUMP
    if re.match("l?call", mnemonic):
        return Kind.INDIRECT_CALL if indirect else Kind.CALL
    return _find(_X86_KINDS, mnemonic)


def _aarch64_kind(text: str) -> Kind:
    return _find(_AARCH64_KINDS, text.partition(" ")[0])


def _riscv_kind(text: str) -> Kind:
    mnemonic, _, operands = text.partition(" ")
    if mnemonic == "jr" and operands in ("t0", "ra"):
        return Kind.RET
    if mnemonic in ("jal", "jalr") and "," in operands and operands.split(",")[0] not in LINKS:
        return Kind.JUMP if mnemonic == "jal" else Kind.INDIRECT_JUMP
    return _find(_RISCV_KINDS, mnemonic)


def _find(kinds: dict[Kind, str], mnemonic: str) -> Kind:
    return next((k for k, words in kinds.items() if re.fullmatch(words, mnemonic)), Kind.OTHER)
