"""Dumps of Intel's last-branch registers, as a source of one sample.

The ring's newest entry is at LBR_TOS and older ones follow downwards, modulo the depth; the
architectural LBR keeps its newest entry in register 0. Registers that were never written are 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from lbr2pgo.model.quirks import Quirk
from lbr2pgo.sources.base import EventInfo
from lbr2pgo.sources.registers import intel_lbr as lbr
from lbr2pgo.sources.registers.dump_source import Decoded, dump_format, unique
from lbr2pgo.sources.registers.register_dump import Register
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class Ring:
    """A decoded ring."""

    bank: lbr.Bank
    form: lbr.Format
    depth: int
    entries: tuple[lbr.Entry, ...]
    """Newest first."""
    filter: lbr.LbrFilter | None
    """None where the dump doesn't hold the register that tells."""
    recording: bool | None
    """Whether the ring was still recording when it was read; None where the dump doesn't tell."""
    other_registers: int
    """How many registers of the dump are none of these."""


def decode(registers: Sequence[Register], path: str) -> Ring:
    """Decode a dump; InputError names the register that is missing, doubled or out of range."""
    values, ignored = unique(registers, lbr.number_of)
    bank = _bank(values, path)
    depth = _depth(values, bank, path)
    form = _format(values, bank, depth, path)
    order = _order(values, bank, depth, path)
    sign_bit = lbr.sign_bit_of([values[bank.source + i] for i in order])
    entries = [
        lbr.decode_entry(
            form, values[bank.source + i], values[bank.target + i], _info(values, bank, i), sign_bit
        )
        for i in order
    ]
    return Ring(
        bank=bank,
        form=form,
        depth=depth,
        entries=_written(entries),
        filter=lbr.filter_of(values, bank),
        recording=_recording(values, bank),
        other_registers=ignored + _count_others(values, bank, depth),
    )


def _bank(values: Mapping[int, int], path: str) -> lbr.Bank:
    if _is_netburst(values.keys()):
        raise InputError(
            "holds registers of NetBurst (Pentium 4), or the one branch that P6 and AMD's "
            "IA32_DEBUGCTL keep: neither is decoded",
            where=path,
            cure="Rings of Core, Atom and all later processors are, and AMD's LbrExtV2.",
        )
    for bank in lbr.BANKS:
        if bank.source in values:
            return bank
    names = ", ".join(f"{bank.names[0].format(0)} ({bank.source:#x})" for bank in lbr.BANKS)
    raise InputError(
        "holds no last-branch registers",
        where=path,
        cure=f"The first FROM register must be there, one of {names}.",
    )


def _is_netburst(numbers: Set[int]) -> bool:
    """Whether these are its own registers: later rings have another TOS, or none."""
    if lbr.NETBURST_TOS in numbers:
        return lbr.LBR_TOS not in numbers and lbr.ARCHITECTURAL.source not in numbers
    return lbr.NETBURST_RING[0] in numbers and not any(b.source in numbers for b in lbr.BANKS)


def _indices(values: Mapping[int, int], base: int, limit: int) -> list[int]:
    return [i for i in range(limit) if base + i in values]


def _depth(values: Mapping[int, int], bank: lbr.Bank, path: str) -> int:
    """How many entries the ring has; every one must be whole."""
    limit = max(bank.depths)
    kinds = [(bank.source, bank.names[0]), (bank.target, bank.names[1])]
    if bank.info is not None and _indices(values, bank.info, limit):
        kinds.append((bank.info, bank.names[2]))
    present = [_indices(values, base, limit) for base, _ in kinds]
    depth = _stated_depth(values, bank) or max(max(found, default=-1) for found in present) + 1
    for (base, name), found in zip(kinds, present, strict=True):
        missing = sorted(set(range(depth)) - set(found))
        if missing:
            raise InputError(
                f"{name.format(missing[0])} ({base + missing[0]:#x}) is missing: "
                f"the ring has {depth} entries",
                where=path,
                cure="Dump the FROM, TO and, if there are any, INFO registers of every entry.",
            )
    if depth not in bank.depths:
        raise InputError(
            f"{depth} entries are no depth of an {bank.name}: "
            f"{bank.names[0].format(depth)} ({bank.source + depth:#x}) may be missing",
            where=path,
            cure=f"Depths are {', '.join(map(str, bank.depths))}.",
        )
    return depth


