"""Dumps of Arm's branch record registers BRBSRC<n>_EL1, BRBTGT<n>_EL1 and BRBINF<n>_EL1.

Record 0 is the newest; records from 32 on are those of the second bank. A record may know only
its source or only its target: the other end lay in a prohibited region and is 0 here, as in Linux.
Bits as in Arm ARM, "Branch Record Buffer Extension", and Linux arch/arm64/tools/sysreg; meaning
for perf as in drivers/perf/arm_brbe.c (v6.17).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lbr2pgo.model.branch_stacks import (
    ABORT,
    BRANCH_FILTER_BITS,
    IN_TRANSACTION,
    MISPREDICTED,
    MISSING,
    PREDICTED,
    PRIV_SHIFT,
    SATURATED,
    cycle_flags,
    type_flags,
)
from lbr2pgo.model.branch_stacks import cycles_of as branch_cycles
from lbr2pgo.model.quirks import ABORTED, Quirk
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.sources.registers.dump_source import (
    ONE_CORE,
    Decoded,
    RecordRegisters,
    dump_format,
    stack,
    unique,
)
from lbr2pgo.sources.registers.register_dump import Register
from lbr2pgo.support.dataclass import dataclass

RECORDS = RecordRegisters(
    ("BRBSRC", "BRBTGT", "BRBINF"), (8, 16, 32, 64), written=lambda name: f"{name}_EL1"
)

# BRBINF.VALID
_NONE, _TARGET_ONLY, _SOURCE_ONLY = 0, 1, 2

# BRBINF.TYPE as perf names them. Linux passes on those of code and calls that its own programs can
# make, the rest as IRQ or not at all (brbe_type_to_perf_type_map).
_TYPES = {
    0x00: "UNCOND", 0x01: "IND", 0x02: "CALL", 0x03: "IND_CALL", 0x05: "RET", 0x07: "ERET",
    0x08: "COND", 0x21: "ARM64_DEBUG_HALT", 0x22: "SYSCALL", 0x23: "ARM64_TRAP", 0x24: "SERROR",
    0x26: "ARM64_DEBUG_INST", 0x27: "ARM64_DEBUG_DATA", 0x2A: "FAULT_ALGN", 0x2B: "FAULT_INST",
    0x2C: "FAULT_DATA", 0x2E: "IRQ", 0x2F: "ARM64_FIQ", 0x30: "ARM64_TRAP_EL3",
    0x39: "ARM64_DEBUG_EXIT",
}  # fmt: skip
_COUNTER_BITS = 20
_LAST_PREDICTED_TYPE = 0x08
"""Types up to here are branches and ERET; the rest are exceptions, which nothing predicts."""

_USER, _KERNEL, _HYPERVISOR = 1, 2, 3  # PERF_BR_PRIV_*


@dataclass(frozen=True, slots=True)
class Record:
    """One branch record; `flags` as in `stacks`, an unknown end is 0."""

    source: int
    target: int
    flags: int
    level: int | None = None
    """Exception level of the target; None where that is not known."""

    @property
    def is_half(self) -> bool:
        """Whether one end lies in a prohibited region."""
        return not (self.source and self.target)

    @property
    def is_saturated(self) -> bool:
        """Whether the counter of cycles was at its end."""
        return branch_cycles(self.flags) == SATURATED


@dataclass(frozen=True, slots=True)
class RecordBuffer:
    """A decoded dump."""

    records: tuple[Record, ...]
    """Newest first, up to the first invalid one."""
    depth: int
    filter: BrbeFilter
    controls: Controls
    behind: int
    """Valid records behind the first invalid one, which are no neighbours of those before it."""
    beyond: int
    """Valid records beyond the depth that BRBIDR0_EL1 states."""
    not_read: tuple[str, ...]
    """Registers of BRBE of which nothing is told."""
    other_registers: int


def decode(registers: Sequence[Register], path: str) -> RecordBuffer:
    """Decode a dump; InputError names a register that is missing, doubled or out of range."""
    cure = f"{ONE_CORE} Records of the second bank are 32 to 63."
    values, others = unique(registers, _name_of, cure)
    stated = values.get("BRBIDR0", 0) & 0xFF
    depth = RECORDS.depth(values, stated if stated in RECORDS.depths else None, path)
    controls = _controls_of(values)
    # Linux: brbe_read_filtered_entries stops at an invalid one too
    records, behind = stack([decode_record(*RECORDS.of(values, i), controls) for i in range(depth)])
    infos = [values.get(f"BRBINF{i}", 0) for i in range(depth, max(RECORDS.depths))]
    return RecordBuffer(
        records=records,
        depth=depth,
        filter=_filter_of(values),
        controls=controls,
        behind=behind,
        beyond=sum(info & 3 != _NONE for info in infos),
        not_read=tuple(sorted(name for name in values if _is_unread(name))),
        other_registers=others,
    )


def _is_unread(name: str) -> bool:
    return RECORDS.name_of(name) is None and name not in _READ


def _name_of(key: str) -> str | None:
    """Name of a register of BRBE without _EL1; None for others."""
    name = key.removesuffix("_EL1")
    is_other = name.startswith("BRB") or name in _READ
    return RECORDS.name_of(name) or (name if is_other else None)


def decode_record(
    source: int, target: int, info: int, controls: Controls | None = None
) -> Record | None:
    """One record from its three registers, None if it is not valid."""
    valid = info & 3
    if valid == _NONE:
        return None
    controls = controls or Controls()
    flags = _type_flags(info) | (cycle_flags(cycles_of(info)) if controls.has_cycles else 0)
    if valid != _TARGET_ONLY and controls.has_predictions:
        flags |= _prediction_flags(info)
    level = None if valid == _SOURCE_ONLY else info >> 6 & 3
    if level is not None:
        flags |= controls.privileges[level] << PRIV_SHIFT
    flags |= IN_TRANSACTION if info >> 16 & 1 else 0
    # LASTFAILED: the transaction before this record was undone, which breaks the chain here.
    flags |= ABORT if info >> 17 & 1 else 0
    return Record(
        source=0 if valid == _TARGET_ONLY else source,
        target=0 if valid == _SOURCE_ONLY else target,
        flags=flags,
        level=level,
    )


def _type_flags(info: int) -> int:
    return type_flags(_TYPES.get(info >> 8 & 0x3F, "UNKNOWN"))


def _prediction_flags(info: int) -> int:
    """MPRED speaks of branches and ERET; for exceptions it is 0 and means nothing."""
    if info >> 8 & 0x3F > _LAST_PREDICTED_TYPE:
        return 0
    return MISPREDICTED if info >> 5 & 1 else PREDICTED


def cycles_of(info: int) -> int:
    """Cycles since the previous record, MISSING where they are unknown, or SATURATED.

    CC is a mantissa of 8 bits and an exponent of 6, CCU says that it is unknown. All ones say that
    the counter, which has 20 bits, was at its end (Arm ARM, BRBINF<n>_EL1.CC; BRBIDR0_EL1.CC).

    >>> [cycles_of(field << 32) for field in (0, 0x0C, 0x0180, 0x0911, 0x0CFF)]
    [0, 12, 384, 69888, 1046528]
    >>> cycles_of(1 << 46 | 0x0C << 32) == MISSING, cycles_of(0x3FFF << 32) == SATURATED
    (True, True)
    """
    if info >> 46 & 1:
        return MISSING
    mantissa, exponent = info >> 32 & 0xFF, info >> 40 & 0x3F
    cycles = mantissa if exponent == 0 else (mantissa | 0x100) << (exponent - 1)
    return cycles if cycles < 1 << _COUNTER_BITS else SATURATED


# BRBFCR_EL1: which branches, in words and as perf names them (it has no name for direct jumps,
# `ind_jmp` says at least "some jumps").
_FILTER_BITS = (
    (22, "conditional branches", "cond"), (21, "direct calls", "call"),
    (20, "indirect calls", "ind_call"), (19, "returns", "any_ret"),
    (18, "indirect branches", "ind_jmp"), (17, "direct branches", "ind_jmp"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BrbeFilter:
    """What the buffer recorded, as far as the dump tells."""

    words: str
    branch_sample_type: int | None
    """PERF_SAMPLE_BRANCH_* bits; None without BRBFCR_EL1."""


def _filter_of(values: Mapping[str, int]) -> BrbeFilter:
    """BRBFCR_EL1 and BRBCR_EL1 in words."""
    fcr = values.get("BRBFCR")
    words, names = [], []
    if fcr is not None:
        excludes = bool(fcr >> 16 & 1)  # EnI: the kinds that are set are left out
        kept = [row for row in _FILTER_BITS if bool(fcr >> row[0] & 1) != excludes]
        words.append(f"records {', '.join(kind for _, kind, _ in kept) or 'no branches'}")
        names = ["any"] if len(kept) == len(_FILTER_BITS) else [name for _, _, name in kept]
    if not _LEVEL_CONTROLS.isdisjoint(values):
        levels = _levels(values)
        words.append(f"at {' and '.join(levels) or 'no exception level'}")
        controls = [values[name] for name in _CONTROLS if name in values]
        words += [
            kind
            for bit, kind in ((23, "exceptions"), (22, "exception returns"))
            if any(word >> bit & 1 for word in controls)
        ]
        words += ["not in Secure state"] if _mdcr(values) == _NOT_SECURE else []
        names += [name for level, name in _PERF_LEVELS.items() if level in levels]
    bits = sum(1 << bit for bit in {BRANCH_FILTER_BITS[name] for name in names})
    return BrbeFilter("; ".join(words) or "unknown", None if fcr is None else bits)


# BRBCR_EL12 is BRBCR_EL1 as a host at EL2 sees it, which has BRBCR_EL2 under the name of BRBCR_EL1
# (Linux: drivers/perf/arm_brbe.c, brbe_enable).
_CONTROLS = ("BRBCR", "BRBCR_EL2", "BRBCR_EL12")
_LEVEL_CONTROLS = frozenset((*_CONTROLS, "MDCR_EL3"))
_READ = _LEVEL_CONTROLS | {"BRBFCR", "BRBIDR0", "HCR_EL2"}
"""What is read besides records."""
_PROHIBITED, _NOT_SECURE = 0, 1
"""Of MDCR_EL3.SBRBE."""
_TGE, _E2H = 27, 34
"""Of HCR_EL2: EL0 is the host's, and the host runs at EL2."""
_PERF_LEVELS = {"EL0": "user", "EL1": "kernel", "EL2": "kernel"}
_CC, _MPRED = 1 << 3, 1 << 4
_PAUSED, _LASTFAILED = 1 << 7, 1 << 6


