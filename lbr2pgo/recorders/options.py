"""What the user asks of a recording, whichever recorder takes it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from lbr2pgo.recorders.front_end import FrontEnd
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.output import is_standard_output, refuse_overwriting

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

Watch = Callable[[Callable[[], str]], AbstractContextManager[None]]
"""What is entered while a program runs; it may ask in words what was recorded so far."""

_ONE = "Give 1 or more."
_FOR_EVER = 1e9
"""Seconds that nobody waits; a larger number is no time (infinite, or not a number)."""

_FEWEST = 100
"""Samples that a process may be kept to."""
DEPTHS = (4, 8, 16, 32, 64)
"""Ring sizes of the recorders that exist (Intel 4, 8, 16, 32; AMD 16; BRBE 8 to 64)."""
DEFAULT_STARTUP = 10.0
"""Seconds that a start-up takes at most."""
DEFAULT_DEPTH = 32
"""Of the software LBR."""


@dataclass(frozen=True, slots=True)
class StartEnd:
    """The function at which a start-up ends."""

    function: str
    program: Path
    """That has it, without symbolic links."""
    address: int
    """Of its first instruction, as the file links it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordOptions:
    """One recording; checked on construction, so that no recorder sees a senseless one.

    Raises InputError for an unknown filter, an impossible period or depth, or where nothing says
    what is to be recorded, and OutputError if an output would be written over the program or over
    another one.
    """

    output: Path
    """`-` is standard output."""
    command: tuple[str, ...]
    """The program and its arguments."""
    period: int | None = None
    """Taken branches (or cycles, as the recorder must) between samples; None: its default."""
    most_samples: int | None = None
    """Of a process in the software LBR: the period doubles at so many; None: any number."""
    frequency: int | None = None
    """Samples a second, in place of a period: perf chooses the period anew all the time."""
    filters: tuple[str, ...] = ()
    """Names out of `FILTERS`, joined by "or" as perf does; empty means every user branch."""
    depth: int | None = None
    """Entries a sample; None: what the hardware has, or 32 in the software LBR."""
    call_stack: bool = False
    """Keep the stack of open calls instead of the last branches."""
    call_graph: bool | None = None
    """Keep the call chain of each sample beside its last branches; None: in the software LBR, where
    chains are exact and cost little."""
    cycles: bool = False
    """Ask for cycle counts where the recorder has them."""
    no_lbr: bool = False
    """Sample instructions, and no branches, with perf."""
    emulate: bool = False
    """Use the software LBR even where hardware could record."""
    input: Path | None = None
    """A file with the command's standard input, in place of our own."""
    dry_run: bool = False
    """Say what would be done, do nothing."""
    front_end: FrontEnd | None = None
    """What the software LBR simulates besides."""
    data: bool = False
    """Have the software LBR sample loads and stores, too."""
    exact: Path | None = None
    """Where the software LBR writes the exact counts of the run."""
    seed: int = 1
    """Of the software LBR's jitter."""
    pids: tuple[int, ...] = ()
    """Record these processes, which run already, and no command."""
    all_cpus: bool = False
    """Record whatever runs on this machine, and no command."""
    duration: float | None = None
    """Seconds after which the recording ends, and the command with it."""
    delay: float | None = None
    """Seconds to wait before recording begins."""
    startup: float | None = None
    """Record every branch of a command for so many seconds, in the software LBR."""
    until: StartEnd | None = None
    """End the start-up where this function is first entered."""
    reproducible: bool = False
    """Give the command a fixed environment and fixed random numbers, in the software LBR."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.filters if name not in FILTERS]
        if unknown:
            raise InputError(
                f"unknown branch filter {unknown[0]!r}",
                cure=f"Choose from {', '.join(FILTERS)}.",
            )
        self._check_rates()
        if self.most_samples is not None and self.most_samples < _FEWEST:
            raise InputError(
                f"{self.most_samples} samples tell too little", cure=f"Give {_FEWEST} or more."
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
        self._check_no_lbr()
        self._check_target()
        outputs = [path for path in (self.output, self.exact) if path is not None]
        program = shutil.which(self.command[0]) if self.command else None
        refuse_overwriting(outputs, [] if program is None else [program])

    @property
    def needs_branches(self) -> bool:
        """Whether anything is asked for that samples of instructions can't have."""
        return bool(self.filters or self.depth or self.call_stack or self.call_graph)

    @property
    def needs_emulation(self) -> bool:
        """Whether only the software LBR is to record, or can do what is asked."""
        own = self.exact, self.front_end, self.most_samples
        is_own = self.emulate or self.reproducible or self.data
        return is_own or any(each is not None for each in own)

    @property
    def emulates_chains(self) -> bool:
        """Whether the software LBR keeps call chains beside last branches."""
        return not self.call_stack if self.call_graph is None else self.call_graph

    @property
    def is_attached(self) -> bool:
        """Whether what is recorded runs already."""
        return bool(self.pids) or self.all_cpus

    @property
    def is_startup(self) -> bool:
        """Whether every branch of a start is to be recorded."""
        return self.startup is not None or self.until is not None

    def settled(self) -> RecordOptions:
        """The same, with what a start-up and a reproducible recording stand for."""
        if self.reproducible and self.exact is None and not is_standard_output(self.output):
            return replace(self, exact=Path(f"{self.output}.exact")).settled()
        if not self.is_startup:
            return self
        depth = self.depth or DEFAULT_DEPTH
        return replace(
            self, startup=None, emulate=True,
            period=self.period or depth - depth // 8,  # from which jitter takes or adds an eighth
            duration=self.duration or self.startup or DEFAULT_STARTUP,
        )  # fmt: skip

    def _check_rates(self) -> None:
        for name, value in (("period", self.period), ("frequency", self.frequency)):
            if value is not None and value < 1:
                raise InputError(f"a sampling {name} of {value} is impossible", cure=_ONE)
        if self.period is not None and self.frequency is not None:
            raise InputError(
                "samples come either by a period or by a frequency", cure="Leave out -c or -F."
            )
        if self.duration is not None and not 0 < self.duration < _FOR_EVER:
            raise InputError(f"nothing can be recorded for {self.duration:g} seconds", cure=_ONE)
        if self.startup is not None and not 0 < self.startup < _FOR_EVER:
            raise InputError(f"no program starts for {self.startup:g} seconds", cure=_ONE)
        if self.delay is not None and not 0 <= self.delay < _FOR_EVER:
            raise InputError(f"nobody can wait {self.delay:g} seconds", cure="Give 0 or more.")

    def _check_no_lbr(self) -> None:
        if self.no_lbr and (self.needs_branches or self.needs_emulation):
            raise InputError(
                "samples of instructions have no branches, and perf alone takes them",
                cure="Leave out --no-lbr, or filters, depths, call stacks, --emulate, --exact and "
                "--model.",
            )

    def _check_target(self) -> None:
        wanted = [
            name
            for name, is_wanted in (
                ("a command", self.command), ("processes (-p)", self.pids),
                ("all processors (-a)", self.all_cpus),
            ) if is_wanted
        ]  # fmt: skip
        if not wanted:
            raise InputError(
                "there is no command to record",
                cure="Write it behind the options: lbr2pgo record [options] -- program arguments.",
            )
        if len(wanted) > 1:
            raise InputError(
                f"one recording can't be of {' and of '.join(wanted)}",
                cure="Leave out one; --duration says how long to record what runs already.",
            )
        if self.is_attached and (self.is_startup or self.reproducible):
            option = "--startup" if self.is_startup else "--reproducible"
            raise InputError(
                "what runs already has started",
                cure=f"Leave out {option}, or give the command: lbr2pgo record {option} -- CMD.",
            )
        if any(pid < 1 for pid in self.pids):
            raise InputError(f"there is no process {min(self.pids)}", cure="Give its number.")
