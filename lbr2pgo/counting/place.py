"""Where the image lies in a recording: where its mappings say or, failing that, its branches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from operator import attrgetter

from lbr2pgo.counting.address_spaces import AddressSpaces, Others, Pieces, moved, pieces_of
from lbr2pgo.counting.find_by_branches import CodeBranches, Fit, edges_of, find_load, fit_of
from lbr2pgo.counting.find_image import (
    ImageMatch,
    assumption,
    match_image,
    not_mapped,
    of_build,
)
from lbr2pgo.counting.kernel_mappings import kernel_pieces, match_kernel
from lbr2pgo.model.address_space_events import Comm, Fork, Mmap, SpaceEvent, is_memory
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.model.space_event_log import as_log, of_code
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.base import Addresses, StackSource, SymbolResolver
from lbr2pgo.sources.code_addresses import are_code
from lbr2pgo.support.addresses import PlacedAddresses, image_addresses
from lbr2pgo.support.arrays import Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

_ENOUGH_ENTRIES = 1 << 17
"""A program is told by so many branches, the first ones of the recording."""
_MOST_ALIKE = 16
"""Segments that more files than this have tell nothing, and the branches of each take a reading."""

OwnBranches = Callable[[], CodeBranches]
"""The program's branches: found only where they are needed, since that decodes all of its code."""


def place_image(
    source: StackSource,
    layout: ImageLayout,
    build_id: str | None = None,
    branches: OwnBranches | None = None,
) -> tuple[ImageMatch, AddressSpaces]:
    """Which mapped files are the binary, and where its code is in which process and when.

    `build_id` as in `match_image`. Without `branches` a program that can be loaded anywhere has to
    be mapped under its build-id, path or name. Raises InputError if the recording is of another
    binary or does not tell where this one was.
    """
    if source.info.addresses is Addresses.IMAGE:
        why = "the input has no mappings: its addresses, or symbols, are as linked"
        match = ImageMatch((), "as linked", why)
        return match, AddressSpaces.fixed(layout)
    events, where = of_code(source.space_events()), source.info.path
    if layout.anchors and events:
        build_ids = source.info.build_ids
        match = match_kernel(layout, events, build_ids, where=where, build_id=build_id)
        return match, AddressSpaces.shared(layout, kernel_pieces(match, events, layout))
    match = match_image(layout, events, source.info.build_ids, where=where, build_id=build_id)
    if match.how == "as linked":
        return _without_mappings(match, source, layout, branches)
    if match.how == "segments":
        match = _confirmed(match, source, layout, branches)
    return match, AddressSpaces(events, layout, match)


@dataclass(frozen=True, slots=True)
class Beside:
    """An image that counts as a part of another one's process."""

    layout: ImageLayout
    slot: int
    """Its addresses are moved there, see `support.addresses.SLOT_BITS`; not 0."""
    is_named: bool = False
    """Somebody asked for it: it must have been mapped, and processes that only have it count."""
    mappings: tuple[Mmap, ...] = ()
    """Where it lies, if it is code that a process made, which no recording says."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What is known of an image, whatever of its samples is asked for."""

    layout: ImageLayout
    resolve: SymbolResolver | None = None
    """Finds its symbols, for inputs that hold these instead of addresses."""
    branches: OwnBranches | None = None
    """By which it is found where mappings don't show it."""
    beside: tuple[Beside, ...] = ()
    """Other images that count as parts of it, where its process has them."""
    code_of_llvm: Callable[[PlacedAddresses], Bools] | None = None
    """Which placed addresses (n,) llvm-profgen takes for code: all else is outside to it."""
    believes_entries: bool = False
    """Pair entries as llvm-profgen does, which ignores filters and flags (`StackKind.AS_LLVM`)."""
    skips_leaf: Callable[[PlacedAddresses], Bools] | None = None
    """Judges placed addresses (n,) at which samples with call stacks were interrupted: True drops
    the sample."""
    doubts_full_stacks: bool = False
    """From the first stack of `selected_entries.FULL` entries on, two more of each stack's newest
    are left out: so perf2bolt reads recordings of programs that BOLT made, since some processors
    record the newest twice (LLVM: bolt/lib/Profile/DataAggregator.cpp, NeedsSkylakeFix)."""


def place_images(
    source: StackSource, image: ImageFacts, build_id: str | None = None
) -> tuple[ImageMatch, tuple[ImageMatch, ...], AddressSpaces]:
    """As `place_image`, with other images where the recording says where they were mapped.

    Raises InputError for one that was named and not mapped, too.
    """
    layout, beside = image.layout, image.beside
    match, spaces = place_image(source, layout, build_id, image.branches)
    if not beside or match.how in ("as linked", "branches"):
        return match, (), spaces
    events = of_code(source.space_events())
    found = list(_matched(beside, events, source))
    matches = tuple(other for _, other in found)
    made = [mapping for each in beside for mapping in each.mappings]
    every = with_made_code(events, made) if made else events  # which are columns till then
    return match, matches, AddressSpaces(every, layout, match, _others(found, len(made)))


