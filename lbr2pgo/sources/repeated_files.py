"""Inputs that come twice, under one name or as copies: what they hold counts as often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from filecmp import cmp
from pathlib import Path

from lbr2pgo.model.doubts import Doubt
from lbr2pgo.sources.directories import files_of


def repetitions(paths: Sequence[Path]) -> Iterator[Doubt]:
    """A doubt for each input that holds, byte for byte, what one before it holds.

    Files are read where others have the same size; pipes never are.
    """
    first_of_size: dict[tuple[int, ...], list[Path]] = {}
    for path in paths:
        files = files_of(path)
        if not all(each.is_file() for each in files):
            continue
        alike = first_of_size.setdefault(tuple(each.stat().st_size for each in files), [])
        for before in alike:
            if _hold_the_same(before, path):
                same = "is given again" if before == path else f"holds the same as {before}"
                yield Doubt(f"{path} {same}: its samples count again")
                break
        else:
            alike.append(path)


def _hold_the_same(a: Path, b: Path) -> bool:
    pairs = zip(files_of(a), files_of(b), strict=True)
    return a.samefile(b) or all(cmp(*pair, shallow=False) for pair in pairs)
