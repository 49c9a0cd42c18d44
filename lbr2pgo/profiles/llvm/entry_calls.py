"""Branches to function entries, which are calls to a sample profile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.model.branch_counts import TO
from lbr2pgo.model.compat import OUTSIDE_CALLS, Compat
from lbr2pgo.profiles.llvm.sample_names import canonical_name
from lbr2pgo.program.dwarf.debug_info import DwarfFunctions
from lbr2pgo.program.elf.symbols import Symbols
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64, Bools
from lbr2pgo.support.tables import table
from lbr2pgo.support.texts import Texts

EXTERNAL = np.uint64(1)
"""Where llvm-profgen believes to be what is outside the image. If debug information of dropped
code was left at this address, that code gets the calls (LLVM: tools/llvm-profgen/PerfReader.h)."""


@table
class EntryCalls:
    """Branches to function entries; columns of equal length."""

    source: PlacedAddresses
    """Image address of the branch; EXTERNAL if it came from outside."""
    has_source: Bools
    """Whether it is a call of the source's function."""
    callee: I64
    """Index into `names`."""
    count: U64
    names: Sequence[str]


def calls_to_entries(
    flow: Flow, symbols: Symbols, functions: DwarfFunctions, is_odd: Bools | None = None,
    *, compat: Compat,
) -> EntryCalls:  # fmt: skip
    """Calls of the functions given, and tail calls, which can't be told from them.

    Debug information says where functions begin: one whose first bytes are no instruction is called
    all the same. `is_odd` as in `entries_at`; by `OUTSIDE_CALLS`, those from outside are made at
    EXTERNAL.
    """
    branches = flow.branches
    entry, names = entries_at(branches.to, symbols, functions, is_odd)
    is_call = (branches.known & TO != 0) & (entry >= 0)
    inside = flow.branch_from[is_call] >= 0
    return EntryCalls(
        source=np.where(inside, branches.from_[is_call], EXTERNAL),
        has_source=inside | compat.follows(OUTSIDE_CALLS),
        callee=entry[is_call],
        count=branches.count[is_call],
        names=names,
    )


def entries_at(
    addresses: PlacedAddresses,
    symbols: Symbols,
    functions: DwarfFunctions,
    is_odd: Bools | None = None,
) -> tuple[I64, Sequence[str]]:
    """The function that is entered at each address (n,), an index into the names; -1 for none.

    `is_odd` tells, of each name in `functions`, whether not all agree that it is the function's.
    """
    names = _canonical(functions.names)
    place = functions.containing(addresses)
    is_entry = place >= 0
    is_entry[is_entry] = functions.range_start[place[is_entry]] == addresses[is_entry]
    is_entry[is_entry] = _is_entry(symbols, functions, names, is_odd)[place[is_entry]]
    function = np.append(functions.function, -1).astype(np.int64)
    return np.where(is_entry, function[place], -1), names


def _canonical(names: Sequence[str]) -> Texts:
    """All names as clang looks them up: those with a dot may be others."""
    texts = Texts.of(names)
    rows = np.flatnonzero(texts.holding(b"."))
    return texts.but(rows, [canonical_name(name) for name in texts.take(rows)])


def _is_entry(
    symbols: Symbols, functions: DwarfFunctions, names: Sequence[str], is_odd: Bools | None
) -> Bools:
    """Which ranges begin with their function's entry.

    A function's only range does, if any symbol stands in it; of several, the one in which a
    symbol with the function's name stands, or any symbol if that name is not sure
    (LLVM: ProfiledBinary::setIsFuncEntry).
    """
    place = functions.containing(symbols.start)
    has_symbol = np.zeros(len(functions.range_start), dtype=np.bool_)
    has_symbol[place[place >= 0]] = True
    pieces = np.bincount(functions.function, minlength=len(names))
    is_sure = pieces == 1 if is_odd is None else (pieces == 1) | is_odd
    is_entry: Bools = has_symbol & is_sure[functions.function]
    is_split = np.append(has_symbol & ~is_entry, False)  # the last one: of no function
    for row in np.flatnonzero(is_split[place]).tolist():
        function = int(functions.function[place[row]])
        if canonical_name(symbols.names[row]) == functions.names[function]:
            is_entry[place[row]] = True
    return is_entry
