"""Files of programs and libraries, found by what a recording says of them.

A recording names a path and, mostly, a build-id. The file may lie under a copy of the recorded
machine's root, where it was recorded, or in a store by build-id.

Sources: perf: tools/perf/util/build-id.c (build_id_cache__linkname) for `~/.debug`; elfutils:
debuginfod/debuginfod-client.c (debuginfod_query_server) for debuginfod's cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError


@dataclass(frozen=True, slots=True)
class ImagePlaces:
    """Where to look."""

    sysroots: tuple[Path, ...] = ()
    """Roots of file systems like the recorded machine's; without any, this machine's."""

    def find(self, path: str, build_id: str | None) -> Path | None:
        """The file that was mapped from a path; None if there is none with its build-id.

        Where none was recorded, the file of that path is taken for it.
        """
        for candidate in self._candidates(path, build_id):
            if is_build(candidate, build_id):
                return Path(candidate)
        return None

    def _candidates(self, path: str, build_id: str | None) -> Iterator[str | Path]:
        # As texts, since a system-wide recording has tens of thousands.
        yield from (os.path.join(root, path.lstrip("/")) for root in self.sysroots or ("/",))
        if build_id is None:
            return
        yield perf_store(build_id) / "elf"
        yield debuginfod_cache() / build_id / "executable"
        if self.sysroots:
            yield Path(path)


def perf_store(build_id: str) -> Path:
    """The folder in which perf keeps what is of a build: `elf`, `debug`."""
    return Path.home() / ".debug" / ".build-id" / build_id[:2] / build_id[2:]


def debuginfod_cache() -> Path:
    """Where debuginfod's client keeps what it fetched (man 3 debuginfod_find_source)."""
    given = os.environ.get("DEBUGINFOD_CACHE_PATH")
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given or Path(caches) / "debuginfod_client")


def is_build(path: str | Path, build_id: str | None) -> bool:
    """Whether an ELF file is there and has a build-id; perf pads short ones with zeros."""
    if not os.path.isfile(path):
        return False
    try:
        found = Image.open(path).build_id
    except InputError:
        return False
    return build_id is None or (found or "").rstrip("0") == build_id.lower().rstrip("0")
