"""Written fdata: recognised, read, shown as text, and asked."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np

from lbr2pgo.model.branch_counts import BranchCounts
from lbr2pgo.profiles.bolt.fdata import fdata_fit, fdata_sums, fdata_text
from lbr2pgo.profiles.bolt.fdata.derive_fdata import fdata_from_counts
from lbr2pgo.profiles.bolt.fdata.fdata_tables import Fdata, FdataTable
from lbr2pgo.profiles.bolt.fdata.placed_counts import counts_of_fdata
from lbr2pgo.profiles.reader import Merging, ProfileOverlap, Reader
from lbr2pgo.profiles.staleness import Staleness
from lbr2pgo.profiles.work import Work
from lbr2pgo.program.program import Program
from lbr2pgo.support.arrays import I64


class FdataReader(Reader[Fdata]):
    """See `Reader`."""

    kind = "BOLT fdata"
    has_counts = True
    merging = Merging(fdata_sums.merged, fdata_text.write)

    def recognises(self, head: bytes) -> bool:
        """See `Reader`."""
        return fdata_text.is_fdata(head)

    def read(self, path: Path) -> Fdata:
        """See `Reader`."""
        return fdata_text.read(path)

    def lines(self, content: Fdata) -> Iterator[str]:
        """As llvm-bolt reads them."""
        stream = BytesIO()
        fdata_text.write(content, stream)
        written = stream.getvalue().decode("utf-8", "surrogateescape")
        return iter(written.removesuffix("\n").split("\n") if written else ())

    def of_function(self, content: Fdata, function: str) -> Iterator[str] | None:
        """Lines that begin or end in the function; None if it has no name here."""
        wanted = [i for i, name in enumerate(content.names) if function in (name, _plain(name))]
        if not wanted:
            return None
        return self.lines(content.with_tables(lambda table: table.take(_rows(table, wanted))))

    def functions(self, content: Fdata) -> tuple[str, ...]:
        """All names."""
        return content.names

    def staleness(self, content: Fdata, program: Program) -> Staleness:
        """See `Reader`."""
        return fdata_fit.of_fdata(content, program)

    def overlap(self, base: Fdata, test: Fdata) -> ProfileOverlap | None:
        """See `Reader`."""
        return fdata_fit.overlap(base, test)

    def counts(self, content: Fdata, program: Program) -> BranchCounts:
        """See `Reader`."""
        return counts_of_fdata(content, program)

    def derived(self, work: Work, like: Fdata | None) -> Fdata:
        """See `Reader`."""
        return fdata_from_counts(work.counts, work.program)[0]


def _plain(name: str) -> str:
    """A local symbol's name without what BOLT puts behind it (`name/file.c/1`)."""
    return name.partition("/")[0]


def _rows(table: FdataTable, names: list[int]) -> I64:
    """Rows that begin or end in one of these names."""
    found = np.zeros(len(table), dtype=np.bool_)
    for letter, column in zip(table.form, table.columns(), strict=True):
        if letter == "n":
            found |= np.isin(column, names)
    return np.flatnonzero(found)


FDATA = FdataReader()
