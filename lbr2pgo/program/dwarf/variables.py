"""Variables that have an address of their own, and which field of their types is at an address."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.program.dwarf import _variables as native
from lbr2pgo.program.dwarf._units import Sections
from lbr2pgo.program.dwarf.data_types import DataField, DataTypes
from lbr2pgo.program.dwarf.unit import Dwarf
from lbr2pgo.support.addresses import ImageAddresses, PlacedAddresses, image_addresses
from lbr2pgo.support.arrays import I64, Records
from lbr2pgo.support.distinct import begins, rows_by
from lbr2pgo.support.intervals import last_at_or_below
from lbr2pgo.support.tables import Tabular, table


def static_variables(dwarf: Dwarf, unit: int, sections: Sections) -> tuple[Records, int]:
    """Rows of `STATIC` of a unit, and how reading ended (see `program.dwarf.function.ENDINGS`)."""
    return native.static_variables(sections, dwarf.units, unit, dwarf.abbreviations)


@table
class StaticVariables(Tabular):
    """Of a program, each address once; columns of length n, ascending by address."""

    address: ImageAddresses
    offset: I64
    """Of its entry in `.debug_info`."""
    file: I64
    """Which of the files that is in."""
    files: tuple[Dwarf, ...]

    @classmethod
    def of_units(cls, units: Sequence[tuple[Dwarf, Records]]) -> StaticVariables:
        """Those that units have, as `static_variables` tells; of several at an address the first.

        What linkers folded or kept of several units has one address.
        """
        files = tuple({id(dwarf): dwarf for dwarf, _ in units}.values())
        number = {id(dwarf): i for i, dwarf in enumerate(files)}
        rows = np.concatenate([np.zeros(0, native.STATIC), *(found for _, found in units)])
        file = np.repeat([number[id(d)] for d, _ in units], [len(found) for _, found in units])
        order = np.argsort(rows["address"], kind="stable")
        order = order[begins(rows["address"][order])]
        address = image_addresses(np.ascontiguousarray(rows["address"][order]))
        return cls(address, rows["offset"][order], file[order].astype(np.int64), files)

    def fields(self, addresses: PlacedAddresses) -> tuple[I64, tuple[DataField, ...]]:
        """The fields of types at (n,) addresses: a number for each, -1 where none is known."""
        types, numbers = DataTypes(), dict[DataField, int]()
        found = np.full(len(addresses), -1, np.int64)
        row = last_at_or_below(self.address, addresses)
        for variable, there in rows_by(row):
            if variable < 0:
                continue
            kind = types.of_variable(self.files[self.file[variable]], int(self.offset[variable]))
            behind = (addresses[there] - self.address[variable]).astype(np.int64)
            there, behind = (each[behind < types.size(kind)] for each in (there, behind))
            kind = types.element(kind)
            places, at = np.unique(behind % max(types.size(kind), 1), return_inverse=True)
            fields = (types.field(kind, place) for place in places.tolist())
            number = [numbers.setdefault(field, len(numbers)) for field in fields]
            found[there] = np.array(number, np.int64)[at]
        return found, tuple(numbers)
