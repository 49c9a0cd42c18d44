"""Intel's last-branch registers: their numbers, and what their bits say.

Numbers and bits are those of Linux (arch/x86/include/asm/msr-index.h; arch/x86/events/intel/lbr.c,
intel_pmu_lbr_read_64 and intel_pmu_store_lbr), which follow Intel SDM vol. 3, "Last Branch,
Interrupt, and Exception Recording" and "Last Branch Records".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum

from lbr2pgo.model.branch_stacks import (
    ABORT,
    BRANCH_FILTER_BITS,
    BRANCH_TYPES,
    CYCLES_MASK,
    CYCLES_SHIFT,
    IN_TRANSACTION,
    MISPREDICTED,
    PREDICTED,
    SATURATED,
    TYPE_SHIFT,
    cycle_flags,
)
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

IA32_DEBUGCTL, LBR_SELECT, LBR_TOS, PERF_CAPABILITIES = 0x1D9, 0x1C8, 0x1C9, 0x345
NETBURST_TOS, NETBURST_RING = 0x1DA, range(0x1DB, 0x1DF)
"""Of Pentium 4: models from 3 on have the first, and 16 entries from 0x680 and 0x6c0 on (Xen:
xen/arch/x86/include/asm/msr-index.h, MSR_P4_LASTBRANCH_*). P6 and AMD's have the last branch in the
ring's first two (Linux: msr-index.h, MSR_IA32_LASTBRANCHFROMIP)."""
ARCH_LBR_CTL, ARCH_LBR_DEPTH = 0x14CE, 0x14CF

DEBUGCTL_LBR, DEBUGCTL_FREEZE_ON_PMI = 1 << 0, 1 << 11
ARCH_LBR_ENABLE = 1 << 0


@dataclass(frozen=True, slots=True)
class Bank:
    """One generation of registers; register `i` of a kind has the number `kind + i`."""

    name: str
    source: int
    target: int
    info: int | None
    names: tuple[str, str, str]
    """Of a FROM, a TO and an INFO register, with `{}` for its index."""
    newest_first: bool
    """Register 0 holds the newest entry; otherwise the one that LBR_TOS tells."""
    depths: tuple[int, ...]
    has_select: bool = True
    """Whether a register filters by kind and privilege; without one all branches are recorded."""

    def has_info(self, depth: int) -> bool:
        """Whether rings of this depth have INFO registers: they came with 32 entries."""
        return self.info is not None and (self.newest_first or depth >= 32)


ARCHITECTURAL = Bank(
    "architectural LBR", 0x1500, 0x1600, 0x1200,
    ("IA32_LBR_{}_FROM_IP", "IA32_LBR_{}_TO_IP", "IA32_LBR_{}_INFO"),
    True, (8, 16, 24, 32, 40, 48, 56, 64),
)  # fmt: skip
MODEL_SPECIFIC = Bank(
    "LBR (Nehalem and later)", 0x680, 0x6C0, 0xDC0,
    ("MSR_LASTBRANCH_{}_FROM_IP", "MSR_LASTBRANCH_{}_TO_IP", "MSR_LBR_INFO_{}"),
    False, (4, 8, 16, 32),
)  # fmt: skip
CORE = Bank(
    "LBR (Core, Atom)", 0x40, 0x60, None,
    ("MSR_LBR_CORE_FROM_{}", "MSR_LBR_CORE_TO_{}", ""),
    False, (4, 8), has_select=False,
)  # fmt: skip
SILVERMONT = replace(CORE, name="LBR (Silvermont)", depths=(8,), has_select=True)
BANKS = (ARCHITECTURAL, MODEL_SPECIFIC, CORE)


@dataclass(frozen=True, slots=True)
class Model:
    """A ring before the architectural one, as the processors have it that it is called after."""

    bank: Bank
    depth: int
    numbers: tuple[int, ...] = ()
    """Of their models, family 6; of the latest none is listed."""
    has_call_stack: bool = False
    misses_calls: bool = False
    """Erratum: calls are recorded only where jumps are, and returns likewise."""


