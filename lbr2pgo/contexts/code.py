"""The code that samples touch, as unwinding looks at it."""

from __future__ import annotations

import numpy as np

from lbr2pgo.program.code.instructions import InstructionTable, Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.llvm_code import disassembled_by_llvm
from lbr2pgo.replay.replay import CALLS, ReplayOptions, line_ends
from lbr2pgo.support.addresses import ImageAddresses
from lbr2pgo.support.arrays import I64, U8, Bools
from lbr2pgo.support.distinct import distinct


class TouchedCode:
    """Instructions of all functions that were asked for so far."""

    def __init__(self, program: Program, options: ReplayOptions) -> None:
        self._program, self._options = program, options
        self._is_touched: Bools = np.zeros(len(program.regions), np.bool_)
        self._seen = disassembled_by_llvm(program) if options.as_llvm else None
        self.instructions = InstructionTable.empty()

    def touch(self, addresses: ImageAddresses) -> bool:
        """Take the functions at these image addresses in; whether there were new ones."""
        regions = self._program.regions
        # The call before a return address may be the last instruction of the function before.
        places = np.concatenate((addresses, addresses[addresses > 0] - np.uint64(1)))
        found = regions.containing(places)
        found = found[found >= 0]
        if self._is_touched[found].all():
            return False
        self._is_touched[regions.families(distinct(found))] = True
        starts = regions.start[self._is_touched]
        self.instructions = self._program.instructions_for(starts)
        return True

    def marks(self) -> U8:
        """(m,): bits of `native.unwinder`."""
        from lbr2pgo.native import unwinder

        kind, address = self.instructions.kind, self.instructions.address
        marks = np.where(np.isin(kind, CALLS), np.uint8(unwinder.CALL), np.uint8(0))
        marks[kind == Kind.RET] = unwinder.RETURN
        if not self._options.as_llvm:
            is_entry = np.isin(address, self._program.functions.start)
            marks[is_entry] |= unwinder.ENTRY
            # Whoever calls has given the frame pointer, and gets it back.
            is_outer = is_entry | (kind == Kind.RET)
            marks[is_outer | self._program.frame_ranges.lack_frame(address)] |= unwinder.FRAMELESS
        return marks

    def stops(self) -> I64:
        """(m,): how many instructions before each one end the straight line or precede a gap."""
        table, options = self.instructions, self._options
        ends, calls = line_ends(table, options)
        stops = ends | calls if options.as_llvm or options.strict else ends.copy()
        if not options.as_llvm:
            stops[:-1] |= table.run[1:] != table.run[:-1]
        return np.cumsum(stops, dtype=np.int64) - stops

    def rows_at(self, addresses: ImageAddresses) -> I64:
        """For each address the instruction that starts there, else -1."""
        if self._seen is None:
            return self.instructions.index_of(addresses)
        return np.where(
            self._seen.around(addresses) >= 0, self.instructions.index_of(addresses), -1
        )

    def calls_before(self, addresses: ImageAddresses) -> I64:
        """For each return address the call instruction that stands before it, else -1."""
        table = self.instructions
        rows = np.searchsorted(table.address, addresses) - 1
        is_call = rows >= 0
        is_call[is_call] = np.isin(table.kind[rows[is_call]], CALLS)
        if self._options.as_llvm:
            is_call &= self.rows_at(addresses) >= 0  # nothing may follow a call that never returns
        else:
            is_call[is_call] = table.end[rows[is_call]] == addresses[is_call]
        return np.where(is_call, rows, -1)

    def functions(self, addresses: ImageAddresses) -> I64:
        """A number of the function at each address, -1 for none; parts of one have the same."""
        regions = self._program.regions
        at = regions.containing(addresses)
        return np.where(at >= 0, np.append(regions.parent, -1)[at], -1)

    def callees(self, calls: I64) -> I64:
        """A number of the function that each call names, -2 where there is none."""
        table = self.instructions
        is_named = calls >= 0
        is_named[is_named] = table.has_target[calls[is_named]]
        callees = np.full(len(calls), -2)
        callees[is_named] = self.functions(table.target[calls[is_named]])
        return callees
