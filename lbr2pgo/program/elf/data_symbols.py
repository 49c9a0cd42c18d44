"""Where an image's data is, and which symbols it has."""

from __future__ import annotations

import numpy as np

from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.symbols import STT_OBJECT, Symbols
from lbr2pgo.support.addresses import ImageAddresses, PlacedAddresses, image_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.distinct import begins
from lbr2pgo.support.intervals import interval_of
from lbr2pgo.support.tables import Tabular, table


@table
class DataSymbols(Tabular):
    """Objects by address, none of which reaches into the next; columns of length n."""

    start: ImageAddresses
    end: ImageAddresses
    row: I64
    """In `Symbols`: the best of those at one address."""

    def containing(self, addresses: PlacedAddresses) -> I64:
        """The object (k,) that holds each address, -1 where none does."""
        return interval_of(self.start, self.end, addresses)


@table
class DataSections(Tabular):
    """Sections that are loaded, by address; columns of length n."""

    start: ImageAddresses
    end: ImageAddresses
    names: tuple[str, ...]

    def containing(self, addresses: PlacedAddresses) -> I64:
        """The section (k,) that holds each address, -1 where none does."""
        return interval_of(self.start, self.end, addresses)


def data_symbols(symbols: Symbols) -> DataSymbols:
    """Objects that have a size; of one inside another, the outer one ends where it begins."""
    is_object = (symbols.kind == STT_OBJECT) & (symbols.size > 0) & (symbols.section >= 0)
    rows = np.flatnonzero(is_object)
    rows = rows[np.lexsort((rows, symbols.preference[rows], symbols.start[rows]))]
    rows = rows[begins(symbols.start[rows])]
    start, end = symbols.start[rows], symbols.end[rows]
    end[:-1] = np.minimum(end[:-1], start[1:])
    return DataSymbols(start, end, rows)


def data_sections(image: Image) -> DataSections:
    """Of code, too, which may hold data; not of zeroed thread-local data, which has no place."""
    found = [s for s in image.sections if s.is_alloc and s.size and s.address and s.name != ".tbss"]
    found.sort(key=lambda section: section.address)
    start, end = (
        image_addresses(np.array(each, np.uint64))
        for each in ([s.address for s in found], [s.end for s in found])
    )
    return DataSections(start, end, tuple(s.name for s in found))
