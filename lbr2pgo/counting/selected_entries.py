"""Which entries of a stack are counted, and which are not believed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.bias import Correction
from lbr2pgo.counting.chosen_samples import CountingOptions
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.support.addresses import placed_addresses, runtime_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.distinct import distinct

_NOWHERE = np.uint64(np.iinfo(np.uint64).max)
"""No code is ever there."""
FULL = 32
"""Entries of the stacks of Skylake."""


class EntrySelection:
    """Leaves out the entries at a stack's ends that were asked to be dropped or are doubted."""

    def __init__(self, image: ImageFacts, options: CountingOptions, done: Correction) -> None:
        self._is_code, self._doubts_full = image.code_of_llvm, image.doubts_full_stacks
        self._newest = options.drop_newest + done.drops_newest
        self._oldest = options.drop_oldest + done.drops_oldest
        self._saw_full = False

    def believed(self, batch: BranchStacks, spaces: I64, mapping: AddressSpaces) -> BranchStacks:
        """The batch with the entries that count; batches must come in the source's order."""
        if self._is_code is not None:
            batch = self._in_llvms_code(batch, spaces, mapping)
        newest = self._newest + self._doubted(batch, spaces)
        return batch.trimmed(newest, self._oldest)

    def _in_llvms_code(
        self, batch: BranchStacks, spaces: I64, mapping: AddressSpaces
    ) -> BranchStacks:
        """The batch with what llvm-profgen does not take for code moved out of the image."""
        assert self._is_code is not None
        entries = batch.entries.copy()
        of_entry, ends = np.repeat(spaces, np.diff(batch.offsets)), entries[:, :2]
        image, is_mapped = mapping.to_image(of_entry, runtime_addresses(ends))
        known = placed_addresses(distinct(image.ravel()))
        ends[is_mapped & ~self._is_code(known)[np.searchsorted(known, image)]] = _NOWHERE
        return replace(batch, entries=entries)

    def _doubted(self, batch: BranchStacks, spaces: I64) -> I64 | int:
        """(n,): how many of each stack's newest entries `doubts_full_stacks` leaves out."""
        if not self._doubts_full or not len(batch):
            return 0
        is_full = (spaces >= 0) & (np.diff(batch.offsets) == FULL)
        saw = np.logical_or.accumulate(is_full) | self._saw_full
        self._saw_full = bool(saw[-1])
        return np.where(saw, 2, 0)
