"""From branch stacks to `BranchCounts`.

A stack of four entries, newest first, in a program loaded where it was linked::

    e0  120 -> 200      e1  130 -> 100      e2  210 -> 120      e3  180 -> 200

The fall-throughs between neighbours run from the older one's target to the newer one's source:
100…120, 120…130, 200…210. The newest entry's own is still running, so its end is unknown:

>>> import numpy as np
>>> from lbr2pgo.counting.address_spaces import AddressSpaces
>>> from lbr2pgo.program.elf.layout import ImageLayout, Segment
>>> from lbr2pgo.model.branch_stacks import from_lists
>>> from lbr2pgo.counting.trace_table import TraceTable
>>> layout = ImageLayout("a.out", None, "x86-64", False, (Segment(0, 0, 4096, 4096, True),))
>>> stack = [(0x120, 0x200, 2), (0x130, 0x100, 2), (0x210, 0x120, 1), (0x180, 0x200, 2)]
>>> table = TraceTable(AddressSpaces.fixed(layout))
>>> table.add(from_lists([stack]), np.zeros(1, np.int64), np.zeros(1, np.uint8))
>>> counts, outside = table.counts()
>>> for row in counts.rows():
...     print(row)
0x120 -> 0x200, end unknown: 1, mispredicted 0
0x130 -> 0x100, straight on to 0x120: 1, mispredicted 0
0x180 -> 0x200, straight on to 0x210: 1, mispredicted 0
0x210 -> 0x120, straight on to 0x130: 1, mispredicted 1
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import field, replace
from functools import cached_property, partial
from typing import Generic, TypeVar

import numpy as np

from lbr2pgo.counting._selection import (
    NO_STACK,
    NOT_CHOSEN,
    NOT_MAPPED,
    OTHER_EVENT,
    OTHER_PROCESS,
    READ,
    count_entries,
    select,
)
from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.bias import Correction, Ends, Weigher, correction, ends_of
from lbr2pgo.counting.borders import Borders, merge
from lbr2pgo.counting.chosen_samples import Chooser, SampleChoice
from lbr2pgo.counting.find_image import ImageMatch
from lbr2pgo.counting.many_images import add_to_all
from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.counting.place import ImageFacts, place_images
from lbr2pgo.counting.system_calls import are_recorded_behind, at_their_instructions
from lbr2pgo.counting.trace_table import TraceTable
from lbr2pgo.model import waterfall
from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS, BranchStacks
from lbr2pgo.model.perf_abi import FETCH_MISSES
from lbr2pgo.model.quirks import LOSSES
from lbr2pgo.model.space_event_log import of_code
from lbr2pgo.native.walk import Reason, StackKind
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.base import (
    EventInfo,
    LineSource,
    SizedSource,
    Source,
    StackSource,
    SymbolResolver,
)
from lbr2pgo.support import headway
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.read_ahead import read_ahead
from lbr2pgo.support.resembling import did_you_mean
from lbr2pgo.support.sums import LIMIT, TooManyError, exact_sum
from lbr2pgo.support.threads import distribute, threads

C = TypeVar("C")

_TYPE_FILTERS = ("any_call", "any_ret", "ind_call", "cond", "ind_jmp", "call")
_TRANSACTION_FILTERS = ("abort_tx", "in_tx", "no_tx")

_NOWHERE = np.uint64(np.iinfo(np.uint64).max)
"""No code is ever there."""
FULL = 32
"""Entries of the stacks of Skylake."""
_DEEPEST = 1 << 16
"""No stack has more entries: a record of perf has fewer bytes."""


@dataclass(frozen=True, slots=True)
class CountingOptions:
    """Which samples to count."""

    event: str | None = None
    """Only samples of the event with this name."""
    choice: SampleChoice = SampleChoice()
    """Only these samples."""
    build_id: str | None = None
    """Build-id under which the recording knows the binary, if not the binary's own."""
    drop_newest: int = 0
    """So many of each stack's newest entries are left out."""
    drop_oldest: int = 0
    corrects_bias: bool = False
    """Where a recorder prefers some branches for the ends of its stacks, these ends are left out,
    and where it prefers some moments, stacks are weighed (`bias`): then they are counted anew."""

    def __post_init__(self) -> None:
        for dropped in (self.drop_newest, self.drop_oldest):
            if not 0 <= dropped <= _DEEPEST:
                raise InputError(
                    f"{dropped} entries of each stack can't be left out",
                    cure=f"Leave out 0 to {_DEEPEST:,}.",
                )


