"""Which of the files that a recording mapped is the binary at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lbr2pgo.model.address_space_events import Mmap, SpaceEvent
from lbr2pgo.model.code_files import Builds, CodeFiles, executable_mmaps, same_build_id
from lbr2pgo.model.space_event_log import as_log, of_files
from lbr2pgo.program.code.registry import by_uname
from lbr2pgo.program.elf.layout import ImageLayout, Segment
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError

_LARGEST_PAGE = 1 << 16
"""Of the machines that we know."""
_SHOWN = 5
"""Paths in a sentence."""


@dataclass(frozen=True, slots=True)
class ImageMatch:
    """The recorded paths that show the binary, and how they were recognised."""

    paths: tuple[str, ...]
    how: str
    """`build-id`, `path`, `name` or `segments`; `process` for code that one made; where the input
    has no mappings at all `as linked` or `branches`."""
    assumption: str | None = None
    """What had to be assumed, for the user's eyes; None after a match by build-id."""
    build_id: str | None = None
    """What one path shows may be rebuilt: mappings of another build-id are other files. None if
    the binary's is unknown."""

    _known: frozenset[str] = frozenset()
    """The paths, which may be thousands."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", frozenset(self.paths))

    def shows(self, event: Mmap) -> bool:
        """Whether a mapping shows code of the binary."""
        is_other = None not in (event.build_id, self.build_id) and not same_build_id(
            event.build_id, self.build_id
        )
        return event.executable and event.path in self._known and not is_other


def refuse_other_machine(layout: ImageLayout, recorded_on: str | None, *, where: str) -> None:
    """Raise InputError if a recording says that it was made on another kind of machine."""
    recorded = by_uname(recorded_on)
    if recorded is not None and recorded.name != layout.machine:
        raise InputError(
            f"{layout.path} is a program for {layout.machine}, "
            f"but this was recorded on {recorded.name}",
            where=where,
            cure="Give the binary that was recorded.",
        )


def match_image(
    layout: ImageLayout,
    events: Sequence[SpaceEvent],
    header_build_ids: Mapping[str, str],
    *,
    where: str,
    build_id: str | None = None,
) -> ImageMatch:
    """Find the binary among the mapped files: by build-id, then path, name, and segments.

    `build_id` replaces the binary's own (for a binary that was stripped of it). A file whose
    segments lie in memory as the binary's would is only likely to be it: its branches have to tell.
    Raises InputError if the file of that path or name had another build-id, or if there is none.
    """
    files = as_log(events).code_files(header_build_ids)
    wanted = build_id or layout.build_id
    if not files.builds:
        return ImageMatch((), "as linked", "no mappings recorded: addresses taken as linked")
    found = (
        of_build(files, wanted)
        or of_alike(files.at(layout.path), "path", wanted, layout, where)
        or of_alike(files.named_as(layout.path), "name", wanted, layout, where)
    )
    if found is not None:
        return found
    laid_out = _with_segments(events, layout)
    paths = tuple(
        p for p, known in files.builds.items() if p in laid_out and not (wanted and known)
    )
    if paths:
        why = assumption("segments", paths, wanted)
        return ImageMatch(paths, "segments", why, wanted)
    raise not_mapped(layout, events, wanted, where=where)


def of_build(files: CodeFiles, wanted: str | None) -> ImageMatch | None:
    """The paths that were mapped with a build-id, if there are any."""
    same = tuple(files.of_build(wanted)) if wanted else ()
    return ImageMatch(same, "build-id", build_id=wanted) if same else None


def of_alike(
    alike: Builds,
    how: str,
    wanted: str | None,
    layout: ImageLayout,
    where: str,
) -> ImageMatch | None:
    """Those paths that may be the binary, by what they are called; None if none is called so.

    With a build-id of its own, only files without one may be it. Raises InputError if all that are
    called so have another.
    """
    paths = tuple(path for path, known in alike.items() if not (wanted and known))
    if paths:
        why = assumption(how, paths, wanted, has_others=len(paths) < len(alike))
        return ImageMatch(paths, how, why, wanted)
    if alike:
        raise _other_build(alike, wanted, layout, where)
    return None


def _with_segments(events: Sequence[SpaceEvent], layout: ImageLayout) -> set[str]:
    """The files that the executable segments were mapped from, each at its place and in full."""
    segments = [segment for segment in layout.segments if segment.executable]
    paths = [
        {
            mmap.path
            for mmap in executable_mmaps(events)
            if _is_mapping_of(segment, mmap, is_fixed=not layout.is_pie)
        }
        for segment in segments
    ]
    return set.intersection(*paths) if paths else set()


def _is_mapping_of(segment: Segment, mmap: Mmap, *, is_fixed: bool) -> bool:
    """Whether a mapping holds a segment and, in the pages at both ends, no more than has to be."""
    before = segment.file_offset - mmap.file_offset
    behind = mmap.length - before - segment.file_size
    parts = mmap.start | mmap.file_offset | mmap.length
    page = min(parts & -parts, _LARGEST_PAGE)
    is_in_place = mmap.start + before == segment.address or not is_fixed
    return is_in_place and 0 <= before < page and 0 <= behind < page


def not_mapped(
    layout: ImageLayout, events: Sequence[SpaceEvent], wanted: str | None, *, where: str
) -> InputError:
    """The error that no mapped file is the binary, whose build-id is `wanted`."""
    mapped = sorted({mmap.path for mmap in executable_mmaps(of_files(events))}, key=_programs_first)
    return InputError(
        f"no process in this recording mapped {layout.path}"
        + (f" (build-id {wanted})" if wanted else ""),
        where=where,
        cure=f"Mapped were: {_listed(mapped)}. Give the binary that was recorded, or its recorded "
        "build-id with --build-id.",
    )


def _programs_first(path: str) -> tuple[bool, str]:
    """Libraries may be many, and hide what ran.

    >>> sorted(["/lib/libc.so.6", "/opt/app"], key=_programs_first)
    ['/opt/app', '/lib/libc.so.6']
    """
    return ".so" in path.rpartition("/")[2], path


def _other_build(alike: Builds, wanted: str | None, layout: ImageLayout, where: str) -> InputError:
    path = next(iter(alike))
    known = min(alike[path])
    return InputError(
        f"{layout.path} is another build than the recorded {path}: "
        f"build-id {wanted} here, {known} there",
        where=where,
        cure="Give the binary that was recorded, "
        f"or, if you know that the code is the same, --build-id {known}.",
    )


def assumption(
    how: str, paths: Sequence[str], wanted: str | None, *, has_others: bool = False
) -> str:
    """What is said of files that were matched other than by build-id."""
    if wanted is None:
        why = "the binary has no build-id"
    elif has_others:
        why = "some mappings have no build-id"
    else:
        why = "the recording has no build-id for it"
    return f"matched {_listed(paths)} by {how}, because {why}"


def _listed(paths: Sequence[str]) -> str:
    """The first of them.

    >>> _listed(["a", "b"]), _listed([*"abcdefg"])
    ('a, b', 'a, b, c, d, e …')
    """
    return ", ".join(paths[:_SHOWN]) + (" …" if len(paths) > _SHOWN else "")
