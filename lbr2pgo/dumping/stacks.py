"""Samples with their branch stacks, and what changed the address spaces before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lbr2pgo.model import branch_stacks as words
from lbr2pgo.model.address_space_events import Comm, Exit, Fork, Mmap, SpaceEvent
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.sources.base import SourceInfo, StackSource, SymbolResolver

_PRIVILEGES = ("", "user", "kernel", "hypervisor")
_MEANT = (1 << 34) - 1 | 0xF << 60
"""Bits of a flag word that have a meaning so far."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which samples to show."""

    limit: int | None = None
    pids: tuple[int, ...] = ()
    """Only of these processes; of all if empty."""

    def shows(self, pid: int) -> bool:
        """Whether anything of a process is shown."""
        return not self.pids or pid in self.pids


def lines(
    source: StackSource, selection: Selection, resolve: SymbolResolver | None = None
) -> Iterator[str]:
    """Samples in the order of the file; each event before the first sample that is not older."""
    yield from _header(source.info)
    names = [event.name for event in source.info.events]
    events = iter([e for e in source.space_events() if selection.shows(e.pid)])
    event = next(events, None)
    for shown, (batch, row) in enumerate(_samples(source, selection, resolve)):
        if shown == selection.limit:
            yield f"… and more samples than the {shown:,} asked for"
            return
        while event is not None and event.time <= batch.time[row]:
            yield event_text(event)
            event = next(events, None)
        yield from _sample_lines(batch, row, shown + 1, names)
    while event is not None:
        yield event_text(event)
        event = next(events, None)


def _samples(
    source: StackSource, selection: Selection, resolve: SymbolResolver | None
) -> Iterator[tuple[BranchStacks, int]]:
    for batch in source.batches(resolve):
        for row, pid in enumerate(batch.pid.tolist()):
            if selection.shows(pid):
                yield batch, row


def _header(info: SourceInfo) -> Iterator[str]:
    machine = f", recorded on {info.machine}" if info.machine else ""
    yield f"{info.path}: {info.format}{machine}, {info.addresses.value} addresses"
    for event in info.events:
        yield f"event {event.name}: {_filter_text(event.branch_sample_type)}"
    for path, build_id in info.build_ids.items():
        yield f"build-id {build_id} {path}"


def _filter_text(bits: int | None) -> str:
    if bits is None:
        return "the input does not say which branches were kept"
    names = [name for name, bit in words.BRANCH_FILTER_BITS.items() if bits >> bit & 1]
    return "branches kept: " + ",".join(names)


def _sample_lines(batch: BranchStacks, row: int, number: int, events: list[str]) -> Iterator[str]:
    entries = batch.entries[batch.offsets[row] : batch.offsets[row + 1]].tolist()
    event = int(batch.event[row])
    facts = [
        f"sample {number}:",
        f"pid {batch.pid[row]} tid {batch.tid[row]} time {batch.time[row]}",
        f"ip {int(batch.ip[row]):#x}",
        *([f"event {events[event]}"] if event >= 0 else []),
        *([f"stands for {batch.weight[row]:,}"] if batch.weight[row] != 1 else []),
        f"stack of {len(entries)}" if entries else "no branch stack",
    ]
    yield " ".join([facts[0], ", ".join(facts[1:])])
    counters = _counter_texts(batch, row)
    for i, (from_, to, flags) in enumerate(entries):
        yield f"  {i:3} {from_:#18x} -> {to:#18x}  {flags_text(flags)}{counters[i]}"


def _counter_texts(batch: BranchStacks, row: int) -> list[str]:
    """The branch counters of each entry of a sample; empty where there are none."""
    first, last = batch.offsets[row : row + 2].tolist()
    if batch.counters is None:
        return [""] * (last - first)
    return [f", counters {word:#x}" for word in batch.counters[first:last].tolist()]


def flags_text(flags: int) -> str:
    """What the flag word of an entry says, in words.

    >>> flags_text(1 | 7 << 4 | 1 << 20), flags_text(0), flags_text(2 | 1 << 33 | 1 << 30)
    ('mispredicted, 7 cycles, COND', 'nothing known', 'predicted, not taken, user')
    """
    marks = (
        (words.MISPREDICTED, "mispredicted"),
        (words.PREDICTED, "predicted"),
        (words.NOT_TAKEN, "not taken"),
        (words.IN_TRANSACTION, "in a transaction"),
        (words.ABORT, "transaction abort"),
    )
    said = [text for bit, text in marks if flags & bit]
    said += _cycles(flags)
    said += [
        text for text in (words.type_name(flags), _spec_text(flags), _privilege(flags)) if text
    ]
    said += [f"reserved bits {flags & ~_MEANT:#x}"] if flags & ~_MEANT else []
    return ", ".join(said) or "nothing known"


def _cycles(flags: int) -> list[str]:
    cycles = words.cycles_of(flags)
    if cycles == words.SATURATED:
        return [f"{words.CYCLES_MASK} cycles or more"]
    return [] if cycles == words.MISSING else [f"{cycles} cycles"]


def _spec_text(flags: int) -> str:
    number = flags >> words.SPEC_SHIFT & words.SPEC_MASK
    return words.SPEC_OUTCOMES[number] if number else ""


def _privilege(flags: int) -> str:
    number = flags >> words.PRIV_SHIFT & words.PRIV_MASK
    return _PRIVILEGES[number] if number < len(_PRIVILEGES) else f"privilege {number}"


def event_text(event: SpaceEvent) -> str:
    """What changed an address space, as one line."""
    start = f"time {event.time}: pid {event.pid}"
    match event:
        case Mmap():
            kind = "maps" if event.executable else "maps as data"
            build_id = f", build-id {event.build_id}" if event.build_id else ""
            place = f"{event.path}+{event.file_offset:#x}"
            return f"{start} {kind} {event.start:#x}-{event.end:#x}: {place}{build_id}"
        case Fork():
            if event.pid == event.parent_pid:
                return f"{start} starts thread {event.tid}"
            return f"{start} is forked from {event.parent_pid}"
        case Comm():
            how = "executes" if event.is_exec else f"names thread {event.tid}"
            return f"{start} {how} {event.name}"
        case Exit():
            what = "" if event.pid == event.tid else f" thread {event.tid}"
            return f"{start} ends{what}"
