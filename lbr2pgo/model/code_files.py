"""Files that a recording mapped as code: which there are, and which builds of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from lbr2pgo.model.address_space_events import Mmap, SpaceEvent, is_windows_path

Builds = Mapping[str, frozenset[str]]
"""Paths, with the build-ids that were recorded for each."""


def executable_mmaps(events: Iterable[SpaceEvent]) -> Iterator[Mmap]:
    """Mappings that code may be in."""
    return (event for event in events if isinstance(event, Mmap) and event.executable)


def plain_build_id(build_id: str) -> str:
    """Equal for build-ids that are the same."""
    return build_id.lower().rstrip("0")


def same_build_id(recorded: str | None, wanted: str | None) -> bool:
    """Compare build-ids; perf pads short ones with zeros to 20 bytes."""
    if recorded is None or wanted is None:
        return False
    return plain_build_id(recorded) == plain_build_id(wanted)


class CodeFiles:
    """Looked up by path, by name and by build-id: there may be thousands, and as many images."""

    def __init__(
        self,
        mmaps: Iterable[Mmap],
        header: Mapping[str, str],
        in_header: Callable[[str], str] = str,
    ) -> None:
        """Of mappings, and of a header, which knows build-ids that mappings don't tell.

        `in_header` is what it calls a path.
        """
        self.builds: dict[str, frozenset[str]] = {}
        for event in mmaps:
            known = event.build_id or header.get(in_header(event.path))
            before = self.builds.get(event.path, frozenset())
            self.builds[event.path] = before | {known} if known else before

    def at(self, path: str) -> Builds:
        """The one at a path, if there is one."""
        return {path: self.builds[path]} if path in self.builds else {}

    def named_as(self, path: str) -> Builds:
        """Those of a file's own name, in whatever folder."""
        return self._by_name.get(_name(path), {})

    def of_build(self, build_id: str) -> Builds:
        """Those that were mapped with a build-id."""
        return self._by_build.get(plain_build_id(build_id), {})

    @cached_property
    def _by_name(self) -> Mapping[str, Builds]:
        return _grouped(self.builds, lambda path: (_name(path),))

    @cached_property
    def _by_build(self) -> Mapping[str, Builds]:
        return _grouped(self.builds, lambda path: map(plain_build_id, self.builds[path]))


def _grouped(builds: Builds, keys: Callable[[str], Iterable[str]]) -> Mapping[str, Builds]:
    found: dict[str, dict[str, frozenset[str]]] = {}
    for path, known in builds.items():
        for key in keys(path):
            found.setdefault(key, {})[path] = known
    return found


def _name(path: str) -> str:
    """A file's own name; that of a recorded Windows path stands behind a backslash."""
    name = path.rstrip("/").rpartition("/")[2]
    return name.rpartition("\\")[2] if is_windows_path(path) else name
