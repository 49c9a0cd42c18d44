"""What functions do, told so that it can be found again in another build.

Addresses, padding and the order of blocks differ from build to build; registers and instructions
do where the compiler was given other source. So each block is told twice, strictly and loosely, and
by how often it has each word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from lbr2pgo.program.blocks.binary_context import analyze, idioms_of
from lbr2pgo.program.blocks.binary_functions import BinaryFunctions
from lbr2pgo.program.blocks.indirect_jumps import labels_in_order
from lbr2pgo.program.blocks.jump_tables import table_entries
from lbr2pgo.program.blocks.references import read_references
from lbr2pgo.program.code.decode import text
from lbr2pgo.program.code.instructions import CALLS, Kind
from lbr2pgo.program.demangle import without_unique_suffix
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import placed_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.dataclass import dataclass

_ADDRESS = re.compile(r"-?0x[0-9a-f]+(?=\(%rip\))|0x[0-9a-f]{5,}")
"""What operands tell of where code and data lie."""
_PASSES = re.compile(r"(?:c\.)?nop|endbr64|int3|bti|data16")
"""Instructions that tell nothing of what a block does."""
_JUMPS = (Kind.COND, Kind.JUMP)
_LOCAL_NUMBER = re.compile(r"(/[^/]+)?/\d+$")
"""What BOLT puts behind the name of a local function."""


def plain_name(name: str) -> str:
    """What fdata calls a function, without what tells it from others of its name."""
    return without_unique_suffix(_LOCAL_NUMBER.sub("", name))


@dataclass(frozen=True, slots=True)
class CodeCall:
    """A call, or a jump to another function."""

    offset: int
    """Of its instruction, in the function."""
    callee: str
    """Empty where it is told at run time."""


@dataclass(frozen=True)
class BlockCode:
    """A block of a function."""

    first: int
    last: int
    """Offsets of its first and last instruction."""
    words: tuple[str, ...]
    """Its instructions with their operands, without addresses and jumps."""
    opcodes: Counter[str]
    """How often it has each instruction, whatever its operands, and each callee."""
    calls: tuple[CodeCall, ...]
    successors: tuple[int, ...]
    """Numbers of the blocks that control may pass to, in ascending order."""
    jumps: dict[int, int]
    """Of those that a branch of its own leads to, the offset of that branch."""
    is_indirect: bool
    """Whether it ends in an indirect jump."""

    @cached_property
    def loose(self) -> tuple[str, ...]:
        """Its instructions alone."""
        return tuple(word.partition(" ")[0] for word in self.words)

    def likeness(self, other: BlockCode) -> float:
        """Share of what two blocks have in common, from 0 to 1."""
        if self.words == other.words:
            return 1.0
        mine, theirs = self.opcodes, other.opcodes
        total = mine.total() + theirs.total()
        common = sum(min(mine[word], theirs[word]) for word in mine.keys() & theirs.keys())
        return 2 * common / total if total else 1.0


@dataclass(frozen=True)
class FunctionCode:
    """The blocks of a function, as they lie in it."""

    name: str
    blocks: tuple[BlockCode, ...]
    tables: tuple[tuple[int, ...], ...]
    """Blocks that jumps through tables lead to, by table, in the order of its entries."""

    @cached_property
    def predecessors(self) -> tuple[tuple[int, ...], ...]:
        """Of each block, those that control may come from."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for number, block in enumerate(self.blocks):
            for to in block.successors:
                found[to].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def words(self) -> Counter[str]:
        """Those of all blocks."""
        return Counter(word for block in self.blocks for word in block.words)

    def block_at(self, offset: int) -> int:
        """The block that holds an instruction, -1 for none."""
        number = int(np.searchsorted(self._first, offset, "right")) - 1
        return number if number >= 0 and offset <= self.blocks[number].last else -1

    @cached_property
    def _first(self) -> I64:
        return np.array([block.first for block in self.blocks], np.int64)


@cache  # a program has each a hundred times
def _word(said: str) -> str:
    """What an instruction tells of what its block does."""
    said = " ".join(said.split())
    return "" if _PASSES.match(said) else _ADDRESS.sub("", said)


class _Line(NamedTuple):
    """An instruction."""

    offset: int
    kind: int
    to: int | None
    """Number of the block that it may jump to."""
    callee: str | None
    """None where it calls nothing."""
    word: str
    """Empty where it tells nothing of what a block does."""


