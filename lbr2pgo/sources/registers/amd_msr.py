"""Dumps of AMD's branch registers (LbrExtV2, Zen 4 and later), as a source of one sample.

Pairs of FROM and TO from 0xc0010300 on, the newest in the first pair. FROM has the misprediction in
bit 63; TO says in its upper bits whether a branch was recorded and whether it was speculative
(Linux: arch/x86/events/amd/lbr.c, struct branch_entry; arch/x86/include/asm/msr-index.h).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lbr2pgo.model.branch_stacks import MISPREDICTED, PREDICTED, SPEC_OUTCOMES, SPEC_SHIFT
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.sources.registers import intel_lbr as lbr
from lbr2pgo.sources.registers.dump_source import Decoded, dump_format, unique
from lbr2pgo.sources.registers.register_dump import Register
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

FIRST, MOST = 0xC0010300, 16
"""Register of the newest FROM, and how many pairs there are."""
SELECT = 0xC000010E

_NAME = re.compile(
    r"(?:MSR_)?(?:AMD(?:64)?_)?(?:SAMP_BR_|LAST_?(?:BR|BRANCH)_?STACK_?|LBR_V2_)"
    r"(FROM|TO)(?:_?IP)?_?(\d{1,2})(?:_?IP)?"
)
_SELECT_NAMES = ("MSR_AMD64_LBR_SELECT", "AMD64_LBR_SELECT", "LAST_BRANCH_STACK_SELECT")

_ADDRESS = (1 << 58) - 1
VALID, SPECULATIVE, RESERVED = 1 << 63, 1 << 62, 1 << 61
"""Bits of TO."""
_TOP_ADDRESS_BIT = 1 << 57

Entry = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Stack:
    """A decoded dump."""

    entries: tuple[Entry, ...]
    """From, to, flags as in `stacks`, newest first; only those that were recorded."""
    depth: int
    filter: lbr.LbrFilter | None
    """None where the dump lacks the register that tells."""
    other_registers: int


def decode(registers: Sequence[Register], path: str) -> Stack:
    """Decode a dump; InputError names the register that is missing or doubled."""
    values, others = unique(registers, _branch_register)
    depth = _depth(values, path)
    pairs = [(values[FIRST + 2 * i], values[FIRST + 2 * i + 1]) for i in range(depth)]
    sign_bit = lbr.sign_bit_of([word & _ADDRESS for pair in pairs for word in pair])
    entries = (decode_entry(source, target, sign_bit) for source, target in pairs)
    select = values.get(SELECT)
    kept = None if select is None else lbr.filter_of({lbr.LBR_SELECT: select}, lbr.MODEL_SPECIFIC)
    return Stack(tuple(entry for entry in entries if entry is not None), depth, kept, others)


def decode_entry(source: int, target: int, sign_bit: int) -> Entry | None:
    """One entry from its pair of registers; None if no branch was recorded.

    An entry of erratum 1452 keeps its reserved bit in the target, by which counting knows it:

    >>> decode_entry(0x1000 | 1 << 63, 0x2000 | VALID, 47) == (0x1000, 0x2000, 1 | 2 << SPEC_SHIFT)
    True
    >>> hex(decode_entry(0x1000, 0x2000 | VALID | RESERVED, 47)[1])
    '0x2000000000002000'
    >>> decode_entry(0x1000, 0x2000, 47) is None
    True
    """
    if not target & (VALID | SPECULATIVE):
        return None
    number = (target >> 63 & 1) << 1 | target >> 62 & 1
    flags = MISPREDICTED if source >> 63 else PREDICTED
    flags |= _SPEC_BY_BITS[number] << SPEC_SHIFT
    address = lbr.sign_extend(target & _ADDRESS, sign_bit)
    if target & RESERVED:
        address = target & _ADDRESS & ~_TOP_ADDRESS_BIT | RESERVED
    return lbr.sign_extend(source & _ADDRESS, sign_bit), address, flags


_SPEC_BY_BITS = tuple(
    SPEC_OUTCOMES.index(name)
    for name in ("NA", "SPEC_WRONG_PATH", "NON_SPEC_CORRECT_PATH", "SPEC_CORRECT_PATH")
)
"""By VALID and SPECULATIVE."""


def number_of(key: str) -> int | None:
    """Number of a register given by name or by `0x…`; None for a name that is not known."""
    if key.startswith("0x"):
        return int(key, 16)
    if key in _SELECT_NAMES:
        return SELECT
    found = _NAME.fullmatch(key)
    return FIRST + 2 * int(found[2]) + (found[1] == "TO") if found else None


def _branch_register(key: str) -> int | None:
    number = number_of(key)
    return number if number == SELECT or number in _REGISTERS else None


_REGISTERS = range(FIRST, FIRST + 2 * MOST)


def _depth(values: Mapping[int, int], path: str) -> int:
    """How many pairs there are; every one must be whole."""
    present = [number for number in values if number in _REGISTERS]
    depth = (max(present, default=FIRST - 2) - FIRST) // 2 + 1
    missing = next((n for n in range(FIRST, FIRST + 2 * depth) if n not in values), None)
    if missing is not None or not depth:
        raise InputError(
            f"register {missing or FIRST:#x} is missing: there are {depth} pairs",
            where=path,
            cure=f"Dump FROM and TO of every entry: {FIRST:#x} to {_REGISTERS[-1]:#x}.",
        )
    return depth


def _decoded(registers: Sequence[Register], path: str) -> Decoded:
    stack = decode(registers, path)
    kept = stack.filter
    return Decoded(
        event=EventInfo("lbr", None if kept is None else kept.branch_sample_type()),
        machine="x86_64",
        details={
            "recorder": "AMD LbrExtV2",
            "cpuid": "AuthenticAMD",
            "depth": str(stack.depth),
            "filter": "unknown" if kept is None else kept.words(),
        },
        entries=stack.entries,
        losses={"registers that are no branch registers": stack.other_registers},
    )


def _shows(keys: Sequence[str]) -> bool:
    """Recognise a dump by a FROM and a TO register."""
    numbers = map(number_of, keys)
    found = {number & 1 for number in numbers if number is not None and number in _REGISTERS}
    return found == {0, 1}


FORMAT = dump_format(
    "amd-msr",
    "dumps of AMD's branch registers (LbrExtV2), as text or JSON",
    (
        "AMD64 Architecture Programmer's Manual vol. 2, Last Branch Stack Registers",
        "https://github.com/torvalds/linux/blob/master/arch/x86/events/amd/lbr.c",
    ),
    shows=_shows,
    decode=_decoded,
    quirks=(),
)
