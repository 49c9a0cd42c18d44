"""The functions of a program with pseudo probes: DWARF's, and symbols where there is no DWARF.

As llvm-profgen finds them (LLVM 22: ProfiledBinary.cpp, loadSymbolsFromSymtab): a probe profile
needs no debug information.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lbr2pgo.model.compat import LAST_NAMESAKES_PROBES, PROBES_OF_RUN_FUNCTIONS, Compat
from lbr2pgo.profiles.llvm.sample_names import (
    canonical_name,
    guid,
    original_name,
)
from lbr2pgo.program.dwarf.debug_info import DebugInfo, DwarfFunctions
from lbr2pgo.program.elf.symbols import STT_FUNC, Symbols
from lbr2pgo.program.pseudo_probes import ProbeTable, PseudoProbes
from lbr2pgo.support.addresses import ByteRanges, ImageAddresses, PlacedAddresses
from lbr2pgo.support.arrays import I64, Bools
from lbr2pgo.support.distinct import distinct


@dataclass(frozen=True, slots=True)
class ProbedFunctions:
    """Functions by address, as DWARF has them."""

    functions: DwarfFunctions
    is_known: Bools
    """Of each of `functions.names`: whether DWARF has it."""
    is_renamed: Bools
    """Whether a symbol in it has another name."""
    other_names: tuple[str, ...]
    """Those that symbols have."""

    @property
    def is_odd(self) -> Bools:
        """Whether not all agree on the function's name."""
        return self.is_renamed | ~self.is_known


def probed_functions(
    debug: DebugInfo, symbols: Symbols, addresses: PlacedAddresses
) -> ProbedFunctions:
    """The functions around these addresses, with all their pieces, and some others."""
    described = debug.functions_for(addresses)
    outside = addresses[described.containing(addresses) < 0]
    functions = _merged(described, _pieces(symbols, outside))
    is_known = np.arange(len(functions.names)) < len(described.names)
    is_renamed = np.zeros(len(functions.names), np.bool_)
    others = []
    for row, piece in _symbols_in(functions, functions.containing(addresses), symbols):
        name, function = _stripped(symbols, row), int(functions.function[piece])
        if name != functions.names[function]:
            is_renamed[function] = True
            others.append(name)
    return ProbedFunctions(functions, is_known, is_renamed, tuple(others))


def _symbols_in(
    functions: DwarfFunctions, pieces: I64, symbols: Symbols
) -> Iterator[tuple[int, int]]:
    """Function symbols that start in these pieces, and in which; -1 is no piece."""
    is_meant = np.zeros(len(functions.range_start) + 1, np.bool_)  # the last one: of no function
    is_meant[pieces] = True
    is_meant[-1] = False
    rows = np.flatnonzero(_is_sized_function(symbols))
    place = functions.containing(symbols.start[rows])
    found = is_meant[place]
    return zip(rows[found].tolist(), place[found].tolist(), strict=True)


def function_names(debug: DebugInfo, symbols: Symbols) -> frozenset[str]:
    """The names of all functions in the program."""
    described = debug.functions()
    rows = np.flatnonzero(_is_sized_function(symbols))
    rows = rows[described.containing(symbols.start[rows]) < 0]
    return frozenset(described.names) | {_stripped(symbols, row) for row in rows.tolist()}


def _is_sized_function(symbols: Symbols) -> Bools:
    is_sized: Bools = (symbols.kind == STT_FUNC) & (symbols.size > 0)
    return is_sized


def _stripped(symbols: Symbols, row: int) -> str:
    return original_name(symbols.names[row])


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Code of symbols, ordered by address; columns of equal length."""

    start: ImageAddresses
    end: ImageAddresses
    name: tuple[str, ...]


def _pieces(symbols: Symbols, addresses: PlacedAddresses) -> _Pieces:
    """The pieces of all functions whose symbols span any of these addresses."""
    rows = symbols.covering(addresses)
    rows = distinct(rows[rows >= 0])
    wanted = {_stripped(symbols, row) for row in rows.tolist()}
    found: dict[int, tuple[int, str]] = {}
    for row in np.flatnonzero(_is_sized_function(symbols)).tolist() if wanted else ():
        name = _stripped(symbols, row)
        if name in wanted:
            found.setdefault(int(symbols.start[row]), (row, name))  # of aliases the first
    chosen = np.array([row for row, _ in found.values()], np.int64)
    names = tuple(name for _, name in found.values())
    return _Pieces(symbols.start[chosen], symbols.end[chosen], names)


def _merged(described: DwarfFunctions, pieces: _Pieces) -> DwarfFunctions:
    """DWARF's functions, and pieces that are in none of them."""
    is_new = described.containing(pieces.start) < 0
    numbers = {name: number for number, name in enumerate(described.names)}
    added = [numbers.setdefault(pieces.name[i], len(numbers)) for i in np.flatnonzero(is_new)]
    start = np.concatenate((described.range_start, pieces.start[is_new]))
    end = np.concatenate((described.range_end, pieces.end[is_new]))
    function = np.concatenate((described.function, np.array(added, np.int32)))
    order: I64 = np.argsort(start, kind="stable")
    return DwarfFunctions(start[order], end[order], function[order], tuple(numbers))


def probes_of(
    probes: PseudoProbes, known: ProbedFunctions, addresses: PlacedAddresses, compat: Compat
) -> ProbeTable:
    """The probes of the functions around these addresses."""
    functions = known.functions
    place = functions.containing(addresses)
    owners = distinct(functions.function[place[place >= 0]])
    rows = np.flatnonzero(np.isin(functions.function, owners))
    records = probes.records(of_last_namesake=compat.follows(LAST_NAMESAKES_PROBES))
    records = records.touching(_joined(functions.ranges.take(rows)))
    if compat.follows(PROBES_OF_RUN_FUNCTIONS):
        names = {functions.names[i] for i in owners.tolist()} | set(known.other_names)
        guids = np.array([guid(name) for name in names], np.uint64)
        records = records.take(np.isin(records.guid, guids))
    return probes.table(records)


def _joined(ranges: ByteRanges) -> ByteRanges:
    """Ranges ordered by start, those that overlap as one."""
    reach = np.maximum.accumulate(ranges.end)
    is_first = np.ones(len(ranges), np.bool_)
    is_first[1:] = ranges.start[1:] > reach[:-1]
    is_last = np.append(is_first[1:], True)
    return ByteRanges(ranges.start[is_first], reach[is_last[: len(ranges)]])


def names_by_probes(
    names: Sequence[str], is_called: Bools, known: ProbedFunctions, table: ProbeTable
) -> tuple[str, ...]:
    """Names of functions; of those that are called, the names that probes give them.

    Symbols say otherwise of several functions that were folded into one, and of aliases: then it is
    the one whose profile there is (LLVM 22: loadSymbolsFromPseudoProbe).
    """
    found = list(names)
    functions = known.functions
    first = np.searchsorted(table.address, functions.range_start)
    past = np.searchsorted(table.address, functions.range_end)
    is_wanted = (is_called & known.is_renamed)[functions.function] & (first < past)
    for row in np.flatnonzero(is_wanted).tolist()[::-1]:  # the first piece with probes counts
        top = table.tree.path(int(table.node[first[row]]))[0]
        found[functions.function[row]] = canonical_name(table.tree.name(top))
    return tuple(found)
