"""Dumps of Arm's branch record registers BRBSRC<n>_EL1, BRBTGT<n>_EL1 and BRBINF<n>_EL1.

Record 0 is the newest; records from 32 on are those of the second bank. A record may know only
its source or only its target: the other end lay in a prohibited region and is 0 here, as in Linux.
Bits as in Arm ARM, "Branch Record Buffer Extension", and Linux arch/arm64/tools/sysreg; meaning
for perf as in drivers/perf/arm_brbe.c (v6.17).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lbr2pgo.model.branch_stacks import (
    ABORT,
    BRANCH_FILTER_BITS,
    BRANCH_TYPES,
    CYCLES_MASK,
    CYCLES_SHIFT,
    IN_TRANSACTION,
    MISPREDICTED,
    NEW_TYPE_SHIFT,
    PREDICTED,
    PRIV_SHIFT,
    TYPE_SHIFT,
)
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.sources.registers.dump_source import ONE_CORE, Decoded, dump_format, unique
from lbr2pgo.sources.registers.register_dump import Register
from lbr2pgo.support.errors import InputError

DEPTHS = (8, 16, 32, 64)

_RECORD_KEY = re.compile(r"BRB(SRC|TGT|INF)(\d{1,2})")
_KINDS = ("SRC", "TGT", "INF")

# BRBINF.VALID
_NONE, _TARGET_ONLY, _SOURCE_ONLY = 0, 1, 2

# BRBINF.TYPE as PERF_BR_*; what is missing has no name there (Linux: brbe_type_to_perf_type_map).
_TYPES = {
    0x00: "UNCOND", 0x01: "IND", 0x02: "CALL", 0x03: "IND_CALL", 0x05: "RET", 0x07: "ERET",
    0x08: "COND", 0x22: "SYSCALL", 0x23: "IRQ", 0x24: "SERROR", 0x2E: "IRQ", 0x2F: "IRQ",
    0x2A: "EXTEND_ABI", 0x2B: "EXTEND_ABI", 0x2C: "EXTEND_ABI",
    # Debug entry and exit, and traps to EL3, interrupt the program likewise.
    0x21: "IRQ", 0x26: "IRQ", 0x27: "IRQ", 0x30: "IRQ", 0x39: "ERET",
}  # fmt: skip
_FAULTS = {0x2A: 0, 0x2B: 2, 0x2C: 1}  # PERF_BR_NEW_FAULT_ALGN, _INST, _DATA
_LAST_BRANCH_TYPE = 0x08
"""Types up to here are branches, except 7, ERET; the rest are exceptions."""

# BRBINF.EL as PERF_BR_PRIV_*: EL0 user, EL1 kernel, EL2 kernel too (hosts run there), EL3 unknown.
_PRIVILEGES = (1, 2, 2, 0)


@dataclass(frozen=True, slots=True)
class Record:
    """One branch record; `flags` as in `stacks`, an unknown end is 0."""

    source: int
    target: int
    flags: int
    cycles_saturated: bool


@dataclass(frozen=True, slots=True)
class RecordBuffer:
    """A decoded dump."""

    records: tuple[Record, ...]
    """Newest first, up to the first invalid one."""
    depth: int
    filter: Filter
    other_registers: int


def decode(registers: Sequence[Register], path: str) -> RecordBuffer:
    """Decode a dump; InputError names a register that is missing, doubled or out of range."""
    cure = f"{ONE_CORE} Records of the second bank are 32 to 63."
    values, others = unique(registers, _name_of, cure)
    depth = _depth(values, path)
    records: list[Record] = []
    for i in range(depth):
        record = decode_record(*(values[f"BRB{kind}{i}"] for kind in _KINDS))
        if record is None:
            break  # Linux: brbe_read_filtered_entries stops here too
        records.append(record)
    return RecordBuffer(tuple(records), depth, _filter_of(values), others)


def _name_of(key: str) -> str | None:
    """Name of a register of BRBE without _EL1; None for others."""
    name = key.removesuffix("_EL1")
    found = _RECORD_KEY.fullmatch(name)
    if found:
        return f"BRB{found[1]}{int(found[2])}"  # 07 is 7
    return name if name.startswith("BRB") else None


def _depth(values: Mapping[str, int], path: str) -> int:
    """How many records there are; every one must be whole."""
    indices = [int(found[2]) for found in map(_RECORD_KEY.fullmatch, values) if found]
    if not indices:
        raise InputError(
            "holds no branch records",
            where=path,
            cure="Dump BRBSRC<n>_EL1, BRBTGT<n>_EL1 and BRBINF<n>_EL1 of every record.",
        )
    stated = values.get("BRBIDR0", 0) & 0xFF
    depth = stated if stated in DEPTHS else max(indices) + 1
    names = (f"BRB{kind}{i}" for i in range(depth) for kind in _KINDS)
    missing = next((name for name in names if name not in values), None)
    if missing:
        raise InputError(
            f"{missing}_EL1 is missing: there are {depth} records",
            where=path,
            cure="Dump BRBSRC, BRBTGT and BRBINF of every record.",
        )
    if depth not in DEPTHS:
        raise InputError(
            f"{depth} records are no depth of BRBE: BRBSRC{depth}_EL1 may be missing",
            where=path,
            cure=f"Depths are {', '.join(map(str, DEPTHS))}.",
        )
    return depth


def decode_record(source: int, target: int, info: int) -> Record | None:
    """One record from its three registers, None if it is not valid."""
    valid = info & 3
    if valid == _NONE:
        return None
    cycles, saturated = cycles_of(info)
    flags = _type_flags(info) | cycles << CYCLES_SHIFT
    if valid != _TARGET_ONLY:
        flags |= _prediction_flags(info)
    if valid != _SOURCE_ONLY:
        flags |= _PRIVILEGES[info >> 6 & 3] << PRIV_SHIFT
    flags |= IN_TRANSACTION if info >> 16 & 1 else 0
    # LASTFAILED: the transaction before this record was undone, which breaks the chain here.
    flags |= ABORT if info >> 17 & 1 else 0
    return Record(
        0 if valid == _TARGET_ONLY else source,
        0 if valid == _SOURCE_ONLY else target,
        flags,
        saturated,
    )


def _type_flags(info: int) -> int:
    kind = info >> 8 & 0x3F
    flags = BRANCH_TYPES.index(_TYPES.get(kind, "UNKNOWN")) << TYPE_SHIFT
    return flags | _FAULTS.get(kind, 0) << NEW_TYPE_SHIFT


def _prediction_flags(info: int) -> int:
    """MPRED speaks of branches alone; for exceptions it is 0 and means nothing."""
    kind = info >> 8 & 0x3F
    if kind > _LAST_BRANCH_TYPE or kind == 0x07:
        return 0
    return MISPREDICTED if info >> 5 & 1 else PREDICTED


def cycles_of(info: int) -> tuple[int, bool]:
    """Cycles since the previous record, at most 65535, and whether the counter was at its end.

    CC is a mantissa of 8 bits and an exponent of 6; CCU says that the count is unknown: then 0.

    >>> cycles_of(0x0C << 32), cycles_of(0x0180 << 32), cycles_of(0x0280 << 32)
    ((12, False), (384, False), (768, False))
    >>> cycles_of(1 << 46 | 0x0C << 32), cycles_of(0x3FFF << 32)
    ((0, False), (65535, True))
    """
    if info >> 46 & 1:
        return 0, False
    mantissa, exponent = info >> 32 & 0xFF, info >> 40 & 0x3F
    cycles = mantissa if exponent == 0 else (mantissa | 0x100) << (exponent - 1)
    return min(cycles, CYCLES_MASK), info >> 32 & 0x3FFF == 0x3FFF


# BRBFCR_EL1: which branches, in words and as perf names them (it has no name for direct jumps,
# `ind_jmp` says at least "some jumps").
_FILTER_BITS = (
    (22, "conditional branches", "cond"), (21, "direct calls", "call"),
    (20, "indirect calls", "ind_call"), (19, "returns", "any_ret"),
    (18, "indirect branches", "ind_jmp"), (17, "direct branches", "ind_jmp"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Filter:
    """What the buffer recorded, as far as the dump tells."""

    words: str
    branch_sample_type: int | None
    """PERF_SAMPLE_BRANCH_* bits; None without BRBFCR_EL1."""


def _filter_of(values: Mapping[str, int]) -> Filter:
    """BRBFCR_EL1 and BRBCR_EL1 in words."""
    fcr, cr = values.get("BRBFCR"), values.get("BRBCR")
    words, names = [], []
    if fcr is not None:
        excludes = bool(fcr >> 16 & 1)  # EnI: the kinds that are set are left out
        kept = [row for row in _FILTER_BITS if bool(fcr >> row[0] & 1) != excludes]
        words.append(f"records {', '.join(kind for _, kind, _ in kept) or 'no branches'}")
        names = ["any"] if len(kept) == len(_FILTER_BITS) else [name for _, _, name in kept]
    if cr is not None:
        levels = [level for bit, level in ((0, "EL0"), (1, "EL1")) if cr >> bit & 1]
        words.append(f"at {' and '.join(levels) or 'no exception level'}")
        words += [
            kind for bit, kind in ((23, "exceptions"), (22, "exception returns")) if cr >> bit & 1
        ]
        names += [name for bit, name in ((0, "user"), (1, "kernel")) if cr >> bit & 1]
    bits = sum(1 << bit for bit in {BRANCH_FILTER_BITS[name] for name in names})
    return Filter("; ".join(words) or "unknown", None if fcr is None else bits)


def _decoded(registers: Sequence[Register], path: str) -> Decoded:
    buffer = decode(registers, path)
    return Decoded(
        event=EventInfo("brbe", buffer.filter.branch_sample_type),
        machine="aarch64",
        details={
            "recorder": "Arm BRBE",
            "depth": str(buffer.depth),
            "filter": buffer.filter.words,
        },
        entries=[(record.source, record.target, record.flags) for record in buffer.records],
        losses={
            "registers that are no branch records": buffer.other_registers,
            "cycle counts at their limit": sum(r.cycles_saturated for r in buffer.records),
        },
    )


def _shows(keys: Sequence[str]) -> bool:
    """Recognise a dump by two kinds of record registers."""
    found = (_RECORD_KEY.fullmatch(key.removesuffix("_EL1")) for key in keys)
    return len({match[1] for match in found if match}) >= 2


FORMAT = dump_format(
    "brbe-registers",
    "dumps of Arm's branch record registers, as text or JSON",
    (
        "Arm Architecture Reference Manual, Branch Record Buffer Extension",
        "https://github.com/torvalds/linux/blob/master/drivers/perf/arm_brbe.c",
    ),
    shows=_shows,
    decode=_decoded,
)