@dataclass(frozen=True, slots=True)
class Counted(Generic[C]):
    """What was counted, `BranchCounts` or others, and how the binary was recognised."""

    counts: C
    match: ImageMatch | None
    """None for inputs that were counts already."""
    beside: tuple[ImageMatch, ...] = ()
    """How other images of the process were recognised."""
    borders: Borders = field(default_factory=lambda: merge(()))
    """Where branches that leave the image went, and where those that reach it came from."""
    correction: Correction | None = None
    """What is done against a bias, in the next reading if that was not known; None where nobody
    asked."""
    reading: SampleReading | None = None
    """Which counted, for another one to go on from."""

    @property
    def is_biased(self) -> bool:
        """Whether something is."""
        return self.correction is not None and self.correction.is_any


Progress = Callable[[int, float | None], None]
"""Called with the number of samples read since the last call, and with the share of the input that
is read now, from 0 to 1, or None where nobody can tell."""


def _has(filters: int, names: Sequence[str]) -> bool:
    return any(filters >> BRANCH_FILTER_BITS[name] & 1 for name in names)


def filter_names(event: EventInfo) -> tuple[str, ...]:
    """What an event's branch filter asked for, as `perf record -j` calls it."""
    filters = event.branch_sample_type or 0
    return tuple(name for name, bit in BRANCH_FILTER_BITS.items() if filters >> bit & 1)


def kind_of_stacks(event: EventInfo) -> StackKind:
    """What the entries of an event's stacks are to each other, by its branch filter.

    With a filter by branch type they are not neighbours in time, so only the branches themselves
    count; in call-stack mode not even these do. A filter by privilege keeps neighbours. Recorders
    of single branches have none either.
    """
    filters = event.branch_sample_type
    if event.records_single_branches:
        return StackKind.SELECTED
    if filters is None:
        return StackKind.CONSECUTIVE
    if _has(filters, ("call_stack",)):
        return StackKind.OPEN_CALLS
    is_any = _has(filters, ("any",))
    if _has(filters, _TRANSACTION_FILTERS) or (not is_any and _has(filters, _TYPE_FILTERS)):
        return StackKind.SELECTED
    return StackKind.CONSECUTIVE


def _silent_kind(events: Sequence[EventInfo]) -> StackKind:
    """The kind of stacks whose samples don't say their event."""
    is_single = bool(events) and all(event.records_single_branches for event in events)
    return StackKind.SELECTED if is_single else StackKind.CONSECUTIVE


def _kinds(events: Sequence[EventInfo], *, as_llvm: bool) -> U8:
    """The kind of each event's stacks, and behind them that of samples that don't say theirs."""
    kinds = [*map(kind_of_stacks, events), _silent_kind(events)]
    return np.array([StackKind.AS_LLVM] * len(kinds) if as_llvm else kinds, dtype=np.uint8)


