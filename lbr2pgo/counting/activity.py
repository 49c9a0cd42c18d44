"""Which code was running when: samples by slices of time, and by what they were taken in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import numpy as np

from lbr2pgo.counting.address_spaces import AddressSpaces
from lbr2pgo.counting.mapped_files import MappedFiles
from lbr2pgo.model.branch_stacks import BranchStacks
from lbr2pgo.native.row_ids import RowIds, RowSums
from lbr2pgo.support.addresses import PlacedAddresses, RuntimeAddresses, runtime_addresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import rows_by
from lbr2pgo.support.tables import seal

SLICES = 256
"""At most so many are told apart, and no fewer than half of them where samples lie that dense."""
_FILE = 1 << 62
"""Numbers from here on are of files, those below of functions."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Samples of s slices of time, all equally wide, in k functions of the program or other files.

    Slices that ended before the first sample or began behind the last one are left out.
    """

    start: int
    """Nanoseconds, when the first slice begins."""
    width: int
    """Nanoseconds of each."""
    first: int
    """Nanoseconds, of the first sample."""
    last: int
    samples: U64 = field(repr=False)
    """(s, k)"""
    function: I64
    """(k,): region of the program, -1 for all of another file."""
    file: tuple[str, ...]
    """(k,): the file, "" for the program."""

    def __post_init__(self) -> None:
        seal(self)
        if not self.samples.shape[1] == len(self.function) == len(self.file):
            raise ValueError(f"samples of {self.samples.shape}, {len(self.function)} functions")

    def begin(self, number: int) -> int:
        """Nanoseconds, when a slice begins; the first one with its first sample."""
        return max(self.start + number * self.width, self.first)


class ActivityCounter:
    """Counts samples by where their newest branch led or, without a stack, were interrupted.

    Slices are as narrow as the span of all samples lets them be, whatever their order: of 2**k
    nanoseconds, and each begins at a multiple of that.
    """

    def __init__(
        self,
        spaces: AddressSpaces,
        files: MappedFiles,
        functions: Callable[[PlacedAddresses], I64],
    ) -> None:
        """Take regions of the program by `functions`: of addresses (n,), -1 for others."""
        self._spaces, self._files, self._functions = spaces, files, functions
        self._names: dict[str, int] = {}
        self._span: tuple[int, int] | None = None
        self._shift = 0
        self._sums = RowSums()
        self._places = RowIds()
        self._codes: U64 = np.zeros(0, np.uint64)
        """What is at each of these."""

    def add(self, batch: BranchStacks, spaces: I64, _: object = None) -> None:
        """Count the samples of a batch that have a space (n,)."""
        has_stack = np.diff(batch.offsets) > 0
        at = np.where(has_stack, np.uint64(0), batch.ip)
        at[has_stack] = batch.to[batch.offsets[:-1][has_stack]]
        rows = np.flatnonzero((spaces >= 0) & (at != 0))
        if len(rows):
            time, code = batch.time[rows], self._code(spaces[rows], runtime_addresses(at[rows]))
            self._widen(int(time.min()), int(time.max()), 0)
            self._count(time >> np.uint64(self._shift), code, batch.weight[rows])

    def merge(self, other: ActivityCounter) -> None:
        """Take over what another one saw."""
        if other._span is None:
            return
        self._widen(*other._span, other._shift)
        slices, code, _ = other._sums.rows().T
        own = np.array([self._number(name) for name in other._names], np.uint64)
        is_file = code >= _FILE
        code = np.where(is_file, np.append(own, 0)[np.where(is_file, code - _FILE, len(own))], code)
        shift = np.uint64(self._shift - other._shift)
        self._count(slices >> shift, code.astype(np.uint64), other._sums.counts())

    def result(self) -> Activity | None:
        """What was seen; None where nothing was."""
        if self._span is None:
            return None
        slices, code, _ = self._sums.rows().T
        known, column = np.unique(code, return_inverse=True)
        first = int(slices.min())
        row = (slices - np.uint64(first)).astype(np.int64)
        samples = np.zeros((int(row.max()) + 1, len(known)), np.uint64)
        samples[row, column.reshape(-1)] = self._sums.counts()
        names, is_file = [*self._names], known >= _FILE
        return Activity(
            first << self._shift, 1 << self._shift, *self._span, samples,
            np.where(is_file, -1, known.astype(np.int64)),
            tuple(names[number - _FILE] if number >= _FILE else "" for number in known.tolist()),
        )  # fmt: skip

    def _code(self, spaces: I64, addresses: RuntimeAddresses) -> U64:
        """Numbers (n,) of what is there; each place is looked at once."""
        place = self._places.number_rows(addresses, spaces.astype(np.uint64))
        address, space, _ = self._places.rows(len(self._codes)).T
        if len(address):
            found = self._found(space.astype(np.int64), runtime_addresses(address))
            self._codes = np.concatenate((self._codes, found))
        return self._codes[place]

    def _found(self, spaces: I64, addresses: RuntimeAddresses) -> U64:
        """Numbers (n,) of what is there."""
        image, inside = self._spaces.to_image(spaces, addresses)
        found = np.where(inside, self._functions(image), -1)
        outside = np.flatnonzero(found < 0)
        files, names = self._files.of_addresses(addresses[outside]), self._files.names
        for file, rows in rows_by(files):
            found[outside[rows]] = self._number(names[file])
        return found.astype(np.uint64)

    def _number(self, name: str) -> int:
        return _FILE + self._names.setdefault(name, len(self._names))

    def _widen(self, first: int, last: int, shift: int) -> None:
        """Make slices so wide, at least, that all times to come fit in."""
        if self._span is not None:
            first, last = min(first, self._span[0]), max(last, self._span[1])
        self._span = first, last
        before, self._shift = self._shift, max(self._shift, shift)
        while (last >> self._shift) - (first >> self._shift) >= SLICES:
            self._shift += 1
        if before != self._shift and len(self._sums):
            (slices, code, _), counts = self._sums.rows().T, self._sums.counts()
            self._sums = RowSums()
            self._count(slices >> np.uint64(self._shift - before), code, counts)

    def _count(self, slices: U64, code: U64, weight: U64) -> None:
        columns = (slices, code, np.zeros(len(code), np.uint64), weight)
        self._sums.add_rows(*map(np.ascontiguousarray, columns))
