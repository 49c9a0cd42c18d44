from typing import TypeVar

from lbr2pgo.support.arrays import I64, U64

Number = TypeVar("Number", I64, U64)

def last_at_or_below(starts: Number, values: Number) -> I64:
    """See `support.intervals`."""

def first_at_or_above(ordered: Number, values: Number) -> I64:
    """See `support.intervals`."""

def interval_of(starts: Number, ends: Number, values: Number) -> I64:
    """See `support.intervals`."""

def place_of(values: Number, ordered: Number) -> I64:
    """See `support.distinct`."""