def _stated_depth(values: Mapping[int, int], bank: lbr.Bank) -> int | None:
    stated = values.get(lbr.ARCH_LBR_DEPTH) if bank is lbr.ARCHITECTURAL else None
    return stated if stated in bank.depths else None


def _format(values: Mapping[int, int], bank: lbr.Bank, depth: int, path: str) -> lbr.Format:
    """From IA32_PERF_CAPABILITIES, or else from the registers that are there."""
    has_info = bank.info is not None and bank.info in values
    if bank is lbr.ARCHITECTURAL:
        return lbr.Format.ARCHITECTURAL if has_info else lbr.Format.LINEAR
    number = values.get(lbr.PERF_CAPABILITIES, 0) & 0x3F
    if number == 0:  # not read, or hidden by a hypervisor
        return lbr.Format.INFO if has_info else _shown_format(values, bank, depth)
    if number == lbr.Format.LINEAR and (bank, depth) == (lbr.MODEL_SPECIFIC, 8):
        return lbr.Format.FLAGS  # Linux: intel_pmu_lbr_init_knl, "does have MISPREDICT bit"
    if number not in lbr.Format.__members__.values():
        raise InputError(
            f"IA32_PERF_CAPABILITIES names LBR format {number}, which can't be decoded", where=path
        )
    form = lbr.Format(number)
    if form in (lbr.Format.INFO, lbr.Format.INFO_NO_TSX) and not has_info:
        raise InputError(
            f"{bank.names[2].format(0)} ({bank.info:#x}) is missing: LBR format {number} has "
            f"{depth} INFO registers",
            where=path,
        )
    return form


def _shown_format(values: Mapping[int, int], bank: lbr.Bank, depth: int) -> lbr.Format:
    """What the addresses show: bit 60 copies their sign in every format, bits 61 to 63 in some.

    Where one of these differs in any entry, it is a flag; where none ever does, nothing tells
    whether they are, and no prediction is known.
    """
    sources = [values[bank.source + i] for i in range(depth)]
    differ = [word >> 61 ^ 0b111 * (word >> 60 & 1) for word in sources]
    if any(bits & 0b011 for bits in differ):
        return lbr.Format.FLAGS_TSX
    return lbr.Format.FLAGS if any(differ) else lbr.Format.LINEAR


def _order(values: Mapping[int, int], bank: lbr.Bank, depth: int, path: str) -> list[int]:
    """Register indices, newest entry first."""
    if bank.newest_first:
        return list(range(depth))
    top = values.get(lbr.LBR_TOS)
    if top is None:
        raise InputError(
            f"LBR_TOS ({lbr.LBR_TOS:#x}) is missing: it tells which entry is the newest", where=path
        )
    if top >= depth:
        raise InputError(
            f"LBR_TOS ({lbr.LBR_TOS:#x}) is {top}, but the ring has {depth} entries",
            where=path,
            cure="Dump every entry of the ring, or correct LBR_TOS.",
        )
    return [(top - i) % depth for i in range(depth)]


def _info(values: Mapping[int, int], bank: lbr.Bank, i: int) -> int:
    return 0 if bank.info is None else values.get(bank.info + i, 0)


def _written(entries: Sequence[lbr.Entry]) -> tuple[lbr.Entry, ...]:
    """Without the oldest places, which nothing was written to yet."""
    used = [i for i, entry in enumerate(entries) if entry.source or entry.target]
    return tuple(entries[: used[-1] + 1]) if used else ()


def _recording(values: Mapping[int, int], bank: lbr.Bank) -> bool | None:
    number, bit = (
        (lbr.ARCH_LBR_CTL, lbr.ARCH_LBR_ENABLE)
        if bank is lbr.ARCHITECTURAL
        else (lbr.IA32_DEBUGCTL, lbr.DEBUGCTL_LBR)
    )
    word = values.get(number)
    return None if word is None else bool(word & bit)


def _count_others(values: Mapping[int, int], bank: lbr.Bank, depth: int) -> int:
    ours = {
        lbr.IA32_DEBUGCTL, lbr.LBR_SELECT, lbr.LBR_TOS, lbr.PERF_CAPABILITIES,
        lbr.ARCH_LBR_CTL, lbr.ARCH_LBR_DEPTH,
    }  # fmt: skip
    for base in (bank.source, bank.target, bank.info):
        if base is not None:
            ours.update(range(base, base + depth))
    return len(values.keys() - ours)


