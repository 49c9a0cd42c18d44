"""`Idioms`: what BOLT looks for in the code of one architecture (BOLT: MCPlusBuilder)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

from lbr2pgo.program.blocks.disassembly import Disassembly
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import I64, U8, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.tables import table


@table
class TableUses:
    """Places that use jump tables; columns of length n."""

    table: ImageAddresses
    """Address of the table."""
    function: I64
    jump: ImageAddresses
    """Address of the jump, 0 if unknown."""
    is_distances: Bools
    """Whether entries are distances from the table's start instead of addresses."""

    def joined(self, other: TableUses) -> TableUses:
        """The rows of both."""
        columns = ("table", "function", "jump", "is_distances")
        both = [np.concatenate([getattr(self, c), getattr(other, c)]) for c in columns]
        return TableUses(*both)


def _as_it_is(code: Disassembly) -> Disassembly:
    return code


def _no_addresses(_: Disassembly) -> tuple[I64, ImageAddresses]:
    return np.empty(0, np.int64), np.empty(0, np.uint64)


def _no_tables(_: Disassembly) -> TableUses:
    rows, addresses = _no_addresses(_)
    return TableUses(addresses, rows, addresses, np.empty(0, np.bool_))


def _none_unsupported(code: Disassembly) -> Bools:
    return np.zeros(len(code), np.bool_)


def _no_branches(_pieces: Iterable[tuple[U8, int]], _targets: ImageAddresses) -> ImageAddresses:
    return np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Switch:
    """What a jump through a table is taken for."""

    first: int = 0
    """The value of the table's first entry."""
    count: int | None = None
    """Entries of the table; None where no comparison says it."""
    default: int | None = None
    """Where it goes for all other values; None if nothing says it."""


def _no_switch(_code: Disassembly, _row: int) -> Switch:
    return Switch()


def _no_condition(_code: bytes, _before: bytes) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Idioms:
    """By default, none."""

    normalized: Callable[[Disassembly], Disassembly] = _as_it_is
    """The instructions as LLVM's disassembler parts them and BOLT takes them."""
    taken_addresses: Callable[[Disassembly], tuple[I64, ImageAddresses]] = _no_addresses
    """Rows of the instructions that take an address near their own, and the addresses."""
    jump_tables: Callable[[Disassembly], TableUses] = _no_tables
    """Tables that indirect jumps use."""
    switch: Callable[[Disassembly, int], Switch] = _no_switch
    """The values behind the entries of the table that the indirect jump at a row uses."""
    condition: Callable[[bytes, bytes], str | None] = _no_condition
    """For what a conditional branch, after the instruction before it, is taken (`== 5`); None if
    that is not visible."""
    unsupported: Callable[[Disassembly], Bools] = _none_unsupported
    """Instructions that BOLT can't move."""
    padding: re.Pattern[bytes] | None = None
    """What compilers put between functions; None if that is not known."""
    branches_to: Callable[[Iterable[tuple[U8, int]], ImageAddresses], ImageAddresses] = _no_branches
    """Sources of what looks, at any byte of some code, like a direct branch to one of the targets.
    Takes pieces of it with their addresses, and the targets, which ascend."""