MODELS = {
    "core2": Model(CORE, 4, (0x0F, 0x16, 0x17, 0x1D)),
    "bonnell": Model(CORE, 8, (0x1C, 0x26, 0x27, 0x35, 0x36)),
    "silvermont": Model(SILVERMONT, 8, (0x37, 0x4A, 0x4C, 0x4D, 0x5A), misses_calls=True),
    "knl": Model(MODEL_SPECIFIC, 8, (0x57, 0x85)),
    "nehalem": Model(
        MODEL_SPECIFIC, 16, (0x1A, 0x1E, 0x1F, 0x2E, 0x25, 0x2C, 0x2F), misses_calls=True
    ),
    "sandybridge": Model(MODEL_SPECIFIC, 16, (0x2A, 0x2D, 0x3A, 0x3E)),
    "haswell": Model(
        MODEL_SPECIFIC, 16, (0x3C, 0x3F, 0x45, 0x46, 0x3D, 0x47, 0x4F, 0x56), has_call_stack=True
    ),
    "skylake": Model(MODEL_SPECIFIC, 32, has_call_stack=True),
}
"""By the first processor with such a ring (Linux: arch/x86/events/intel/lbr.c,
intel_pmu_lbr_init_core to _skl and nhm_, snb_ and hsw_lbr_sel_map; core.c, intel_pmu_init, says
what each model calls; arch/x86/include/asm/intel-family.h has the numbers)."""


def model_of(family: int | None, number: int | None) -> str | None:
    """What a processor's ring is called in MODELS; None where its number is not listed."""
    found = (name for name, model in MODELS.items() if family == 6 and number in model.numbers)
    return next(found, None)


def check_depth(bank: Bank, depth: int) -> None:
    """Raise InputError unless rings of this kind come with so many entries."""
    if depth not in bank.depths:
        raise InputError(
            f"an {bank.name} never has {depth} entries",
            cure=f"Choose from {', '.join(map(str, bank.depths))}.",
        )


_FIXED_NAMES = {
    "IA32_DEBUGCTL": IA32_DEBUGCTL, "MSR_IA32_DEBUGCTLMSR": IA32_DEBUGCTL,
    "MSR_DEBUGCTL": IA32_DEBUGCTL, "DEBUGCTL": IA32_DEBUGCTL,
    "MSR_LBR_SELECT": LBR_SELECT, "LBR_SELECT": LBR_SELECT,
    "MSR_LBR_TOS": LBR_TOS, "LBR_TOS": LBR_TOS, "MSR_LASTBRANCH_TOS": LBR_TOS,
    "IA32_PERF_CAPABILITIES": PERF_CAPABILITIES, "MSR_IA32_PERF_CAPABILITIES": PERF_CAPABILITIES,
    "IA32_LBR_CTL": ARCH_LBR_CTL, "MSR_ARCH_LBR_CTL": ARCH_LBR_CTL,
    "IA32_LBR_DEPTH": ARCH_LBR_DEPTH, "MSR_ARCH_LBR_DEPTH": ARCH_LBR_DEPTH,
    "MSR_IA32_LASTBRANCHFROMIP": NETBURST_RING[0], "LASTBRANCHFROMIP": NETBURST_RING[0],
    "MSR_IA32_LASTBRANCHTOIP": NETBURST_RING[1], "LASTBRANCHTOIP": NETBURST_RING[1],
}  # fmt: skip
_NUMBERED_NAMES = tuple(
    (re.compile(pattern), base)
    for pattern, base in (
        (r"IA32_LBR_(\d{1,4})_FROM_IP|MSR_ARCH_LBR_FROM_(\d{1,4})", ARCHITECTURAL.source),
        (r"IA32_LBR_(\d{1,4})_TO_IP|MSR_ARCH_LBR_TO_(\d{1,4})", ARCHITECTURAL.target),
        (r"IA32_LBR_(\d{1,4})_INFO|MSR_ARCH_LBR_INFO_(\d{1,4})", ARCHITECTURAL.info),
        (
            r"MSR_LASTBRANCH_(\d{1,4})_FROM_IP|(?:MSR_)?LBR_(?:NHM_)?FROM_?(\d{1,4})",
            MODEL_SPECIFIC.source,
        ),
        (
            r"MSR_LASTBRANCH_(\d{1,4})_TO_IP|(?:MSR_)?LBR_(?:NHM_)?TO_?(\d{1,4})",
            MODEL_SPECIFIC.target,
        ),
        (r"(?:MSR_)?LBR_INFO_?(\d{1,4})", MODEL_SPECIFIC.info),
        (r"MSR_(?:P4_)?LASTBRANCH_([0-3])", NETBURST_RING[0]),
        (r"MSR_LBR_CORE_FROM_?(\d{1,4})", CORE.source),
        (r"MSR_LBR_CORE_TO_?(\d{1,4})", CORE.target),
    )
)


