"""The files of a fleet: paths, directories, globs, and URLs of object stores."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lbr2pgo.sources.directories import HEAD, files_of
from lbr2pgo.support.errors import InputError, MissingToolError
from lbr2pgo.support.extras import extra


@dataclass(frozen=True, slots=True, order=True)
class FleetFile:
    """One file, here or in an object store."""

    name: str
    """A path, or a URL with `://`."""
    time: int
    """When it was last written, in seconds since 1970."""

    @contextmanager
    def here(self) -> Iterator[Path]:
        """The file on this machine: itself, or a copy for as long as it is needed."""
        if "://" not in self.name:
            yield Path(self.name)
            return
        with TemporaryDirectory(prefix="lbr2pgo-fleet-") as folder:
            copy = Path(folder) / "file"
            _opened(self.name)[0].get_file(self.name, str(copy))
            yield copy


def fleet_files(wanted: Sequence[str]) -> list[FleetFile]:
    """All files that are meant, each once, by name; raises InputError where there are none.

    A directory stands for all files below it, but hidden ones; one of `perf record --threads` is
    one recording.
    """
    found = {each.name: each for word in wanted for each in _files_of(word)}
    if not found:
        raise InputError("there are no files", where=", ".join(wanted), cure="Check the paths.")
    return sorted(found.values())


def _files_of(word: str) -> Iterator[FleetFile]:
    if "://" in word:
        yield from _remote(word)
        return
    matches = [word] if os.path.exists(word) else sorted(glob.glob(word, recursive=True))
    if not matches:
        raise InputError("is not there", where=word, cure="Check the path.")
    for path in matches:
        yield from _below(path) if os.path.isdir(path) else [_local(path)]


def _below(folder: str) -> Iterator[FleetFile]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        of_threads = {path.name for path in files_of(Path(place))} if HEAD in names else set()
        if len(of_threads) > 1:
            yield _local(place)
            names = [name for name in names if name not in of_threads]
        for name in sorted(names):
            if not name.startswith("."):
                yield _local(os.path.join(place, name))


def _local(path: str) -> FleetFile:
    """What can't be looked at is told when it is counted, as one file of many."""
    try:
        return FleetFile(path, int(os.stat(path).st_mtime))
    except OSError:
        return FleetFile(path, 0)


def _opened(url: str) -> tuple[Any, str]:
    """Its file system, and its path there; raises InputError, and MissingToolError."""
    fsspec = extra("fsspec", "fleet", f"reading {url}")
    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(url)
    except ImportError as error:
        cure = f"Install it: pip install 'fsspec[{url.partition('://')[0]}]'."
        raise MissingToolError(f"reading {url} needs a package: {error}", cure=cure) from error
    except ValueError as error:
        raise InputError(f"can't be read: {error}", where=url, cure="Check the URL.") from error
    return found


def _remote(url: str) -> Iterator[FleetFile]:
    system, path = _opened(url)
    try:
        known = system.find(path, detail=True) if not glob.has_magic(path) else {
            name: system.info(name) for name in system.glob(path)
        }  # fmt: skip
    except OSError as error:
        raise InputError(f"can't be listed: {error}", where=url) from error
    for name, facts in known.items():
        written = facts.get("mtime") or facts.get("LastModified") or facts.get("created") or 0
        seconds = written.timestamp() if hasattr(written, "timestamp") else written
        yield FleetFile(system.unstrip_protocol(name), int(seconds))