class ProgramCode:
    """Functions of a program, cut into blocks; those that are asked for are read as words."""

    def __init__(self, program: Program, functions: BinaryFunctions, chosen: Sequence[int]) -> None:
        """Of these functions, by their numbers."""
        self.functions = functions
        starts = placed_addresses(functions.start[np.array(chosen, np.int64)])
        self._context = analyze(program, starts, keep_all=True)
        self._image = program.image
        code = self._context.code
        callee = np.where(code.has_target, functions.containing(code.target), -1)
        self._callees = callee.tolist()
        self._is_direct = code.branches()
        self._cases = self._tables(program)
        self._labels = self._stored_labels(program)

    def shape(self, function: int) -> tuple[object, ...]:
        """What is the same of a function that control flows through as before, byte by byte.

        Sizes and kinds of its instructions, where its branches lead, and whom it calls.
        """
        code, rows = self._context.code, self._rows(function)
        start, end = (
            int(column[function]) for column in (self.functions.start, self.functions.end)
        )
        direct = self._is_direct[rows]
        target = code.target[rows][direct]
        is_local = (target >= start) & (target < end)
        return (
            code.size[rows].tobytes(),
            code.kind[rows].tobytes(),
            (target[is_local] - start).tobytes(),
            tuple(map(self._callee, (rows.start + np.flatnonzero(direct)[~is_local]).tolist())),
        )

    def function(self, function: int) -> FunctionCode:
        """A function with its blocks; none where it could not be disassembled."""
        blocks, code = self._context.blocks, self._context.code
        own = slice(*np.searchsorted(blocks.function, [function, function + 1]).tolist())
        starts, lasts = blocks.start[own], blocks.last[own]
        number = {address: i for i, address in enumerate(starts.tolist())}
        lines = list(self._lines(function, number))
        known = code.address[self._rows(function)]
        first, past = np.searchsorted(known, starts), np.searchsorted(known, lasts) + 1
        made = tuple(
            self._block(lines[a:b], i + 1 if falls else None, function, number)
            for i, (a, b, falls) in enumerate(zip(first, past, blocks.falls[own], strict=True))
        )
        tables = [self._cases[to] for to in lasts.tolist() if to in self._cases]
        tables += filter(None, [self._labels.get(function, [])])
        places = tuple(tuple(number[to] for to in table if to in number) for table in tables)
        return FunctionCode(self.functions.name(function), made, places)

    def _rows(self, function: int) -> slice:
        code = self._context.code
        return slice(*np.searchsorted(code.function, [function, function + 1]).tolist())

    def _lines(self, function: int, number: Mapping[int, int]) -> Iterator[_Line]:
        """The instructions of a function, whose blocks have these numbers by their addresses."""
        code, rows = self._context.code, self._rows(function)
        start, end = self.functions.start[function], int(self.functions.end[function])
        texts = {address: words for address, _, words in text(self._image, start, end)}
        columns = (code.address, code.kind, code.target, code.has_target)
        numbers = zip(*(column[rows].tolist() for column in columns), strict=True)
        for row, (address, kind, target, has_target) in enumerate(numbers, rows.start):
            to = number.get(target) if has_target and kind not in CALLS else None
            is_call = kind in CALLS or (to is None and kind in _JUMPS)
            callee = self._callee(row) if is_call else None
            word = "" if kind in _JUMPS else _word(texts.get(address, ""))
            yield _Line(address - int(start), kind, to, callee, word)

    def _block(
        self, lines: Sequence[_Line], following: int | None, function: int,
        number: Mapping[int, int],
    ) -> BlockCode:  # fmt: skip
        """Of the instructions of a block, and the number of the block that it falls into."""
        last = lines[-1]
        is_indirect = last.kind == Kind.INDIRECT_JUMP
        jumps = {line.to: line.offset for line in lines if line.to is not None}
        leads = {*jumps, *([] if following is None else [following])}
        if is_indirect:
            labels = self._labels.get(function, [])
            targets = self._cases.get(int(self.functions.start[function]) + last.offset, labels)
            leads.update(number[to] for to in targets if to in number)
        said = [line for line in lines if line.word]
        opcodes = Counter([
            *(line.word.partition(" ")[0] for line in said),
            *(f"call {line.callee}" for line in said if line.callee is not None),
        ])  # fmt: skip
        return BlockCode(
            lines[0].offset, last.offset,
            tuple(line.word if line.callee is None else f"call {line.callee}" for line in said),
            opcodes,
            tuple(CodeCall(line.offset, line.callee) for line in lines if line.callee is not None),
            tuple(sorted(leads)), jumps, is_indirect,
        )  # fmt: skip

    def _tables(self, program: Program) -> dict[int, list[int]]:
        """Where each jump through a table leads, entry by entry."""
        image, found = program.image, dict[int, list[int]]()
        references, idioms = read_references(image), idioms_of(image)
        entries = table_entries(image, self._context.code, references, idioms)
        for jump, to in zip(entries.jump.tolist(), entries.target.tolist(), strict=True):
            found.setdefault(jump, []).append(to)
        return found

    def _stored_labels(self, program: Program) -> dict[int, list[int]]:
        """Addresses in each function that data holds, such as C's `&&label`."""
        labels, found = labels_in_order(program.image), dict[int, list[int]]()
        function = self.functions.containing(labels)
        for row in np.flatnonzero((function >= 0) & (labels != self.functions.start[function])):
            found.setdefault(int(function[row]), []).append(int(labels[row]))
        return found

    def _callee(self, row: int) -> str:
        """Whom an instruction calls; empty where it does not tell."""
        callee = self._callees[row]
        return plain_name(self.functions.names[callee]) if callee >= 0 else ""
