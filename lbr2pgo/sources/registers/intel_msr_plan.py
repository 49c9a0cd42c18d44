"""The register writes that would set up a recording of branches on an Intel core, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lbr2pgo.sources.registers import intel_lbr as lbr
from lbr2pgo.support.errors import InputError

TRAPS = (
    "A core that sleeps more deeply than C2 loses its ring: keep it busy, or forbid deep sleep "
    "(cpupower idle-set -D 2, or the boot option intel_idle.max_cstate=1).",
    "The ring goes on recording until something stops it, and whatever stops it branches too: "
    "only a performance-monitoring interrupt (with the freeze bit) or a fault handler stops it "
    "in time. Clearing the enable bit from a program keeps the branches of that program.",
)
"""What spoils such a recording (Intel SDM vol. 3, Last Branch Recording Stack)."""

# Bits that each filter of `perf record -j` records (Linux: snb_lbr_sel_map, arch_lbr_ctl_map).
_SELECT_BITS = {
    "any": 0x1FC, "cond": 1 << 2, "call": 1 << 3, "ind_call": 1 << 4, "ind_jmp": 1 << 6,
    "any_call": 1 << 3 | 1 << 4 | 1 << 8, "any_ret": 1 << 5 | 1 << 8,
}  # fmt: skip
# With the erratum (Linux: nhm_lbr_sel_map): calls and returns come with jumps, or not at all.
_JUMPS = 1 << 6 | 1 << 7
_BITS_WITH_JUMPS = {
    "any_call": _JUMPS, "any_ret": _JUMPS, "call": _JUMPS, "ind_call": 1 << 6,
}  # fmt: skip
_CTL_BITS = {
    "any": 0x7F << 16, "cond": 1 << 16, "call": 1 << 19, "ind_call": 1 << 20, "ind_jmp": 1 << 18,
    "any_call": 1 << 19 | 1 << 20 | 1 << 22, "any_ret": 1 << 21 | 1 << 22,
}  # fmt: skip
_WITH_JUMPS = "; jumps too, without which it misses calls and returns (erratum)"
FILTERS = tuple(_SELECT_BITS)
_LEVELS = ("u", "k")

_CALL_STACK_SELECT, _CALL_STACK_CTL = 1 << 3 | 1 << 4 | 1 << 5, 7 << 19  # calls and returns
_SELECT_MASK = 0x1FF


@dataclass(frozen=True, slots=True)
class Write:
    """One register write."""

    name: str
    number: int
    value: int
    why: str


@dataclass(frozen=True, slots=True)
class WantedBranches:
    """What to record."""

    kinds: tuple[str, ...] = ("any",)
    """Names out of `FILTERS`."""
    user: bool = True
    kernel: bool = False
    call_stack: bool = False


def wanted_of(filters: Sequence[str]) -> WantedBranches:
    """What `perf record -j` with these names asks for: every kind and user code if none says else.

    >>> wanted_of(("any_call", "u"))
    WantedBranches(kinds=('any_call',), user=True, kernel=False, call_stack=False)
    >>> wanted_of(("k",))
    WantedBranches(kinds=('any',), user=False, kernel=True, call_stack=False)
    """
    unknown = [name for name in filters if name not in FILTERS + _LEVELS]
    if unknown:
        raise InputError(
            f"the registers have no filter {unknown[0]!r}",
            cure=f"Choose from {', '.join(FILTERS)}, and {' and '.join(_LEVELS)} for the level.",
        )
    kinds = tuple(name for name in filters if name in FILTERS)
    return WantedBranches(
        kinds or ("any",), user="u" in filters or "k" not in filters, kernel="k" in filters
    )


def plan(model: lbr.Model, wanted: WantedBranches) -> tuple[Write, ...]:
    """The writes, in their order; InputError for what the registers can't do."""
    if not wanted.user and not wanted.kernel:
        raise InputError(
            "neither user nor kernel code is to be recorded", cure="Choose at least one."
        )
    lbr.check_depth(model.bank, model.depth)
    if model.bank is lbr.ARCHITECTURAL:
        return _architectural(model.depth, wanted)
    return _model_specific(model, wanted)