@dataclass(slots=True)
class _SampleTally:
    """How many samples reached each step, and why the others did not."""

    read: int = 0
    other_event: int = 0
    other_process: int = 0
    not_chosen: int = 0
    no_stack: int = 0
    """Or no address, where samples are counted by their instruction."""
    not_mapped: int = 0
    in_prologue: int = 0
    weighed: int | None = None
    """After weights against bias; None where there are none."""
    branches: int = 0
    dropped: int = 0
    most: int = 0
    """No sum over the samples so far, or over their entries, is larger."""

    def expect(self, batch: BranchStacks, where: str) -> None:
        """Raise TooManyError before sums over a batch could wrap around."""
        longest = int(np.diff(batch.offsets).max(initial=0))
        self.most += exact_sum(batch.weight) * (longest + 1)
        if self.most >= LIMIT:
            raise TooManyError(where)

    def weigh(self, weight: U64) -> None:
        """Count samples with their weights against bias."""
        self.weighed = (self.weighed or 0) + int(weight.sum())

    def count_samples(self, steps: U64) -> None:
        """Count what `select` says of a batch."""
        self.read += int(steps[READ])
        self.other_event += int(steps[OTHER_EVENT])
        self.other_process += int(steps[OTHER_PROCESS])
        self.not_chosen += int(steps[NOT_CHOSEN])
        self.no_stack += int(steps[NO_STACK])
        self.not_mapped += int(steps[NOT_MAPPED])

    def count_entries(self, batch: BranchStacks, kept: BranchStacks, spaces: I64) -> None:
        """Count the entries of a batch, and those that its stacks lose."""
        branches, dropped = count_entries(kept.weight, batch.offsets, kept.offsets, spaces)
        self.branches += branches
        self.dropped += dropped

    @property
    def selected(self) -> int:
        return self.read - self.other_event - self.other_process - self.not_chosen

    def _as_selected(self) -> dict[str, int]:
        return {
            "samples_read": self.read,
            "samples_selected/other_event": self.other_event,
            "samples_selected/other_process": self.other_process,
            **({"samples_selected/not_chosen": self.not_chosen} if self.not_chosen else {}),
            "samples_selected": self.selected,
        }

    def as_instruction_tally(self, inside: int, in_kernel: int) -> dict[str, int]:
        """Where samples are counted by their instruction, so many in the image or the kernel."""
        mapped = self.selected - self.no_stack - self.not_mapped
        return {
            **self._as_selected(),
            "instructions_mapped/no_ip": self.no_stack,
            "instructions_mapped/not_mapped": self.not_mapped,
            **waterfall.of_instructions(mapped, inside, in_kernel),
        }

    def as_tally(self, reasons: U64, outside: int) -> dict[str, int]:
        with_stack = self.selected - self.no_stack
        return {
            **self._as_selected(),
            "samples_with_stack/no_stack": self.no_stack,
            "samples_with_stack": with_stack,
            "samples_mapped/not_mapped": self.not_mapped,
            "samples_mapped/in_prologue": self.in_prologue,
            "samples_mapped": with_stack - self.not_mapped - self.in_prologue,
            **({} if self.weighed is None else {"samples_weighed": self.weighed}),
            "branches_read": self.branches,
            "branches_in_image/dropped": self.dropped,
            "branches_in_image/outside": int(reasons[Reason.OUTSIDE]) + outside,
            "branches_in_image": int(reasons[Reason.COUNTED]) - outside,
            **{
                f"{loss.step}/{loss.reason}": int(reasons[Reason[loss.reason.upper()]])
                for loss in LOSSES
            },
        }


class _Selection:
    """Which samples of a batch are counted, and what kind of stacks they have."""

    def __init__(
        self,
        source: StackSource,
        image: ImageFacts,
        options: CountingOptions,
        *,
        by_instruction: bool,
    ) -> None:
        events = source.info.events
        wanted = [
            is_wanted(event, options.event)
            and (options.event is not None or event.name != FETCH_MISSES)
            for event in events
        ]
        if options.event is not None and not any(wanted):
            there = [event.name for event in events]
            raise InputError(
                f"no event is called {options.event}{did_you_mean(options.event, there)}",
                where=source.info.path,
                cure=f"Recorded were: {', '.join(there) or 'nameless events'}",
            )
        # One more place for samples that don't say their event (index -1).
        self._wanted = np.array([*wanted, options.event is None], dtype=np.bool_)
        self._kinds = _kinds(events, as_llvm=image.believes_entries)
        self._chooser = Chooser(options.choice, source)
        self._skips_leaf = image.skips_leaf if source.info.has_call_chains else None
        self._by_instruction = by_instruction

    def apply(
        self, batch: BranchStacks, mapping: AddressSpaces, tally: _SampleTally
    ) -> tuple[I64, U8]:
        """Spaces (n,), negative for samples not to be counted, and kinds of stacks (n,)."""
        spaces = mapping.spaces_of(batch.pid, batch.time)
        has_stack = batch.ip != 0 if self._by_instruction else np.diff(batch.offsets) > 0
        own, rest = self._chooser.of_processes(batch), self._chooser.of_the_rest(batch)
        steps = select(batch.event, batch.weight, self._wanted, own, rest, has_stack, spaces)
        tally.count_samples(steps)
        if self._skips_leaf is not None:
            skipped = _skipped(batch, mapping, spaces, self._skips_leaf)
            tally.in_prologue += int(batch.weight[skipped].sum())
            spaces[skipped] = -1
        return spaces, self._kinds[batch.event]


def _skipped(
    batch: BranchStacks,
    mapping: AddressSpaces,
    spaces: I64,
    skips_leaf: Callable[[PlacedAddresses], Bools],
) -> Bools:
    leaves, _ = mapping.to_image(spaces, batch.ip)
    return skips_leaf(leaves) & (spaces >= 0)