def number_of(key: str) -> int | None:
    """Number of a register given by name or by `0x…`; None for a name that is not known."""
    if key.startswith("0x"):
        return int(key, 16)
    if key in _FIXED_NAMES:
        return _FIXED_NAMES[key]
    for pattern, base in _NUMBERED_NAMES:
        found = pattern.fullmatch(key)
        if found and base is not None:
            index = int(next(group for group in found.groups() if group))
            return base + index if index < 64 else None
    return None


class Format(IntEnum):
    """LBR format, bits 5:0 of IA32_PERF_CAPABILITIES (Linux: LBR_FORMAT_*)."""

    IP_32 = 0
    LINEAR = 1
    EFFECTIVE = 2
    FLAGS = 3
    FLAGS_TSX = 4
    INFO = 5
    CYCLES_IN_TO = 6
    INFO_NO_TSX = 7
    ARCHITECTURAL = 0x3F

    @property
    def has_predictions(self) -> bool:
        """Whether an entry says if its branch was mispredicted."""
        return self >= Format.FLAGS

    @property
    def has_cycles(self) -> bool:
        """Whether an entry says how many cycles its predecessor was ago."""
        return self >= Format.INFO


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded branch; `flags` as in `stacks`."""

    source: int
    target: int
    flags: int


# IA32_LBR_x_INFO bits 59:56, Linux: arch_lbr_br_type_map; others are far branches.
_ARCH_TYPES = ("COND", "IND", "UNCOND", "IND_CALL", "CALL", "RET")


def decode_entry(form: Format, source: int, target: int, info: int, sign_bit: int) -> Entry:
    """One entry from its registers; `info` is 0 where there is no such register."""
    address = sign_extend(source, sign_bit)
    if form in (Format.INFO, Format.INFO_NO_TSX, Format.ARCHITECTURAL):
        return Entry(address, sign_extend(target, sign_bit), _info_flags(form, info))
    flags = 0
    if form in (Format.FLAGS, Format.FLAGS_TSX, Format.CYCLES_IN_TO):
        flags = MISPREDICTED if source >> 63 else PREDICTED
    if form is Format.FLAGS_TSX:
        flags |= _transaction_flags(source)
    if form is Format.CYCLES_IN_TO:
        return Entry(address, sign_extend(target, 47), flags | target >> 48 << CYCLES_SHIFT)
    return Entry(address, sign_extend(target, sign_bit), flags)


def _info_flags(form: Format, info: int) -> int:
    flags = MISPREDICTED if info >> 63 else PREDICTED
    if form is not Format.INFO_NO_TSX:
        flags |= _transaction_flags(info)
    if form is not Format.ARCHITECTURAL:
        return flags | (info & CYCLES_MASK) << CYCLES_SHIFT
    if info >> 60 & 1:  # the cycle count is valid
        cycles = info & CYCLES_MASK
        flags |= cycle_flags(SATURATED if cycles == CYCLES_MASK else cycles)
    kind = info >> 56 & 0xF
    name = _ARCH_TYPES[kind] if kind < len(_ARCH_TYPES) else "UNKNOWN"
    return flags | BRANCH_TYPES.index(name) << TYPE_SHIFT


def _transaction_flags(word: int) -> int:
    return (IN_TRANSACTION if word >> 62 & 1 else 0) | (ABORT if word >> 61 & 1 else 0)


def sign_extend(value: int, bit: int) -> int:
    """The low bits up to and with `bit`, which is copied into all higher ones of 64."""
    low = value & ((1 << (bit + 1)) - 1)
    return low | ((1 << 64) - (1 << (bit + 1)) if low >> bit & 1 else 0)


def sign_bit_of(addresses: Sequence[int]) -> int:
    """47, or 56 if an address shows that the machine uses five-level paging.

    An address with bit 47 alone is one of the kernel's whose upper bits were cut off.
    """
    for address in addresses:
        upper, bit_47 = address >> 48 & 0x1FF, address >> 47 & 1
        if upper not in (0, 0x1FF) or (upper == 0x1FF and not bit_47):
            return 56
    return 47


_SELECT_KINDS = (
    (2, "conditional branches"), (3, "direct calls"), (4, "indirect calls"), (5, "returns"),
    (6, "indirect jumps"), (7, "direct jumps"), (8, "far branches (system calls, interrupts)"),
)  # fmt: skip
_CTL_KINDS = (
    (16, "conditional branches"), (17, "direct jumps"), (18, "indirect jumps"),
    (19, "direct calls"), (20, "indirect calls"), (21, "returns"), (22, "other branches"),
)  # fmt: skip
# The nearest name of perf's. It has none for direct jumps; `ind_jmp` says at least "some jumps".
_PERF_NAMES = {
    "conditional branches": "cond", "direct calls": "call", "indirect calls": "ind_call",
    "returns": "any_ret", "indirect jumps": "ind_jmp", "direct jumps": "ind_jmp",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LbrFilter:
    """What a ring records."""

    kinds: tuple[str, ...]
    suppressed: tuple[str, ...]
    user: bool
    kernel: bool
    call_stack: bool

    def words(self) -> str:
        """The filter as a sentence without its full stop."""
        levels = [name for name, on in (("user", self.user), ("kernel", self.kernel)) if on]
        where = " and ".join(levels) + " code" if levels else "no privilege level: nothing"
        kinds = "every kind of branch" if not self.suppressed else ", ".join(self.kinds) or "none"
        without = f"; not {', '.join(self.suppressed)}" if self.suppressed else ""
        mode = "; call-stack mode: returns remove their calls" if self.call_stack else ""
        return f"records {kinds} in {where}{without}{mode}"

    def branch_sample_type(self) -> int:
        """The same as PERF_SAMPLE_BRANCH_* bits."""
        names = [name for name, on in (("user", self.user), ("kernel", self.kernel)) if on]
        if self.call_stack:
            names.append("call_stack")
        elif all(kind in self.kinds for kind in _PERF_NAMES):
            names.append("any")  # far branches alone don't break the chain of user code
        else:
            names += [_PERF_NAMES[kind] for kind in self.kinds if kind in _PERF_NAMES]
        return sum(1 << bit for bit in {BRANCH_FILTER_BITS[name] for name in names})


def filter_of(registers: Mapping[int, int], bank: Bank) -> LbrFilter | None:
    """What LBR_SELECT or IA32_LBR_CTL says; None where the dump lacks it."""
    if bank is ARCHITECTURAL:
        word = registers.get(ARCH_LBR_CTL)
        return None if word is None else _ctl_filter(word)
    word = registers.get(LBR_SELECT)
    return None if word is None else _select_filter(word)


def _select_filter(word: int) -> LbrFilter:
    """LBR_SELECT: a set bit suppresses, except bit 9, which turns the call stack on."""
    return LbrFilter(
        kinds=tuple(name for bit, name in _SELECT_KINDS if not word >> bit & 1),
        suppressed=tuple(name for bit, name in _SELECT_KINDS if word >> bit & 1),
        user=not word & 2,
        kernel=not word & 1,
        call_stack=bool(word & 1 << 9),
    )


def _ctl_filter(word: int) -> LbrFilter:
    """IA32_LBR_CTL: a set bit records."""
    return LbrFilter(
        kinds=tuple(name for bit, name in _CTL_KINDS if word >> bit & 1),
        suppressed=tuple(name for bit, name in _CTL_KINDS if not word >> bit & 1),
        user=bool(word & 4),
        kernel=bool(word & 2),
        call_stack=bool(word & 8),
    )
