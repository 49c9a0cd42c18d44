"""Code that an earlier llvm-bolt moved, told of as it stood before.

So profiles of a program that BOLT made serve the next build of what it was made of (BOLT:
DataAggregator.cpp, doBranch and doTrace; BoltAddressTranslation.cpp, getFallthroughsInTrace).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from lbr2pgo.profiles.bolt.fdata.fdata_tables import FdataEdges
from lbr2pgo.program.address_translation import AddressTranslation
from lbr2pgo.program.blocks.binary_functions import BinaryFunctions
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64, U64, Bools


class Moved:
    """The functions of a program that its translation covers."""

    def __init__(self, functions: BinaryFunctions, translation: AddressTranslation) -> None:
        self._start = functions.start
        self._translation = translation
        self._piece = translation.piece_at(functions.start)
        """(n,): piece that each function is, -1 for others."""
        whole = functions.containing(translation.address[translation.parent])
        self._whole = np.arange(len(functions))
        """(n,): the function that each was split off from; itself for all others."""
        held = self._piece >= 0
        self._whole[held] = whole[self._piece[held]]

    def holds(self, function: I64) -> Bools:
        """(m,): whether each function was moved; no function (-1) was not."""
        moved: Bools = np.append(self._piece >= 0, False)[function]
        return moved

    def before(self, edges: FdataEdges) -> FdataEdges:
        """Branches with their places in the functions before.

        A branch stands where its block begins: what is behind may be other instructions now.
        """
        from_ = self._place(edges.from_function, edges.from_, is_source=True)
        to = self._place(edges.to_function, edges.to, is_source=False)
        return replace(
            edges, from_function=from_[0], from_=from_[1], to_function=to[0], to=to[1]
        )  # fmt: skip

    def _place(
        self, function: I64, address: PlacedAddresses, *, is_source: bool
    ) -> tuple[I64, PlacedAddresses]:
        """(m,) each: functions before, and addresses as if they still began where they do now."""
        held = np.flatnonzero(self.holds(function))
        was, place = function.copy(), address.copy()
        own = function[held]
        skip = address[held] - self._start[own]
        offset = self._translation.before(self._piece[own], skip, is_source=is_source)
        was[held] = self._whole[own]
        place[held] = self._start[was[held]] + offset
        return was, placed_addresses(place)

    def passed(
        self, function: I64, first: PlacedAddresses, last: PlacedAddresses, count: U64
    ) -> FdataEdges:
        """How often control passed from each block to the next, in fall-throughs of functions.

        Columns of length m: all functions were moved. A run may begin right before its function.
        """
        translation, blocks = self._translation, self._blocks
        piece, start = self._piece[function], self._start[function]
        begun = translation.entry_at(piece, first - start, blocks)
        ended = translation.entry_at(piece, last - start, blocks)
        kept = (first >= start) & (begun >= 0) & (begun < ended)
        steps = np.zeros(len(blocks) + 1, np.uint64)
        np.add.at(steps, begun[kept], count[kept])
        np.subtract.at(steps, ended[kept], count[kept])
        passed = np.cumsum(steps)[:-1]
        at = np.flatnonzero(passed)
        whole = self._whole[self._function[translation.piece[blocks[at]]]]
        start = self._start[whole]
        return FdataEdges(
            whole,
            placed_addresses(start + translation.input[blocks[at]]),
            whole,
            placed_addresses(start + translation.input[blocks[at + 1]]),
            np.zeros(len(at), np.uint64),
            passed[at],
        )

    @cached_property
    def _blocks(self) -> I64:
        """Entries of the translation where blocks begin."""
        return np.flatnonzero(~self._translation.is_branch)

    @cached_property
    def _function(self) -> I64:
        """(p,): function that each piece is, -1 where none begins there."""
        function = np.full(len(self._translation.address), -1)
        held = np.flatnonzero(self._piece >= 0)
        function[self._piece[held]] = held
        return function