def _any_of(bits: Mapping[str, int], kinds: Sequence[str]) -> int:
    total = 0
    for kind in kinds:
        total |= bits.get(kind, 0)
    return total


def _model_specific(model: lbr.Model, wanted: WantedBranches) -> tuple[Write, ...]:
    bank, depth = model.bank, model.depth
    if not bank.has_select:
        _refuse_filters(bank, wanted)
    if wanted.call_stack and not model.has_call_stack:
        raise InputError(
            "this ring has no call-stack mode: it came with Haswell",
            cure="Leave out --call-stack: the ring keeps the last branches.",
        )
    kept = _CALL_STACK_SELECT if wanted.call_stack else _any_of(_SELECT_BITS, wanted.kinds)
    jumps = _any_of(_BITS_WITH_JUMPS, wanted.kinds) & ~kept if model.misses_calls else 0
    levels = (1 if wanted.kernel else 0) | (2 if wanted.user else 0)
    # Bits 8:0 suppress, so what is kept is what is not set; bit 9 alone turns something on.
    select = (_SELECT_MASK & ~(kept | jumps | levels)) | (1 << 9 if wanted.call_stack else 0)
    said = lbr.filter_of({lbr.LBR_SELECT: select}, bank)
    assert said is not None
    why = said.words() + (_WITH_JUMPS if jumps else "")
    bases = (bank.source, bank.target, bank.info)
    clear = tuple(
        Write(name.format(i), base + i, 0, "empty the ring")
        for i in range(depth)
        for name, base in zip(bank.names, bases, strict=True)
        if base is not None and (base != bank.info or bank.has_info(depth))
    )
    return (
        Write("IA32_DEBUGCTL", lbr.IA32_DEBUGCTL, 0, "bit 0 clear: stop while setting up"),
        *((Write("MSR_LBR_SELECT", lbr.LBR_SELECT, select, why),) * bank.has_select),
        *clear,
        Write("IA32_DEBUGCTL", lbr.IA32_DEBUGCTL, *_debugctl(wanted)),
    )


def _refuse_filters(bank: lbr.Bank, wanted: WantedBranches) -> None:
    """Rings without a filter record every branch, of the kernel too."""
    if wanted.call_stack or wanted.kinds != ("any",) or not (wanted.user and wanted.kernel):
        raise InputError(
            f"an {bank.name} has no filter: it records every branch, the kernel's too",
            cure="Ask for all of them: --kernel, without -j, --no-user and --call-stack.",
        )


def _debugctl(wanted: WantedBranches) -> tuple[int, str]:
    if wanted.call_stack:
        # Linux: lbr.c, __intel_pmu_lbr_enable.
        why = "bit 0: record; not bit 11: freezing would put a call stack's top out of step"
        return lbr.DEBUGCTL_LBR, why
    why = "bit 0: record; bit 11: freeze the ring at a performance-monitoring interrupt"
    return lbr.DEBUGCTL_LBR | lbr.DEBUGCTL_FREEZE_ON_PMI, why


def _architectural(depth: int, wanted: WantedBranches) -> tuple[Write, ...]:
    control = _CALL_STACK_CTL if wanted.call_stack else _any_of(_CTL_BITS, wanted.kinds)
    control |= (2 if wanted.kernel else 0) | (4 if wanted.user else 0)
    control |= 8 if wanted.call_stack else 0
    said = lbr.filter_of({lbr.ARCH_LBR_CTL: control}, lbr.ARCHITECTURAL)
    assert said is not None
    value, why = _debugctl(wanted)
    freeze = value & ~lbr.DEBUGCTL_LBR
    return (
        Write("IA32_LBR_CTL", lbr.ARCH_LBR_CTL, 0, "bit 0 clear: stop while setting up"),
        Write("IA32_LBR_DEPTH", lbr.ARCH_LBR_DEPTH, depth, "how many entries; empties the ring"),
        Write("IA32_DEBUGCTL", lbr.IA32_DEBUGCTL, freeze, why.partition("; ")[2]),
        Write(
            "IA32_LBR_CTL",
            lbr.ARCH_LBR_CTL,
            control | lbr.ARCH_LBR_ENABLE,
            f"bit 0: record; {said.words()}",
        ),
    )
