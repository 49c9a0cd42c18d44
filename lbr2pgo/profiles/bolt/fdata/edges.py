"""Rows of fdata while they still are addresses."""

from __future__ import annotations

from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.tables import table


@table
class FdataEdges:
    """Rows of fdata: functions (-1: outside of all), and addresses; m rows, with repeats."""

    from_function: I64
    from_: ImageAddresses
    to_function: I64
    to: ImageAddresses
    mispredicted: U64
    count: U64
