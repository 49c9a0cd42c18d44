"""What every source format offers, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from lbr2pgo.model.address_space_events import SpaceEvent
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS, BranchStacks
from lbr2pgo.model.instruction_counts import InstructionCounts
from lbr2pgo.model.line_branches import LineBranches
from lbr2pgo.model.perf_abi import SIMULATED_CPU
from lbr2pgo.model.quirks import Quirk
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.support.addresses import ImageAddress
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    from lbr2pgo.model.count_sums import Weight


class Sniff(Enum):
    """Answer to "is this head of a file of your format?"."""

    YES = "yes"
    NO = "no"
    MORE = "more"  # the head is too short to tell


class Addresses(Enum):
    """Which kind of address a source's entries hold."""

    RUNTIME = "run-time"  # to be translated through the source's mappings
    IMAGE = "image"  # as the ELF file links them


@dataclass(frozen=True, slots=True)
class EventInfo:
    """One recorded event."""

    name: str
    branch_sample_type: int | None = None
    """PERF_SAMPLE_BRANCH_* bits (`stacks.BRANCH_FILTER_BITS`); None where the input is silent."""
    records_single_branches: bool = False
    """Entries of one sample are no neighbours in time (Arm SPE samples instructions one by one)."""
    precise_ip: int | None = None
    """How far from the event the interrupted instruction may be: 0 any distance, 1 a constant one,
    2 asked to be none, 3 none (perf_event_open(2)); None where the input is silent."""
    period: int | None = None
    """Events between samples; None where the input is silent, or a frequency was asked for."""


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What a profile says of itself before its samples are read."""

    path: str
    format: str
    addresses: Addresses = Addresses.RUNTIME
    events: tuple[EventInfo, ...] = ()
    build_ids: Mapping[str, str] = field(default_factory=dict)
    """Lower-case hex build-id by path, from the file's header."""
    machine: str | None = None
    """As `uname -m` says it, of the recording machine."""
    has_call_chains: bool = False
    """Samples hold a call stack beside the branch stack; `ip` is its innermost frame."""
    first_time: int | None = None
    """When its first sample was taken, in nanoseconds; None where the header is silent."""
    has_times: bool = False
    """Samples say when they were taken; else only their order may be known."""
    no_cycles: str | None = None
    """Why no entry can have cycles, and what to do: a sentence; None where that is not known."""
    no_predictions: str | None = None
    """Why none says how it was predicted, likewise."""
    advice: str | None = None
    """What would tell more: a sentence."""
    programs: tuple[str, ...] | None = None
    """Paths of what was started; None where that is what each process mapped first."""
    is_exact: bool = False
    """Every branch of a run is counted: no number is chance."""
    details: Mapping[str, str] = field(default_factory=dict)
    """Other header facts worth showing (hostname, perf version, command line, `simulated`…)."""

    @property
    def wants_contexts(self) -> bool:
        """Whether somebody asked for its call stacks: the software LBR keeps some for reports.

        The same call chains are recorded then, with the same attributes of the event: who asked is
        in the recorder's command line alone.
        """
        options, _, _ = self.details.get("command", "").partition(" -- ")
        is_asked = self.details.get("cpuid") != SIMULATED_CPU or "--call-graph" in options.split()
        return self.has_call_chains and is_asked


_SINGLE_BRANCH_RECORDERS = ("arm_spe",)
"""How the names of events of such recorders begin (perf: tools/perf/util/arm-spe.h)."""


def with_recorder(events: Sequence[EventInfo]) -> tuple[EventInfo, ...]:
    """Events that also know whether their file's recorder samples single branches.

    perf inject names what it makes of SPE data `branch` and the like, and keeps the trace's own
    event beside these; events with a branch filter of their own are another recorder's.

    >>> both = with_recorder([EventInfo("arm_spe_0//"), EventInfo("branch"), EventInfo("c", 9)])
    >>> [event.records_single_branches for event in both]
    [True, True, False]
    """
    if not any(event.name.startswith(_SINGLE_BRANCH_RECORDERS) for event in events):
        return tuple(events)
    return tuple(replace(e, records_single_branches=not _has_filter(e)) for e in events)


