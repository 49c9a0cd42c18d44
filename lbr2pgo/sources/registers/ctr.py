"""Dumps of RISC-V's control transfer records: ctrsource<n>, ctrtarget<n> and ctrdata<n>.

Record 0 is the newest, as the indirect registers show them (siselect 0x200 + n). Bits as in the
RISC-V Instruction Set Manual, volume II, "Smctr" Control Transfer Records Extension, version 1.0;
types for perf as in the patches of Linux' driver (drivers/perf/riscv_ctr.c), where those name one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from lbr2pgo.model.branch_stacks import (
    BRANCH_FILTER_BITS,
    MISPREDICTED,
    MISSING,
    PREDICTED,
    SATURATED,
    cycle_flags,
    type_flags,
)
from lbr2pgo.model.quirks import Quirk
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.sources.registers.dump_source import (
    Decoded,
    RecordRegisters,
    dump_format,
    stack,
    unique,
)
from lbr2pgo.sources.registers.register_dump import Register
from lbr2pgo.support.dataclass import dataclass

RECORDS = RecordRegisters(
    ("CTRSOURCE", "CTRTARGET", "CTRDATA"), (16, 32, 64, 128, 256), written=str.lower
)
_CONTROLS = ("MCTRCTL", "SCTRCTL", "VSCTRCTL")

# ctrdata.TYPE
_TYPES = {
    1: "SYSCALL", 2: "IRQ", 3: "ERET", 5: "COND", 8: "IND_CALL", 9: "CALL", 10: "IND",
    11: "UNCOND", 12: "IND_CALL", 13: "RET", 14: "IND", 15: "UNCOND",
}  # fmt: skip
_TRAPS, _NOT_TAKEN = (1, 2, 3), 4
_CCV = 1 << 15
_FROZEN = 1 << 31  # of sctrstatus
_U, _S, _M, _RASEMU, _EXTERNAL_TRAPS = 1 << 0, 1 << 1, 1 << 2, 1 << 7, 1 << 8 | 1 << 9

# Bits of the control registers that inhibit a kind, in words and as perf names the kind
_INHIBITS = (
    (37, "taken branches", "cond"), (40, "indirect calls", "ind_call"),
    (41, "direct calls", "call"), (42, "indirect jumps", "ind_jmp"),
    (43, "direct jumps", "ind_jmp"), (44, "co-routine swaps", "any_call"),
    (45, "returns", "any_ret"), (46, "other indirect jumps", "ind_jmp"),
    (47, "other direct jumps", "ind_jmp"),
)  # fmt: skip
_TRAP_INHIBITS = ((33, "exceptions"), (34, "interrupts"), (35, "trap returns"))


@dataclass(frozen=True, slots=True)
class TransferRecord:
    """One record; `flags` as in `branch_stacks`, an end in a mode that is not recorded is 0."""

    source: int
    target: int
    flags: int
    is_taken: bool
    """False for a conditional branch that was passed (recorded with NTBREN)."""
    is_saturated: bool


def decode_record(source: int, target: int, data: int) -> TransferRecord | None:
    """One record from its three registers, None if it is not valid.

    MISP speaks of branches: nothing predicts exceptions and interrupts.

    >>> entry = decode_record(0x1001, 0x2001, 13 | 1 << 15 | 7 << 16)  # a mispredicted return
    >>> hex(entry.source), hex(entry.target), entry.flags & MISPREDICTED, cycles_of(1 << 15)
    ('0x1000', '0x2000', 1, 0)
    """
    if not source & 1:
        return None
    kind = data & 0xF
    cycles = cycles_of(data)
    flags = type_flags(_TYPES.get(kind, "UNKNOWN")) | cycle_flags(cycles)
    if kind not in _TRAPS:
        flags |= MISPREDICTED if target & 1 else PREDICTED
    return TransferRecord(source & ~1, target & ~1, flags, kind != _NOT_TAKEN, cycles == SATURATED)


def cycles_of(data: int) -> int:
    """Cycles since the record before, MISSING without CCV, SATURATED at the counter's end.

    CC is a mantissa of 12 bits and an exponent of 4: "Cycle Counting".

    >>> [cycles_of(1 << 15 | field << 16) for field in (0, 4095, 0x1000, 0x2800, 0xFFFE)]
    [0, 4095, 4096, 12288, 134184960]
    >>> cycles_of(7 << 16) == MISSING, cycles_of(1 << 15 | 0xFFFF << 16) == SATURATED
    (True, True)
    """
    if not data & _CCV:
        return MISSING
    mantissa, exponent = data >> 16 & 0xFFF, data >> 28 & 0xF
    if mantissa == 0xFFF and exponent == 0xF:
        return SATURATED
    return mantissa if exponent == 0 else (mantissa | 0x1000) << (exponent - 1)


def decoded(registers: Sequence[Register], path: str) -> Decoded:
    """A dump as a source's content; InputError names a register that is missing or doubled."""
    values, others = unique(registers, _name_of)
    stated = values.get("SCTRDEPTH")
    depth = RECORDS.depth(values, None if stated is None else 16 << (stated & 7), path)
    entries, behind = stack([decode_record(*RECORDS.of(values, i)) for i in range(depth)])
    # What was not taken is passed by the fall-through between the records before and behind it.
    taken = [entry for entry in entries if entry.is_taken]
    return Decoded(
        event=EventInfo("ctr", _branch_sample_type(values)),
        machine="riscv64",
        details=_facts(values, depth),
        entries=[(entry.source, entry.target, entry.flags) for entry in taken],
        losses={
            "registers that are no control transfer records": others,
            "valid records behind an invalid one, which ends the stack": behind,
            "branches that were not taken, which no entry needs": len(entries) - len(taken),
            "cycle counts at their limit": sum(entry.is_saturated for entry in taken),
        },
    )


