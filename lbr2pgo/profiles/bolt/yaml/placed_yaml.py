"""A profile in BOLT's YAML as fdata of a program: blocks become the places of their instructions.

Blocks are numbered as they lie in the function, and other functions as they lie in the program,
from 1 on. Both numbers fit only the build that the profile is of, so a function whose number of
blocks is another one now keeps its counts at places that the program does not have.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.profiles.bolt.fdata.fdata_tables import (
    GLOBAL_SYMBOL,
    Fdata,
    FdataBranches,
    in_bolt_order,
)
from lbr2pgo.profiles.bolt.yaml.yaml_tables import YamlFunction, tables
from lbr2pgo.profiles.bolt.yaml.yaml_text import YamlProfile
from lbr2pgo.program.blocks.binary_context import BinaryContext, analyze
from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.sums import refuse_too_many

NOWHERE = int(np.iinfo(np.uint64).max)
"""The offset of what has no place."""

_Row = tuple[str, int, str, int, int, int]
"""As a line of fdata: name and offset of either end, mispredictions and count."""


def fdata_of_yaml(profile: YamlProfile, program: Program, where: str | None = None) -> Fdata:
    """The rows of a profile in BOLT's order; counts of 0 are left out, and calls of the unknown.

    Raises InputError for what BOLT does not write, and for counts that are too large; `where`
    names the file.
    """
    known = tables(profile, where)
    functions = discover(program.image, program.symbols)
    number = {name: i for i, name in enumerate(functions.names)}
    held = np.array([number[name] for name in known if name in number], np.int64)
    context = analyze(program, functions.start[held], keep_all=True)
    callee = {f.head.numbers.get("fid", 0): name for name, f in known.items()}
    if all(functions.names[fid - 1 : fid] == (name,) for fid, name in callee.items()):
        # BOLT numbers entries of the linkage table in another order.
        named = np.flatnonzero(~functions.is_pseudo).tolist()
        callee = {i + 1: functions.names[i] for i in named}
    rows = [
        row
        for name, function in known.items()
        for row in _rows(function, _Blocks(context, number.get(name), function), callee)
    ]
    return _fdata(rows)


class _Blocks:
    """Where the blocks of a function are, as offsets in it."""

    def __init__(self, context: BinaryContext, function: int | None, profile: YamlFunction) -> None:
        self._first: list[int] = []
        self._last: list[int] = []
        self._jumps: dict[tuple[int, int], int] = {}
        if function is None:
            return
        rows = np.flatnonzero(context.blocks.function == function)
        if len(rows) == profile.head.numbers.get("nblocks"):
            start = context.functions.start[function]
            self._first = (context.blocks.start[rows] - start).tolist()
            self._last = (context.blocks.last[rows] - start).tolist()
            self._jumps = _conditional_jumps(context, rows, int(start))

    def first(self, block: int) -> int:
        """Offset of a block's first instruction."""
        return self._first[block] if block < len(self._first) else NOWHERE

    def branch(self, block: int, target: int) -> int:
        """Offset of the instruction by which control leaves a block for one at an offset."""
        last = self._last[block] if block < len(self._last) else NOWHERE
        return self._jumps.get((block, target), last)


def _conditional_jumps(context: BinaryContext, rows: I64, start: int) -> dict[tuple[int, int], int]:
    """Conditional jumps in front of another jump, by block (of these rows) and target."""
    code = context.code
    last = code.at(context.blocks.last[rows])
    before = np.maximum(last - 1, 0)
    jumps = code.is_kind(Kind.COND)[before] & code.is_kind(Kind.JUMP)[last]
    jumps &= code.address[before] >= context.blocks.start[rows]
    return {
        (block, int(code.target[row]) - start): int(code.address[row]) - start
        for block, row in zip(np.flatnonzero(jumps).tolist(), before[jumps].tolist(), strict=True)
    }


def _rows(function: YamlFunction, blocks: _Blocks, callee: dict[int, str]) -> Iterator[_Row]:
    name = function.name
    for number, block in function.blocks.items():
        for key, (count, missed) in block.counts("succ"):
            target = blocks.first(dict(key).get("bid", NOWHERE))
            if count:
                yield name, blocks.branch(number, target), name, target, missed, count
        first = blocks.first(number)
        for key, (count, missed) in block.counts("calls"):
            called = dict(key)
            entry = callee.get(called.get("fid", 0))
            if count and entry is not None and not called.get("disc"):
                place = min(first + called.get("off", 0), NOWHERE)
                yield name, place, entry, 0, missed, count


def _fdata(rows: list[_Row]) -> Fdata:
    names = sorted({row[0] for row in rows} | {row[2] for row in rows})
    index = {name: i for i, name in enumerate(names)}
    numbers = (np.array([row[i] for row in rows], np.uint64) for i in (1, 3, 4, 5))
    from_offset, to_offset, mispredicted, count = numbers
    refuse_too_many(count)
    kind = np.full(len(rows), GLOBAL_SYMBOL, np.uint8)
    from_name = np.array([index[row[0]] for row in rows], np.int32)
    to_name = np.array([index[row[2]] for row in rows], np.int32)
    return in_bolt_order(
        Fdata(
            tuple(names),
            FdataBranches(
                kind, from_name, from_offset, kind, to_name, to_offset, mispredicted, count
            ),
        )
    )