def _others(found: Sequence[tuple[Beside, ImageMatch]], made: int) -> Others:
    """Of the images that a source knows, and so many mappings of made code."""
    by_path: dict[str, list[tuple[Beside, ImageMatch]]] = {}
    for each, other in found:
        for path in dict.fromkeys(other.paths):
            by_path.setdefault(path, []).append((each, other))

    def pieces(event: Mmap) -> Pieces:
        for each, other in by_path.get(event.path, ()):
            if other.shows(event):
                return moved(pieces_of(event, each.layout), each.slot)
        return ()

    named = frozenset(each.slot for each, _ in found if each.is_named)
    layouts = tuple(each.layout for each, _ in found)
    return Others(pieces, tuple(by_path), named, len(found) + made, layouts)


def _matched(
    beside: Sequence[Beside], events: Sequence[SpaceEvent], source: StackSource
) -> Iterator[tuple[Beside, ImageMatch]]:
    """Those that a source knows, with how; raises InputError for named ones that it does not."""
    files = as_log(events).code_files(source.info.build_ids)
    for each in beside:
        try:
            match = of_build(files, each.layout.build_id) or _match_beside(each, events, source)
        except InputError:
            if each.is_named:
                raise
            continue
        if match.how != "segments":
            yield each, match


def _match_beside(each: Beside, events: Sequence[SpaceEvent], source: StackSource) -> ImageMatch:
    if each.mappings:
        return ImageMatch((each.layout.path,), "process")
    info = source.info
    return match_image(each.layout, events, info.build_ids, where=info.path)


def _first_stacks(source: StackSource) -> Iterator[BranchStacks]:
    entries = 0
    for batch in source.batches():
        yield batch
        entries += len(batch.entries)
        if entries >= _ENOUGH_ENTRIES:
            break


def _confirmed(
    match: ImageMatch, source: StackSource, layout: ImageLayout, branches: OwnBranches | None
) -> ImageMatch:
    """A match by segments without the files whose branches are not the program's."""
    if branches is None and not layout.is_pie:
        return match
    if branches is None or len(match.paths) > _MOST_ALIKE:
        raise not_mapped(layout, source.space_events(), match.build_id, where=source.info.path)
    stacks, own = list(_first_stacks(source)), branches()
    fits: dict[str, Fit] = {}
    for path in match.paths:
        spaces = AddressSpaces(source.space_events(), layout, replace(match, paths=(path,)))
        fit = fit_of(stacks, spaces, own)
        if fit.is_good:
            fits[path] = fit
    if not fits:
        raise not_mapped(layout, source.space_events(), match.build_id, where=source.info.path)
    told = [f"{path} ({fit})" for path, fit in fits.items()]
    why = assumption("segments and branches", told, match.build_id)
    return replace(match, paths=tuple(fits), assumption=why)


def _without_mappings(
    match: ImageMatch, source: StackSource, layout: ImageLayout, branches: OwnBranches | None
) -> tuple[ImageMatch, AddressSpaces]:
    """The image as it was linked or, if it may be anywhere, where its branches were recorded."""
    as_linked = match, AddressSpaces.fixed(layout)
    if branches is None or not layout.is_pie:
        return as_linked
    edges = edges_of(_first_stacks(source))
    load = find_load(edges, layout, branches())
    if load is not None:
        where = (
            f"loaded {load.bias:#x} above its own addresses" if load.bias else "as it was linked"
        )
        said = f"no mappings recorded: {layout.path} was {where}, as its branches tell: {load.fit}"
        return ImageMatch((), "branches", said), AddressSpaces.fixed(layout, load.bias)
    if len(edges.from_) == 0 or are_code(layout, image_addresses(edges.from_)).any():
        return as_linked
    raise InputError(
        f"no mappings were recorded, and the branches do not tell where {layout.path} was loaded",
        where=source.info.path,
        cure="Give perf.data itself, or text of perf script --show-mmap-events -F ip,brstack.",
    )


def with_made_code(events: Sequence[SpaceEvent], made: Sequence[Mmap]) -> list[SpaceEvent]:
    """Events by time, with mappings of made code, of which those at time 0 are the first ones.

    A recording says at most that there is memory that may be run. Code that took nothing's place
    is there as soon as its process is; files that are mapped over it later replace it.
    """
    pids = {mapping.pid for mapping in made}
    first = [mapping for mapping in made if not mapping.time]
    later = sorted((mapping for mapping in made if mapping.time), key=attrgetter("time"))
    kept = [event for event in events if not _hides(event, pids)]
    return list(merge(_begun(kept, first), later, key=attrgetter("time")))


def _hides(event: SpaceEvent, pids: Iterable[int]) -> bool:
    """Whether a mapping is of the memory that made code is in."""
    return isinstance(event, Mmap) and event.pid in pids and event.executable and is_memory(event)


def _begun(events: Sequence[SpaceEvent], first: Sequence[Mmap]) -> Iterator[SpaceEvent]:
    """The events, and behind the last one that begins each process its first mappings."""
    begin = {event.pid: i for i, event in enumerate(events) if _begins(event)}
    yield from (mapping for mapping in first if mapping.pid not in begin)
    for i, event in enumerate(events):
        yield event
        if begin.get(event.pid) == i:
            own = (mapping for mapping in first if mapping.pid == event.pid)
            yield from (mapping._replace(time=event.time) for mapping in own)


def _begins(event: SpaceEvent) -> bool:
    if isinstance(event, Fork):
        return event.pid != event.parent_pid
    return isinstance(event, Comm) and event.is_exec
