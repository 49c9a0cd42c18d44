"""Copies of a source tree, so that several builds of it go on at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue


class Trees:
    """Places to build in: with one job the tree itself, else a copy for each."""

    def __init__(self, source: Path, copies: Path, jobs: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        if jobs == 1:
            self._free.put(source)
            return
        for number in range(1, jobs + 1):
            copy = copies / str(number)
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(source, copy, symlinks=True, ignore=_all_but(copies))
            self._free.put(copy)

    @contextmanager
    def one(self) -> Iterator[Path]:
        """A tree that no one else has; waits for it."""
        tree = self._free.get()
        try:
            yield tree
        finally:
            self._free.put(tree)


def _all_but(left_out: Path) -> Callable[[str, list[str]], list[str]]:
    def ignore(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name).resolve() == left_out.resolve()]

    return ignore
