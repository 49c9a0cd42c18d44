"""Where a recording is made until it is whole: in a directory beside its output, with room kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lbr2pgo.support.errors import writable
from lbr2pgo.support.output import is_standard_output, write_to

_RESERVE = 8 << 20  # bytes: for a batch of samples, the mappings and the header
_THERE = "can't write there", "Choose a path that you may write."


@contextmanager
def work_directory(output: Path) -> Iterator[Path]:
    """A directory beside the output, gone afterwards."""
    special = is_standard_output(output) or (output.exists() and not output.is_file())
    parent = tempfile.gettempdir() if special else output.resolve().parent
    with writable(output, *_THERE):
        directory = tempfile.mkdtemp(prefix=".lbr2pgo-", dir=parent)
    try:
        yield Path(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def check_writable(path: Path) -> None:
    """Find out before the program runs in vain; leaves no trace."""
    existed = path.exists()
    with writable(path, *_THERE):
        path.open("ab").close()
    if not existed:
        path.unlink()


@contextmanager
def reserved_room(directory: Path) -> Iterator[int]:
    """Keep some room on the disk, so that what is recorded until it is full can be written.

    Yields the number of bytes.
    """
    path = directory / "reserve"
    room = os.statvfs(directory)
    size = min(_RESERVE, room.f_bavail * room.f_frsize // 2)
    with path.open("wb") as file, suppress(OSError):
        os.posix_fallocate(file.fileno(), 0, max(size, 1))
    try:
        yield size
    finally:
        path.unlink()


def holds_something(output: Path) -> bool:
    """Whether there is an older recording, which one of nothing does not replace."""
    return output.is_file() and output.stat().st_size > 0


def deliver(unfinished: Path, output: Path) -> None:
    """Put the file in its place; pipes and devices get its content.

    What was there is kept as `.old`, unless it is empty (perf: tools/perf/util/data.c,
    check_backup).
    """
    if is_standard_output(output):
        with unfinished.open("rb") as source:
            write_to(output, lambda sink: shutil.copyfileobj(source, sink))
        return
    target = output.resolve()  # a symbolic link stays
    with writable(output, *_THERE):
        if target.is_file():
            unfinished.chmod(target.stat().st_mode & 0o777)
        if holds_something(target):
            target.replace(target.with_name(f"{target.name}.old"))
        if target.is_file() or not target.exists():
            unfinished.replace(target)
        else:
            with unfinished.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
