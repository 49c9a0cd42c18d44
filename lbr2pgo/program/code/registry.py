"""The architectures whose programs can be read: one module and one line each."""

from __future__ import annotations

from lbr2pgo.program.code.aarch64 import AARCH64
from lbr2pgo.program.code.architecture import Architecture
from lbr2pgo.program.code.riscv import RISCV64
from lbr2pgo.program.code.x86 import X86_64
from lbr2pgo.support.errors import InputError

ARCHITECTURES: tuple[Architecture, ...] = (
    X86_64,
    AARCH64,
    RISCV64,
)

NAMES = ", ".join(each.name for each in ARCHITECTURES)
"""All of them, for messages."""


def of_elf_machine(number: int, *, where: str) -> Architecture:
    """The architecture of ELF files with this `e_machine`; raises InputError if it is not here."""
    found = next((each for each in ARCHITECTURES if each.elf_machine == number), None)
    if found is None:
        raise InputError(
            f"this ELF file is for another machine (ELF machine number {number})",
            where=where,
            cure=f"Files for {NAMES} can be read.",
        )
    return found


def named(name: str) -> Architecture:
    """The architecture of this name; KeyError if there is none."""
    return {each.name: each for each in ARCHITECTURES}[name]


def by_uname(machine: str | None) -> Architecture | None:
    """The architecture that `uname -m` calls so, None if it is not known here."""
    return next((each for each in ARCHITECTURES if machine in each.uname), None)