def _has_filter(event: EventInfo) -> bool:
    """Whether the kernel was asked for branches; perf inject sets no more than HW_INDEX."""
    return bool((event.branch_sample_type or 0) & ~(1 << BRANCH_FILTER_BITS["hw_index"]))


SymbolResolver = Callable[[str], ImageAddress | None]
"""Image address of a symbol by name; None if there is no such symbol."""


class Told(Protocol):
    """What every source tells of itself."""

    @property
    def info(self) -> SourceInfo:
        """Facts from the file's header."""

    def health(self) -> Mapping[str, int]:
        """What the last whole reading lost or skipped: a reason in words, and how many.

        Reasons that are a `Doubt` are damage.
        """


class ShownShortly:
    """A source that shows itself in a line."""

    __slots__ = ()

    def __repr__(self: Told) -> str:
        return f"<{self.info.format}: {self.info.path}>"


@runtime_checkable
class StackSource(Told, Protocol):
    """A file of samples with branch stacks; may be read any number of times."""

    def space_events(self) -> Sequence[SpaceEvent]:
        """All address-space events, ordered by time (file order where times are equal)."""

    def batches(self, resolve: SymbolResolver | None = None) -> Iterable[BranchStacks]:
        """Give every sample once, in file order; each time anew when gone through again.

        `resolve` serves inputs that hold symbols instead of addresses.
        """


@runtime_checkable
class SizedSource(Protocol):
    """A source that knows how far its batches have come."""

    @property
    def share_read(self) -> float:
        """How much of its file the latest batches have gone over, from 0 to 1."""


@runtime_checkable
class CountSource(Told, Protocol):
    """A file that holds counts already."""

    def counts(self, layout: ImageLayout) -> BranchCounts:
        """The counts of the image with this layout, in image addresses."""


@runtime_checkable
class InstructionSource(Told, Protocol):
    """A file that holds counts already, of samples by their instruction too."""

    def instruction_counts(self, layout: ImageLayout) -> InstructionCounts:
        """The samples in the image with this layout, in image addresses."""


@runtime_checkable
class BuildSource(CountSource, Protocol):
    """A file of counts that says itself of which builds they are."""

    def builds(self) -> Iterator[tuple[BranchCounts, Weight]]:
        """Counts of each build, in image addresses, and what they weigh beside other files'.

        A build may come several times.
        """


@runtime_checkable
class LineSource(Told, Protocol):
    """A file that knows branches by source line, and no addresses: for reports alone."""

    def line_branches(self) -> LineBranches:
        """All branches of the file."""


Source = StackSource | CountSource | LineSource


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """One readable format; `sources.formats` lists them all."""

    name: str
    summary: str
    references: tuple[str, ...]
    sniff: Callable[[bytes], Sniff]
    """Judges the head of a file (up to `SNIFF_SIZE` bytes) by its content alone."""
    open: Callable[[Path], Source]
    """Opens a file that `sniff` recognised; raises InputError where it is broken."""
    has_addresses: bool = True
    """Whether it opens as anything else than a `LineSource`."""
    quirks: tuple[Quirk, ...] = ()
    """What its recorder does that no other format shows."""


SNIFF_SIZE = 1 << 16

_ZIP_MAGIC, _ZIP_NAME_AT = b"PK\x03\x04", 30


def sniff_arrays(head: bytes, first: str) -> Sniff:
    r"""Whether the head is that of a `.npz` whose first array is called so.

    >>> sniff_arrays(b"PK\x03\x04" + bytes(26) + b"weights.npy", "weights")
    <Sniff.YES: 'yes'>
    """
    if not _ZIP_MAGIC.startswith(head[:4]):
        return Sniff.NO
    wanted = f"{first}.npy".encode()
    name = head[_ZIP_NAME_AT : _ZIP_NAME_AT + len(wanted)]
    if name == wanted:
        return Sniff.YES
    return Sniff.MORE if wanted.startswith(name) else Sniff.NO
