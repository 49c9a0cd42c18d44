"""The command line of QEMU with the branch-recording plugin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.model.branch_stacks import BRANCH_TYPES
from lbr2pgo.recorders.guest import EMULATED, Guest
from lbr2pgo.recorders.options import DEFAULT_DEPTH, KIND_FILTERS, RecordOptions

DEFAULT_PERIOD = 10007
"""Taken branches between samples; a prime, so that no loop keeps step with it."""
SLOWER = (
    "Emulated, the program takes 10 to 20 times as long: fewer rounds or a smaller input of the "
    "same kind give as good a profile, and --duration N ends it after N seconds."
)
"""What to expect; measured in docs/notes/software-lbr.md."""

_KINDS_OF = {
    "any": BRANCH_TYPES,
    "any_call": ("CALL", "IND_CALL", "COND_CALL", "SYSCALL"),
    "any_ret": ("RET", "COND_RET", "SYSRET", "ERET"),
    "ind_call": ("IND_CALL",),
    "ind_jmp": ("IND",),
    "call": ("CALL",),
    "cond": ("COND",),
    "abort_tx": (),
    "in_tx": (),
    "no_tx": (),
}
"""Which branch types a filter keeps; nothing runs in a transaction here."""
_MISSES_ARE_RARER = 100
_RESTRICTIONS = ("abort_tx", "in_tx", "no_tx")


def emulator_command(
    options: RecordOptions, guest: Guest, plugin: Path, directory: Path
) -> list[str]:
    """The command line that runs the guest with the plugin."""
    settings: dict[str, str | int] = {
        "file": str(plugin),
        "dir": str(directory),
        "machine": guest.architecture.elf_machine,
        "period": options.period or DEFAULT_PERIOD,
        "seed": options.seed,
        "depth": options.depth or DEFAULT_DEPTH,
        "filter": kinds_kept(options.filters),
        "callstack": int(options.call_stack),
        "callgraph": int(options.emulates_chains),
        "cycles": int(options.cycles),
        "exact": int(options.exact is not None),
        "halves": int(keeps_halves(options, guest)),
        "exec": 1,
    }
    if options.front_end is not None:
        settings |= options.front_end.plugin_options
        settings["misses"] = miss_period(options)
    if options.most_samples is not None:
        settings["most"] = options.most_samples
    if guest.sysroot:
        settings["sysroot"] = guest.sysroot
    plugin_option = ",".join(f"{k}={str(v).replace(',', ',,')}" for k, v in settings.items())
    return guest.command("-plugin", plugin_option)


def miss_period(options: RecordOptions) -> int:
    """Misses of the simulated instruction cache between samples: they are rarer than branches."""
    return max(1, (options.period or DEFAULT_PERIOD) // _MISSES_ARE_RARER)


def keeps_halves(options: RecordOptions, guest: Guest) -> bool:
    """Whether system calls are recorded, as BRBE does if the kernel's branches are asked for too.

    They are two entries then, one without a target and one without a source: the other ends lie
    where recording is prohibited (Linux: drivers/perf/arm_brbe.c).
    """
    return EMULATED[guest.architecture.name].has_half_records and "k" in options.filters


def kinds_kept(filters: Sequence[str]) -> int:
    """Bits of `stacks.BRANCH_TYPES` that the filters let into the ring."""
    kinds = [name for name in filters if name in KIND_FILTERS and name not in _RESTRICTIONS]
    restricted = {"abort_tx", "in_tx"} & set(filters) and "no_tx" not in filters
    if not kinds:
        kinds = [] if restricted else ["any"]
    names = {kind for name in kinds for kind in _KINDS_OF[name]} if not restricted else set()
    return sum(1 << BRANCH_TYPES.index(name) for name in names)