@dataclass(frozen=True, slots=True)
class Controls:
    """What the control registers say of all records; without them nothing is held against them."""

    has_cycles: bool = True
    """BRBCR.CC of every exception level."""
    has_predictions: bool = True
    """BRBCR.MPRED of every exception level: without it that field of a record means nothing."""
    is_recording: bool | None = None
    """Whether records were still being written (BRBFCR.PAUSED); None where the dump doesn't say."""
    transaction_failed: bool = False
    """BRBFCR.LASTFAILED: a transaction failed behind the newest record."""
    privileges: tuple[int, ...] = (_USER, _KERNEL, _KERNEL, 0)
    """By exception level: at EL2 is the kernel unless HCR_EL2.E2H is 0, at EL3 none that perf
    knows."""


def _levels(values: Mapping[str, int]) -> list[str]:
    """Exception levels at which branches are recorded; all others are prohibited regions.

    As Arm ARM's BranchRecordAllowed; without HCR_EL2 either register may speak of EL0.
    """
    el1, el2 = values.get("BRBCR", 0), values.get("BRBCR_EL2", 0)
    hcr = values.get("HCR_EL2", 0)
    if "BRBCR_EL12" in values or (hcr >> _E2H & 1 and "BRBCR_EL2" not in values):
        el1, el2 = values.get("BRBCR_EL12", 0), el1 | el2
    user = el1 | el2
    if "HCR_EL2" in values:
        user = el2 if hcr >> _TGE & 1 else el1
    mdcr = values.get("MDCR_EL3", 0)
    allowed = {"EL0": user & 1, "EL1": el1 & 2, "EL2": el2 & 2}
    if _mdcr(values) == _PROHIBITED:
        allowed = {}
    allowed["EL3"] = (mdcr >> 38 ^ mdcr >> 37) & 1  # E3BREC, E3BREW
    return [level for level, bit in allowed.items() if bit]


