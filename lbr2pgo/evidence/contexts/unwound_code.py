"""The code that samples touch, as unwinding looks at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.model.compat import (
    ASTRAY_COUNT,
    CALLERS_AS_RECORDED,
    CALLS_END_RUNS,
    CODE_BY_SYMBOLS,
    TRAPS_DONT_END_RUNS,
)
from lbr2pgo.program.code.decode import decode
from lbr2pgo.program.code.instructions import CALLS, InstructionTable, Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.llvm_code import disassembled_by_llvm
from lbr2pgo.replay.replay import ReplayOptions, line_ends
from lbr2pgo.support.addresses import PlacedAddresses, placed_addresses
from lbr2pgo.support.arrays import I64, U8, U64, Bools
from lbr2pgo.support.distinct import among, distinct, inverse
from lbr2pgo.support.intervals import first_at_or_above
from lbr2pgo.support.tables import taken


@dataclass(frozen=True, slots=True)
class UnwoundPlaces:
    """What stands at placed addresses; columns of equal length."""

    address: PlacedAddresses
    is_code: Bools
    """Whether an instruction starts there."""
    marks: U8
    """Of that instruction: bits of `native.unwinder`."""
    call: PlacedAddresses
    """The call that an address stands behind, 0 for none."""
    function: I64
    """A number of the function there, -1 for none; parts of one have the same."""
    callee: I64
    """That of the function which the call names, -2 for none."""
    target: PlacedAddresses
    """Where the instruction goes, 0 for no place."""

    def __len__(self) -> int:
        return len(self.address)


class TouchedCode:
    """Instructions of all functions that were asked for so far.

    Those that replay has decoded already are most of them, and are not copied.
    """

    def __init__(
        self, program: Program, options: ReplayOptions, decoded: InstructionTable | None = None
    ) -> None:

        from lbr2pgo.evidence.contexts import _unwinder

        self.program, self._options, self._bits = program, options, _unwinder
        by_symbols = options.compat.follows(CODE_BY_SYMBOLS)
        self._seen = disassembled_by_llvm(program) if by_symbols else None
        self._tables = [decoded or InstructionTable.empty(), InstructionTable.empty()]
        self._stops = [self._stops_of(table) for table in self._tables]
        self._is_touched = among(program.regions.start, self._tables[0].address)
        self._entries = np.sort(program.functions.start)

    @property
    def size(self) -> int:
        """Instructions that are known so far; what depends on all of them holds until it grows."""
        return sum(map(len, self._tables))

    def touch(self, addresses: PlacedAddresses) -> None:
        """Take the functions at these placed addresses in."""
        regions = self.program.regions
        # The call before a return address may be the last instruction of the function before.
        places = np.concatenate((addresses, addresses[addresses > 0] - np.uint64(1)))
        found = distinct(regions.containing(places))
        found = found[found >= 0]
        new = found[~self._is_touched[found]]
        if len(new):
            new = regions.families(new)
            new = new[~self._is_touched[new]]
            self._is_touched[new] = True
            table = decode(self.program.image, regions.ranges.take(new))
            self._tables[1] = self._tables[1].merged(table)
            self._stops[1] = self._stops_of(self._tables[1])

    def leaving(self, functions: I64) -> InstructionTable:
        """All that may leave the fall-through in functions of these numbers."""
        regions = self.program.regions
        self.touch(regions.start[functions])
        pieces = regions.ranges.take(regions.families(functions))
        tables = (table.within(pieces) for table in self._tables)
        one, other = (t.take(np.flatnonzero(t.kind != Kind.OTHER)) for t in tables)
        return one.merged(other)

    def places(self, addresses: PlacedAddresses) -> UnwoundPlaces:
        """What stands at addresses in functions that were touched, or outside all code."""
        order = np.argsort(addresses)  # what ascends is found in a fraction of the time
        return taken(self._places(addresses[order]), inverse(order))

    def _places(self, addresses: PlacedAddresses) -> UnwoundPlaces:
        kind, _, target, is_code = self._instructions(addresses)
        call, callee = self._calls_before(addresses, is_code)
        return UnwoundPlaces(
            addresses,
            is_code,
            self._marks(addresses, kind, target, is_code),
            call,
            self.functions_at(addresses),
            callee,
            target,
        )

    def stops(self, addresses: PlacedAddresses) -> I64:
        """(n,): how many instructions before each one end the fall-through or precede a gap."""
        found = np.zeros(len(addresses), np.int64)
        for stops in self._stops:
            found += first_at_or_above(stops, addresses)
        return found

    def _stops_of(self, table: InstructionTable) -> U64:
        """Addresses of the instructions that do."""
        ends, calls = line_ends(table, self._options)
        compat = self._options.compat
        if self._options.strict or compat.follows(CALLS_END_RUNS):
            ends = ends | calls
        if not compat.follows(TRAPS_DONT_END_RUNS):
            ends[:-1] |= table.run[1:] != table.run[:-1]
        return table.address[ends]

    def _instructions(
        self, addresses: PlacedAddresses
    ) -> tuple[U8, PlacedAddresses, PlacedAddresses, Bools]:
        """Kind, end and target (0 for none) of the instruction at each address, if there is one."""
        size = len(addresses)
        kind, found = np.full(size, Kind.OTHER, np.uint8), np.zeros(size, np.bool_)
        end, target = (placed_addresses(np.zeros(size, np.uint64)) for _ in range(2))
        for table in self._tables:
            row = table.index_of(addresses)
            at = np.flatnonzero(row >= 0)
            row = row[at]
            kind[at], found[at] = table.kind[row], True
            end[at] = table.address[row] + table.size[row]
            target[at] = np.where(table.has_target[row], table.target[row], 0)
        if self._seen is not None:
            found &= self._seen.around(addresses) >= 0
        return kind, end, target, found

    def _marks(
        self, addresses: PlacedAddresses, kind: U8, target: PlacedAddresses, is_code: Bools
    ) -> U8:
        bits = self._bits
        marks = np.where(np.isin(kind, CALLS), np.uint8(bits.CALL), np.uint8(0))
        marks[kind == Kind.RET] = bits.RETURN
        if not self._options.compat.follows(ASTRAY_COUNT):
            marks[target > 0] |= bits.DIRECT
            marks[is_code & (kind == Kind.OTHER)] |= bits.NO_BRANCH_THERE
        if not self._options.compat.follows(CALLERS_AS_RECORDED):
            is_entry = among(addresses, self._entries)
            marks[is_entry] |= bits.ENTRY
            # Whoever calls has given the frame pointer, and gets it back.
            is_outer = is_entry | (kind == Kind.RET)
            marks[is_outer | self.program.frame_ranges.lack_frame(addresses)] |= bits.FRAMELESS
        return marks

    def _calls_before(
        self, addresses: PlacedAddresses, is_code: Bools
    ) -> tuple[PlacedAddresses, I64]:
        """For each return address the call that stands before it, 0 for none, and what it names."""
        before = placed_addresses(np.zeros(len(addresses), np.uint64))
        for table in self._tables:
            row = first_at_or_above(table.address, addresses) - 1
            at = np.flatnonzero(row >= 0)
            before[at] = np.maximum(before[at], table.address[row[at]])
        kind, end, target, _ = self._instructions(before)
        is_call = np.isin(kind, CALLS)
        # To llvm-profgen nothing may follow a call that never returns.
        is_plain = self._options.compat.follows(CALLERS_AS_RECORDED)
        is_call &= is_code if is_plain else end == addresses
        is_named = is_call & (target > 0)
        return np.where(is_call, before, 0), np.where(is_named, self.functions_at(target), -2)

    def functions_at(self, addresses: PlacedAddresses) -> I64:
        """A number of the function at each address, -1 for none; parts of one have the same."""
        regions = self.program.regions
        found: I64 = np.append(regions.parent, -1)[regions.containing(addresses)]
        return found