def decoded(registers: Sequence[Register], path: str) -> Decoded:
    """As `decode`, as a source's content."""
    ring = decode(registers, path)
    kept = ring.filter
    return Decoded(
        event=EventInfo("lbr", None if kept is None else kept.branch_sample_type()),
        machine="x86_64",
        details=facts(ring),
        entries=[(entry.source, entry.target, entry.flags) for entry in ring.entries],
        no_cycles=None if ring.form.has_cycles else _no_cycles(ring.bank, ring.depth),
        no_predictions=None if ring.form.has_predictions else _no_predictions(ring, registers),
        losses={"registers that are no last-branch registers": ring.other_registers},
    )


def facts(ring: Ring) -> dict[str, str]:
    """The ring in words."""
    recording = {True: "yes: entries may have been overwritten while they were read", False: "no"}
    return {
        "recorder": ring.bank.name,
        "depth": str(ring.depth),
        "filter": "unknown" if ring.filter is None else ring.filter.words(),
        "still recording": "unknown" if ring.recording is None else recording[ring.recording],
        "predictions": "recorded" if ring.form.has_predictions else _NO_PREDICTIONS,
    }


def _no_cycles(bank: lbr.Bank, depth: int) -> str:
    """Why a ring whose INFO registers were not dumped has none."""
    if bank.info is None or not bank.has_info(depth):
        return "LBRs of this processor have no cycles: Intel's have them from Skylake on."
    return (
        f"The dump has no cycles, for it lacks {bank.names[2].format(0)} ({bank.info:#x}) and "
        "those behind it, which hold them: dump these, too (lbr2pgo msr plan lists them)."
    )


def _no_predictions(ring: Ring, registers: Sequence[Register]) -> str:
    """Why a ring tells none, and what to dump."""
    if any(lbr.number_of(r.key) == lbr.PERF_CAPABILITIES and r.value & 0x3F for r in registers):
        return "LBRs of this processor do not say which branches were mispredicted."
    what = (
        f"IA32_PERF_CAPABILITIES ({lbr.PERF_CAPABILITIES:#x}), which says whether FROM holds that"
    )
    if ring.bank.has_info(ring.depth):
        what = f"{ring.bank.names[2].format(0)} ({ring.bank.info:#x}) and those behind it"
    return f"The dump does not say which branches were mispredicted: dump {what}, too."


_NO_PREDICTIONS = (
    "not known: no INFO register, and no IA32_PERF_CAPABILITIES that says that FROM holds them"
)


def _shows(keys: Sequence[str]) -> bool:
    """Recognise a dump by a FROM and a TO register, or as one that is refused by name."""
    numbers = {number for number in map(lbr.number_of, keys) if number is not None}
    return _is_netburst(numbers) or any(_shows_bank(bank, numbers) for bank in lbr.BANKS)


def _shows_bank(bank: lbr.Bank, numbers: Set[int]) -> bool:
    span = range(max(bank.depths))
    return (
        any(bank.source + i in numbers for i in span)
        and any(bank.target + i in numbers for i in span)
        and (bank is not lbr.CORE or lbr.LBR_TOS in numbers)  # its numbers could be anything's
    )


QUIRKS = (
    Quirk(
        "ring order and flags in addresses",
        "Intel, raw registers",
        "the newest entry is at LBR_TOS; bit 63 of FROM may be the misprediction",
        "decoded downwards from TOS, modulo the depth, and sign-extended",
        "sources.registers.intel_msr.decode",
        "Intel SDM vol. 3, Last Branch, Interrupt, and Exception Recording",
        "tests/sources/registers/test_intel_msr.py::test_the_ring_runs_downwards_from_tos",
    ),
)

FORMAT = dump_format(
    "intel-msr",
    "dumps of Intel's last-branch registers, as text or JSON",
    (
        "Intel SDM vol. 3, Last Branch, Interrupt, and Exception Recording; Last Branch Records",
        "https://github.com/torvalds/linux/blob/master/arch/x86/events/intel/lbr.c",
    ),
    shows=_shows,
    decode=decoded,
    quirks=QUIRKS,
)