def _mdcr(values: Mapping[str, int]) -> int | None:
    """MDCR_EL3.SBRBE; None where the dump doesn't hold it."""
    word = values.get("MDCR_EL3")
    return None if word is None else word >> 32 & 3


def _controls_of(values: Mapping[str, int]) -> Controls:
    words = [values[name] for name in _CONTROLS if name in values]
    fcr = values.get("BRBFCR")
    is_enabled = _LEVEL_CONTROLS.isdisjoint(values) or bool(_levels(values))
    is_host = bool(values.get("HCR_EL2", 1 << _E2H) >> _E2H & 1)
    return Controls(
        has_cycles=all(word & _CC for word in words),
        has_predictions=all(word & _MPRED for word in words),
        is_recording=None if fcr is None else is_enabled and not fcr & _PAUSED,
        transaction_failed=bool((fcr or 0) & _LASTFAILED),
        privileges=(_USER, _KERNEL, _KERNEL if is_host else _HYPERVISOR, 0),
    )


_NO_CYCLES = (
    "The records have no cycles, since the CC bit of BRBCR_EL1 or BRBCR_EL2 was 0: record again "
    "with that bit set (perf sets it unless the filter says no_cycles)."
)


_NO_PREDICTIONS = (
    "The records do not say which branches were mispredicted, since the MPRED bit of BRBCR_EL1 or "
    "BRBCR_EL2 was 0: record again with that bit set (perf sets it unless the filter says "
    "no_flags)."
)


