"""What the user asks of a recording, whichever recorder takes it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.support.errors import InputError
from lbr2pgo.support.output import refuse_overwriting

KIND_FILTERS = (
    "any", "any_call", "any_ret", "ind_call", "ind_jmp", "call", "cond",
    "abort_tx", "in_tx", "no_tx",
)  # fmt: skip
"""Which branches to keep: names of `perf record -j` (perf: Documentation/perf-record.txt)."""
PRIVILEGE_FILTERS = ("u", "k", "hv")
"""At which privilege level."""
EXTRA_FILTERS = ("save_type", "priv", "counter")
"""What to note of each branch besides its addresses."""
FILTERS = KIND_FILTERS + PRIVILEGE_FILTERS + EXTRA_FILTERS

DEPTHS = (4, 8, 16, 32, 64)
"""Ring sizes of the recorders that exist (Intel 4, 8, 16, 32; AMD 16; BRBE 8 to 64)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """One recording; checked on construction, so that no recorder sees a senseless one.

    Raises InputError for an unknown filter, an impossible period or depth, or an empty command, and
    OutputError if an output would be written over the program or over another one.
    """

    output: Path
    command: tuple[str, ...]
    """The program and its arguments."""
    period: int | None = None
    """Taken branches (or cycles, as the recorder must) between samples; None: its default."""
    filters: tuple[str, ...] = ()
    """Names out of `FILTERS`, joined by "or" as perf does; empty means every user branch."""
    depth: int | None = None
    """Entries a sample; None: what the hardware has, or 32 in the software LBR."""
    call_stack: bool = False
    """Keep the stack of open calls instead of the last branches."""
    call_graph: bool = False
    """Keep the call chain of each sample beside its last branches."""
    cycles: bool = False
    """Ask for cycle counts where the recorder has them."""
    emulate: bool = False
    """Use the software LBR even where hardware could record."""
    dry_run: bool = False
    """Say what would be done, do nothing."""
    exact: Path | None = None
    """Where the software LBR writes the exact counts of the run."""
    seed: int = 1
    """Of the software LBR's jitter."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.filters if name not in FILTERS]
        if unknown:
            raise InputError(
                f"unknown branch filter {unknown[0]!r}",
                cure=f"Choose from {', '.join(FILTERS)}.",
            )
        if self.period is not None and self.period < 1:
            raise InputError(
                f"a sampling period of {self.period} is impossible", cure="Give 1 or more."
            )
        if self.depth is not None and self.depth not in DEPTHS:
            raise InputError(
                f"no branch ring has {self.depth} entries",
                cure=f"Choose a depth of {', '.join(map(str, DEPTHS))}.",
            )
        if self.call_stack and set(self.filters) & set(KIND_FILTERS):
            raise InputError(
                "a call stack can't be filtered by kind of branch",
                cure="Leave out either --call-stack or the filter.",
            )
        if self.call_stack and self.call_graph:
            raise InputError(
                "the ring keeps either the open calls or the last branches",
                cure="Leave out --call-stack or --call-graph.",
            )
        if not self.command:
            raise InputError(
                "there is no command to record",
                cure="Write it behind the options: lbr2pgo record [options] -- program arguments.",
            )
        outputs = [path for path in (self.output, self.exact) if path is not None]
        program = shutil.which(self.command[0])
        refuse_overwriting(outputs, [] if program is None else [program])
