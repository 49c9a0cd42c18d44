"""The command line of QEMU with the branch-recording plugin."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lbr2pgo.model.branch_stacks import BRANCH_TYPES
from lbr2pgo.recorders.guest import EMULATED, Guest
from lbr2pgo.recorders.options import DEFAULT_DEPTH, KIND_FILTERS, RecordOptions

DEFAULT_PERIOD = 10007
"""Taken branches between samples; a prime, so that no loop keeps step with it."""
FIXED_ENVIRONMENT = {
    "HOME": "/", "LC_ALL": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "TZ": "UTC",
}  # fmt: skip
"""Of reproducible recordings; `-- env NAME=VALUE CMD` adds to it."""
_PADDING, _LONGEST_PATHS = "LBR2PGO_PADDING", 4096
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
_ACCESSES_ARE_MORE = 32
"""Most programs make three to six of them for each taken branch, and one tells of one place."""
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
        "alike": int(options.reproducible),
    }
    if options.front_end is not None:
        settings |= options.front_end.plugin_options
        settings["misses"] = miss_period(options)
    if options.data:
        settings["accesses"] = access_period(options)
    if options.most_samples is not None:
        settings["most"] = options.most_samples
    if options.until is not None:
        settings |= {"until": options.until.address, "untilin": str(options.until.program)}
    if guest.sysroot:
        settings["sysroot"] = guest.sysroot
    plugin_option = ",".join(f"{k}={str(v).replace(',', ',,')}" for k, v in settings.items())
    seed = ("-seed", str(options.seed)) if options.reproducible else ()
    return guest.command(*seed, "-plugin", plugin_option)


def environment_of(
    options: RecordOptions, guest: Guest, environment: Mapping[str, str]
) -> Mapping[str, str]:
    """What the guest gets: what its caller has, or what is the same everywhere.

    Its path stands on the stack, beside the environment, which makes up for its length: so stacks
    begin at one address.
    """
    if not options.reproducible:
        return environment
    padding = -len(os.fsencode(guest.path) + os.fsencode(guest.arguments[0])) % _LONGEST_PATHS
    return {**FIXED_ENVIRONMENT, _PADDING: padding * "."}


def miss_period(options: RecordOptions) -> int:
    """Misses of the simulated instruction cache between samples: they are rarer than branches."""
    return max(1, (options.period or DEFAULT_PERIOD) // _MISSES_ARE_RARER)


def access_period(options: RecordOptions) -> int:
    """Loads and stores between samples of them: of a start-up's, each is one."""
    return max(1, (options.period or DEFAULT_PERIOD) // _ACCESSES_ARE_MORE)


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