def _name_of(key: str) -> str | None:
    return key if key in (*_CONTROLS, "SCTRDEPTH", "SCTRSTATUS") else RECORDS.name_of(key)


def _control(values: Mapping[str, int]) -> int | None:
    """All bits of the control registers that are there; None without any."""
    words = [values[name] for name in _CONTROLS if name in values]
    return reduce(or_, words) if words else None


def _branch_sample_type(values: Mapping[str, int]) -> int | None:
    """PERF_SAMPLE_BRANCH_* bits of what was recorded; None without a control register."""
    control = _control(values)
    if control is None:
        return None
    names = {name for bit, _, name in _INHIBITS if not control >> bit & 1}
    names = {"any"} if not control & sum(1 << bit for bit, *_ in _INHIBITS) else names
    names |= {"call_stack"} if control & _RASEMU else set()
    names |= {"user"} if control & _U else set()
    names |= {"kernel"} if control & (_S | _M) else set()
    return sum(1 << BRANCH_FILTER_BITS[name] for name in names)


def _facts(values: Mapping[str, int], depth: int) -> dict[str, str]:
    """The buffer in words."""
    status = values.get("SCTRSTATUS")
    facts = {"recorder": "RISC-V CTR", "depth": str(depth), "filter": _filter(_control(values))}
    if status is not None:
        still = "yes: records may have been overwritten while they were read"
        facts["still recording"] = "no" if status & _FROZEN else still
    return facts


def _filter(control: int | None) -> str:
    if control is None:
        return "unknown"
    modes = [name for name, bit in (("U", _U), ("S", _S), ("M", _M)) if control & bit]
    words = [f"in {' and '.join(modes)} mode" if modes else "in no mode"]
    if control & _RASEMU:
        return f"calls that have not returned, {words[0]} (RAS emulation)"
    left_out = [kind for bit, kind, *_ in (*_INHIBITS, *_TRAP_INHIBITS) if control >> bit & 1]
    words += [f"without {', '.join(left_out)}"] if left_out else []
    words += ["traps to other modes"] if control & _EXTERNAL_TRAPS else []
    return "; ".join(words)


_PATCHES = "Linux: patches of 22 May 2025, drivers/perf/riscv_ctr.c"
_TESTS = "tests/sources/registers/test_ctr.py::"

QUIRKS = (
    Quirk(
        "compressed cycles",
        "RISC-V CTR, raw registers",
        "a mantissa of 12 bits and an exponent of 4; without CCV they are unknown",
        "unpacked, missing, or kept apart as saturated",
        "sources.registers.ctr.cycles_of",
        "RISC-V Instruction Set Manual, volume II, Smctr: Cycle Counting",
        _TESTS + "test_cycles_lose_only_the_bits_that_the_mantissa_has_no_place_for",
    ),
    Quirk(
        "records of branches that were not taken",
        "RISC-V CTR with NTBREN, raw registers",
        "ctrdata.TYPE is 4, and the target is the next instruction",
        "left out: the fall-through between its neighbours passes over it",
        "sources.registers.ctr.decode_record",
        "RISC-V Instruction Set Manual, volume II, Smctr: Transfer Type Filtering",
        _TESTS + "test_branches_that_were_not_taken_are_no_entries",
    ),
    Quirk(
        "system calls without a record",
        "RISC-V CTR, perf.data of user space",
        "traps to modes that are not recorded, and their returns, leave none (STE is not set)",
        "the fall-through passes over the ecall",
        "native.walk.step",
        _PATCHES + "; Smctr: Privilege Mode Transitions",
        _TESTS + "test_system_calls_leave_no_record_in_user_space",
    ),
    Quirk(
        "exceptions of one type",
        "RISC-V CTR, perf.data of user space and kernel",
        "page faults are of the type SYSCALL, like ecalls, and come back to where they came from",
        "two fall-throughs, of which both have the instruction that faulted",
        "native.walk.step",
        _PATCHES + ", ctr_perf_map",
        _TESTS + "test_an_exception_is_a_system_call_where_the_kernel_is_recorded_too",
    ),
    Quirk(
        "cycles where they are not valid",
        "RISC-V CTR, perf.data",
        "the patches pass on 16 bits of the cycles of records without CCV, and 0 for the others",
        "0 is missing; what is there is taken as it is, since nothing tells it",
        "model.branch_stacks.cycles_of",
        _PATCHES + ", ctr_get_cycles",
        _TESTS + "test_cycles_of_the_drivers_patches_are_those_that_may_be_wrong",
    ),
)

FORMAT = dump_format(
    "ctr-registers",
    "dumps of RISC-V's control transfer records, as text or JSON",
    (
        "RISC-V Instruction Set Manual, volume II, Smctr",
        "https://github.com/riscv/riscv-isa-manual/blob/main/src/smctr.adoc",
    ),
    shows=RECORDS.shown,
    decode=decoded,
    quirks=QUIRKS,
)