def is_wanted(event: EventInfo, name: str | None) -> bool:
    """Whether an event is meant by a name, given with or without its modifiers (`cycles:u`)."""
    return name is None or name in (event.name, event.name.split(":")[0])


Selected = tuple[BranchStacks, I64, U8]
"""A batch, with its samples' spaces (negative: not to be counted) and `StackKind`s."""
Onlooker = Callable[[BranchStacks, I64, U8], object]
"""Is shown each batch that is selected."""


class SampleReading:
    """One pass over those samples of a source that count for an image."""

    def __init__(
        self,
        source: StackSource,
        image: ImageFacts,
        options: CountingOptions | None = None,
        known: Correction | None = None,
        *,
        by_instruction: bool = False,
        earlier: SampleReading | None = None,
    ) -> None:
        """Raises InputError if the recording is of another binary.

        `known` is what an earlier reading found to be done against a bias. `by_instruction`
        chooses samples that say where they were interrupted, with or without a branch stack.
        What does not depend on it, an `earlier` reading of the same source has found.
        """
        options = options or CountingOptions()
        self._earlier = earlier
        if earlier is None:
            self.match, self.beside, self.spaces = place_images(source, image, options.build_id)
        else:
            self.match, self.beside, self.spaces = earlier.match, earlier.beside, earlier.spaces
        self.tally = _SampleTally()
        self.source, self.image = source, image
        self._selection = _Selection(source, image, options, by_instruction=by_instruction)
        self.onlookers: list[Onlooker] = []
        self._known, done = known, known or Correction()
        self._drops = (
            options.drop_newest + done.drops_newest, options.drop_oldest + done.drops_oldest
        )  # fmt: skip
        self._weigher = Weigher(done, self.spaces)
        looks_for_bias = options.corrects_bias and not by_instruction and known is None
        self._ends: list[Ends] | None = [] if looks_for_bias else None
        self._saw_full = False
        self._moves_calls = not image.believes_entries and are_recorded_behind(
            source.info, image.layout
        )

    @cached_property
    def files(self) -> MappedFiles:
        """What processes mapped, whether it is the image or not."""
        if self._earlier is not None:
            return self._earlier.files
        return MappedFiles(of_code(self.source.space_events()))

    def batches(self, progress: Progress | None = None) -> Generator[Selected, None, None]:
        """Each batch, with its samples' spaces (negative: not to be counted) and `StackKind`s."""
        for selected in _of_each([self], progress):
            yield selected[0]

    def select(self, batch: BranchStacks) -> Selected:
        """A batch of the source for this image, in its order."""
        self.tally.expect(batch, self.source.info.path)
        if self._moves_calls:
            batch = at_their_instructions(batch)
        spaces, kinds = self._selection.apply(batch, self.spaces, self.tally)
        if self.image.code_of_llvm is not None:
            batch = self._in_llvms_code(batch, spaces, self.image.code_of_llvm)
        kept = self._trimmed(batch, spaces)
        if self._weigher.weighs:
            kept = replace(kept, weight=self._weigher.weighed(kept, spaces, kinds))
            self.tally.expect(kept, self.source.info.path)
            self.tally.weigh(kept.weight[spaces >= 0])
            spaces = np.where(kept.weight > 0, spaces, -1)
        self.tally.count_entries(batch, kept, spaces)
        if self._ends is not None:
            self._ends.append(ends_of(kept, spaces, kinds, self.spaces))
        for look in self.onlookers:
            look(kept, spaces, kinds)
        return kept, spaces, kinds

    @property
    def corrects(self) -> bool:
        """Whether something is done against a bias."""
        return self._known is not None and self._known.is_any

    def correction(self) -> Correction | None:
        """What all samples, read before, want done against a bias; None where nobody asks."""
        return self._known if self._ends is None else correction(iter(self._ends))

    def _in_llvms_code(
        self, batch: BranchStacks, spaces: I64, is_code: Callable[[PlacedAddresses], Bools]
    ) -> BranchStacks:
        """The batch with what llvm-profgen does not take for code moved out of the image."""
        entries = batch.entries.copy()
        of_entry, ends = np.repeat(spaces, np.diff(batch.offsets)), entries[:, :2]
        image, is_mapped = self.spaces.to_image(of_entry, runtime_addresses(ends))
        known = placed_addresses(distinct(image.ravel()))
        ends[is_mapped & ~is_code(known)[np.searchsorted(known, image)]] = _NOWHERE
        return replace(batch, entries=entries)

    def _trimmed(self, batch: BranchStacks, spaces: I64) -> BranchStacks:
        newest, oldest = self._drops
        return batch.trimmed(newest + self._doubted(batch, spaces), oldest)

    def _doubted(self, batch: BranchStacks, spaces: I64) -> I64 | int:
        """(n,): how many of each stack's newest entries `doubts_full_stacks` leaves out."""
        if not self.image.doubts_full_stacks or not len(batch):
            return 0
        is_full = (spaces >= 0) & (np.diff(batch.offsets) == FULL)
        saw = np.logical_or.accumulate(is_full) | self._saw_full
        self._saw_full = bool(saw[-1])
        return np.where(saw, 2, 0)


