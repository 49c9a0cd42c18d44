"""The exact counts that `lbr2pgo record --exact` writes, as a profile: the best there can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.model.branch_stacks import BRANCH_TYPES
from lbr2pgo.model.doubts import Doubt
from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.program.elf.layout import ImageLayout
from lbr2pgo.sources.base import Addresses, ShownShortly, SourceFormat, SourceInfo, sniff_arrays
from lbr2pgo.support.addresses import image_addresses
from lbr2pgo.support.errors import InputError

_NAME = "lbr2pgo exact counts"
_CONDITIONAL = BRANCH_TYPES.index("COND")

Row = tuple[int, int, int, int, int, int]
"""Columns of `BranchCounts`: from_, to, end, known, count, mispredicted."""


class ExactSource(ShownShortly):
    """A file of exact counts."""

    def __init__(self, path: Path) -> None:
        """Raises InputError if it is damaged."""
        self._exact = ExactCounts.load(path)
        self.info = SourceInfo(str(path), _NAME, Addresses.IMAGE, is_exact=True)

    def counts(self, layout: ImageLayout) -> BranchCounts:
        """Branches of an image as they were taken, and fall-throughs between them that fit them.

        Raises InputError if no run of this build of it was counted.
        """
        image = image_of(self._exact, layout, self.info.path)
        rows = [*_branches(self._exact, image), *_fall_throughs(self._exact, image)]
        columns = np.array(rows, np.uint64).reshape(-1, 6).T
        from_, to, end, known, count, wrong = map(np.ascontiguousarray, columns)
        return aggregate(
            image_addresses(from_), image_addresses(to), image_addresses(end),
            known.astype(np.uint8), count, wrong, build_id=layout.build_id,
        )  # fmt: skip

    def health(self) -> Mapping[str, int]:
        """What the recorder could not count."""
        return {Doubt("branches for which disk or memory did not suffice"): self._exact.uncounted}


def image_of(exact: ExactCounts, layout: ImageLayout, path: str) -> int:
    """Index of an image in exact counts; raises InputError if it, or this build, is not there."""
    image = exact.find_image(layout.build_id, layout.path)
    if image is None:
        raise InputError(
            f"holds no counts of {layout.path}",
            where=path,
            cure=f"Counted were: {', '.join(exact.images[:5]) or 'nothing'}.",
        )
    counted = exact.build_ids[image]
    if counted and layout.build_id and counted != layout.build_id:
        raise InputError(
            f"counts another build of {layout.path}: build-id {counted}, not {layout.build_id}",
            where=path,
            cure="Give the binary that was counted.",
        )
    return image


def _branches(exact: ExactCounts, image: int) -> Iterator[Row]:
    """Taken branches that touch an image."""
    known = np.where(exact.from_image == image, FROM, 0) | np.where(exact.to_image == image, TO, 0)
    rows = np.flatnonzero(exact.taken & (known > 0))
    nothing = np.zeros(len(rows), np.uint64)
    columns = (
        exact.from_[rows], exact.to[rows], nothing, known[rows] | BRANCH, exact.count[rows],
        exact.mispredicted[rows],
    )  # fmt: skip
    yield from zip(*(each.tolist() for each in columns), strict=True)


def _fall_throughs(exact: ExactCounts, image: int) -> Iterator[Row]:
    """Runs from where branches arrived to where they left, so many that all branches fit.

    Which arrival goes with which departure is not known and makes no difference to the count of
    any instruction or edge: here the last that arrived leaves first. What arrived and did not
    leave behind an unconditional branch is gone: the program ended there, or a signal came.
    """
    arrived: list[tuple[int, int]] = []
    for address, is_departure, is_last, count in _flow(exact, image):
        if not is_departure:
            arrived.append((address, count))
        while is_departure and count and arrived:
            start, waiting = arrived.pop()
            leaving = min(waiting, count)
            yield 0, start, address, TO | END, leaving, 0
            count -= leaving
            if waiting > leaving:
                arrived.append((start, waiting - leaving))
        if is_last:
            arrived.clear()


def _flow(exact: ExactCounts, image: int) -> Iterator[tuple[int, bool, bool, int]]:
    """By address: what arrived there, then what left there and whether all did."""
    to, from_ = (exact.taken & (each == image) for each in (exact.to_image, exact.from_image))
    never = np.zeros(int(to.sum()), np.bool_)
    address = np.concatenate((exact.to[to], exact.from_[from_]))
    is_departure = np.concatenate((never, np.ones(int(from_.sum()), np.bool_)))
    is_last = np.concatenate((never, exact.kind[from_] != _CONDITIONAL))
    count = np.concatenate((exact.count[to], exact.count[from_]))
    order = np.lexsort((is_departure, address))
    columns = (each[order].tolist() for each in (address, is_departure, is_last, count))
    for (place, leaves), events in groupby(zip(*columns, strict=True), lambda row: row[:2]):
        same = list(events)
        yield place, leaves, any(row[2] for row in same), sum(row[3] for row in same)


FORMAT = SourceFormat(
    name=_NAME,
    summary="every branch of a run, counted by lbr2pgo record --exact (.npz)",
    references=("this project: lbr2pgo/model/exact_counts.py",),
    sniff=partial(sniff_arrays, first="format"),
    open=ExactSource,
)