def _facts(buffer: RecordBuffer) -> dict[str, str]:
    """The buffer in words."""
    controls = buffer.controls
    recording = {True: "yes: records may have been overwritten while they were read", False: "no"}
    halves = sum(record.is_half for record in buffer.records)
    facts = {
        "recorder": "Arm BRBE",
        "depth": str(buffer.depth),
        "filter": buffer.filter.words,
        "still recording": "unknown"
        if controls.is_recording is None
        else recording[controls.is_recording],
        "predictions": "recorded" if controls.has_predictions else "not recorded (BRBCR.MPRED)",
        "cycles": "recorded" if controls.has_cycles else "not recorded (BRBCR.CC)",
    }
    if halves:
        facts["prohibited regions"] = (
            f"{halves} {'records have' if halves > 1 else 'record has'} one end there"
        )
    if controls.transaction_failed:
        facts["pending"] = "a transaction failed behind the newest record: what ran there is undone"
    if buffer.not_read:
        facts["not read"] = ", ".join(f"{name}_EL1" for name in buffer.not_read)
    return facts


def decoded(registers: Sequence[Register], path: str) -> Decoded:
    """As `decode`, as a source's content."""
    buffer = decode(registers, path)
    return Decoded(
        event=EventInfo("brbe", buffer.filter.branch_sample_type),
        machine="aarch64",
        details=_facts(buffer),
        entries=[(record.source, record.target, record.flags) for record in buffer.records],
        no_cycles=None if buffer.controls.has_cycles else _NO_CYCLES,
        no_predictions=None if buffer.controls.has_predictions else _NO_PREDICTIONS,
        levels=[None if r.level is None else f"EL{r.level}" for r in buffer.records],
        losses={
            "registers that are no branch records": buffer.other_registers,
            "valid records behind an invalid one, which ends the stack": buffer.behind,
            "records beyond the depth that BRBIDR0_EL1 states": buffer.beyond,
            "cycle counts at their limit": sum(r.is_saturated for r in buffer.records),
            "records that were read while others were being written": len(buffer.records)
            if buffer.controls.is_recording
            else 0,
        },
    )


def _shows(keys: Sequence[str]) -> bool:
    """Recognise a dump by two kinds of record registers."""
    return RECORDS.shown(key.removesuffix("_EL1") for key in keys)


QUIRKS = (
    Quirk(
        "cycles unknown or at their limit",
        "Arm BRBE, raw registers",
        "CCU is set, or CC is all ones; counts have up to 20 bits, where perf's field has 16",
        "missing, or kept apart as saturated",
        "sources.registers.brbe.cycles_of",
        "Arm ARM, BRBINF<n>_EL1: CCU, CC; Linux: drivers/perf/arm_brbe.c, brbinf_get_cycles",
        "tests/sources/registers/test_brbe.py::test_cycles_are_mantissa_and_exponent",
    ),
    Quirk(
        "LASTFAILED",
        "Arm BRBE with TME, raw registers",
        "the transaction before this record failed; Linux warns and does not pass it on",
        "as an abort: no fall-through ends there",
        "sources.registers.brbe.decode_record",
        "Arm ARM, BRBINF<n>_EL1: LASTFAILED; Linux: drivers/perf/arm_brbe.c, "
        "perf_entry_from_brbe_regset",
        "tests/sources/registers/test_brbe.py::test_transactions",
        ABORTED,
    ),
)

FORMAT = dump_format(
    "brbe-registers",
    "dumps of Arm's branch record registers, as text or JSON",
    (
        "Arm Architecture Reference Manual, Branch Record Buffer Extension",
        "https://github.com/torvalds/linux/blob/master/drivers/perf/arm_brbe.c",
    ),
    shows=_shows,
    decode=decoded,
    quirks=QUIRKS,
)