def _of_each(
    readings: Sequence[SampleReading], progress: Progress | None
) -> Generator[tuple[Selected, ...], None, None]:
    """Each batch of the one source that all are of, for each of them."""
    source, resolve = readings[0].source, readings[0].image.resolve
    sized = source if isinstance(source, SizedSource) else None
    for batch in read_ahead(source.batches(resolve)):
        yield tuple(reading.select(batch) for reading in readings)
        if progress is not None:
            progress(len(batch), None if sized is None else sized.share_read)


def count_together(
    readings: Sequence[SampleReading], progress: Progress | None = None
) -> list[Counted[BranchCounts]]:
    """Count every sample of a source for each of several images, in one pass over the source.

    Where the source holds symbols, these are the first one's.
    """
    files = readings[0].files
    first, *others = [
        [TraceTable(reading.spaces, files) for reading in readings] for _ in range(threads())
    ]
    with closing(_of_each(readings, progress)) as batches:
        distribute(batches, [partial(add_to_all, tables) for tables in (first, *others)])
    for tables in others:
        for table, other in zip(first, tables, strict=True):
            table.merge(other)
    return [_counted(*each) for each in zip(readings, first, strict=True)]


def look_together(readings: Sequence[SampleReading], progress: Progress | None = None) -> None:
    """Show every sample of a source to the onlookers of each reading, in one pass."""
    with closing(_of_each(readings, progress)) as batches:
        for _ in batches:
            pass


def _counted(reading: SampleReading, table: TraceTable) -> Counted[BranchCounts]:
    traces = table.traces()
    counts, outside = traces.counts()
    tallies = {
        **reading.tally.as_tally(table.tallies, outside),
        **waterfall.outside_in(traces.by_file()),
        "runs_in_image/between_pieces": table.between_pieces(),
    }
    counts = replace(counts, build_id=reading.image.layout.build_id, tallies=tallies)
    return Counted(
        counts, reading.match, reading.beside, traces.borders(), reading.correction(), reading
    )


def count(
    source: Source,
    layout: ImageLayout,
    options: CountingOptions | None = None,
    resolve: SymbolResolver | None = None,
    progress: Progress | None = None,
) -> Counted[BranchCounts]:
    """Counts of one image from any source; `resolve` finds symbols where it holds these.

    Where a bias is to be corrected and there is one, the source is read a second time.
    """
    image = ImageFacts(layout, resolve)
    found = count_image(source, image, options, progress)
    if isinstance(source, StackSource) and found.is_biased:
        reading = SampleReading(source, image, options, found.correction, earlier=found.reading)
        (found,) = count_together([reading], progress)
    return found


def count_image(
    source: Source,
    image: ImageFacts,
    options: CountingOptions | None = None,
    progress: Progress | None = None,
) -> Counted[BranchCounts]:
    """As `count`, by all that is known of the image, in one reading."""
    if isinstance(source, LineSource):
        raise InputError(
            "holds branches by function and source line, and no addresses: profiles need the "
            "address of each branch, and what ran between branches",
            where=source.info.path,
            cure="Show it with lbr2pgo report. For a profile record with perf record -b, whose "
            "perf.data lbr2pgo convert reads.",
        )
    if isinstance(source, StackSource):
        (counted,) = count_together([SampleReading(source, image, options)], progress)
        return counted
    try:
        with headway.heard_by(progress):
            return Counted(source.counts(image.layout), None)
    except TooManyError as error:
        raise TooManyError(source.info.path) from error
