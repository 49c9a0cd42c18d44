"""Group addresses by source line."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lbr2pgo.analyses.places import PlaceNames, short_paths
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import distinct_pairs


@dataclass(frozen=True, slots=True)
class SourceLines:
    """The source lines of some addresses, as groups in the order of file and line."""

    group: I64
    """For each address its line, an index below the length."""
    files: tuple[str, ...]
    file: I64
    line: I64

    def __len__(self) -> int:
        return len(self.file)

    @classmethod
    def of(cls, names: PlaceNames, addresses: PlacedAddresses) -> SourceLines:
        """Lines of placed addresses (n,)."""
        found = names.raw_lines(addresses)
        pairs = found.file.astype(np.int64), found.line.astype(np.int64)
        file, line, group = distinct_pairs(*pairs)
        return cls(group, tuple(short_paths(found.files)), file, line)

    @property
    def known(self) -> Bools:
        """Which groups stand in a source file.

        Line 0 of it is one: compilers give it to code that they merged from several lines, as the
        jumps of computed gotos.
        """
        known: Bools = self.file >= 0
        return known

    def texts(self, rows: I64) -> list[str]:
        """`file:line` of known groups."""
        pairs = zip(self.file[rows].tolist(), self.line[rows].tolist(), strict=True)
        return [f"{self.files[file]}:{line}" for file, line in pairs]

    def notes(self, weight: npt.NDArray[np.generic], what: str) -> tuple[str, ...]:
        """How much of a weight of groups has no line, if any; `what` names its unit."""
        lost, total = int(weight[~self.known].sum()), int(weight.sum())
        merged = int(weight[self.known & (self.line == 0)].sum())
        notes = []
        if lost and lost == total:
            notes.append("None of this code has a source line.")
        elif lost:
            notes.append(f"{lost:,} of {total:,} {what} are of code that has no source line.")
        if merged:
            notes.append(
                f"{merged:,} of {total:,} {what} are of line 0: code that the compiler merged from "
                "several lines."
            )
        return tuple(notes)
