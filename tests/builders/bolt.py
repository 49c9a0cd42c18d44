"""Programs with control flow that BOLT treats in particular ways, and perf2bolt as their judge."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from lbr2pgo.model.branch_counts import BRANCH, END, FROM, TO, BranchCounts, aggregate
from lbr2pgo.profiles.bolt.fdata.fdata_tables import Fdata
from lbr2pgo.profiles.preaggregated import traces_text
from lbr2pgo.program.blocks.basic_blocks import build_blocks, find_labels
from lbr2pgo.program.blocks.binary_context import idioms_of
from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.blocks.disassembly import Disassembly, disassembled
from lbr2pgo.program.blocks.references import read_references
from lbr2pgo.program.code.decode import decode
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program

SOURCES = Path(__file__).parents[1] / "profiles" / "bolt" / "fdata" / "programs"
C_SOURCES = ("dispatch.c", "other.c")

Assemble = Callable[..., Program]

Trace = tuple[int | None, int | None, int | None, int]
"""Branch, its target, the end of the run behind it (None: outside, or unknown), and a count."""


def build(target: Path, sources: Sequence[str], compiler: str, *flags: str) -> Path:
    """Compile and link some of the sources."""
    command = [compiler, *flags, "-o", target, *(SOURCES / source for source in sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def counts_of(traces: Sequence[Trace]) -> BranchCounts:
    """Counts of traces, none of them mispredicted."""
    known = [
        BRANCH | (FROM if a is not None else 0) | (TO if b is not None else 0)
        | (END if c is not None else 0)
        for a, b, c, _ in traces
    ]  # fmt: skip
    columns = [np.array([t[i] or 0 for t in traces], np.uint64) for i in range(4)]
    none = np.zeros(len(traces), np.uint64)
    return aggregate(*columns[:3], np.array(known, np.uint8), columns[3], none)


def perf2bolt(tool: str, binary: Path, counts: BranchCounts, where: Path, *flags: str) -> set[str]:
    """Lines of the fdata file that perf2bolt makes of counts."""
    traces_text.write(counts, where / "counts.preagg")
    command = [tool, "-pa", "-p", where / "counts.preagg", "-o", where / "out.fdata"]
    done = subprocess.run([*command, *flags, binary], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return lines_of_file(where / "out.fdata")


def lines_of_file(path: Path) -> set[str]:
    """Lines of an fdata file."""
    return set(path.read_text(errors="surrogateescape").splitlines())


def lines_of(fdata: Fdata) -> set[str]:
    """The rows of branches as BOLT writes them; names without blanks only."""
    assert fdata.branches is not None
    names = fdata.names
    rows = zip(*(column.tolist() for column in fdata.branches.columns()), strict=True)
    return {f"{k} {names[a]} {x:x} {j} {names[b]} {y:x} {m} {n}" for k, a, x, j, b, y, m, n in rows}


class RandomTraces:
    """Traces of a program that never ran, most of them possible, some of them absurd."""

    def __init__(self, program: Program, seed: int) -> None:
        self._random = random.Random(seed)
        functions = discover(program.image, program.symbols)
        table = program.instructions_for(functions.start[~functions.is_pseudo])
        image = program.image
        code = disassembled(image, functions, table, idioms_of(image).normalized)
        self._pseudo = functions.start[functions.is_pseudo].tolist()
        self._address = code.address.tolist()
        self._kind = code.kind.tolist()
        self._function = code.function.tolist()
        self._rows = range(len(self._address))
        calls = (Kind.CALL, Kind.INDIRECT_CALL)
        self._behind_calls = [i + 1 for i in self._rows[:-1] if self._kind[i] in calls]
        self._returns = [i for i in self._rows if self._kind[i] == Kind.RET]
        self._branches = [i for i in self._rows if self._kind[i] not in (Kind.OTHER, Kind.RET)]

    def draw(self, count: int) -> list[Trace]:
        """Some traces."""
        return [self._trace() for _ in range(count)]

    def _trace(self) -> Trace:
        number = self._random.randint(1, 9)
        if self._pseudo and self._random.random() < 0.03:
            place = self._random.choice(self._pseudo)
            return self._branch(0), place, place + self._random.choice([0, 6]), number
        first = self._start()
        end = self._address[self._last(first)]
        to = self._address[first] + (self._random.random() < 0.02)
        return self._branch(first), to, end if self._random.random() < 0.9 else None, number

    def _start(self) -> int:
        pool = self._behind_calls if self._random.random() < 0.4 else self._rows
        return self._random.choice(pool or self._rows)

    def _branch(self, first: int) -> int | None:
        """A branch: a return, one of the same function, any, or one from outside."""
        choice = self._random.random()
        if choice < 0.35 and self._returns:
            return int(self._address[self._random.choice(self._returns)])
        if choice < 0.6:
            near = min(max(0, first + self._random.randint(-40, 40)), len(self._rows) - 1)
            return int(self._address[near])
        if choice < 0.8 and self._branches:
            return int(self._address[self._random.choice(self._branches)])
        return None

    def _last(self, first: int) -> int:
        """Where the run ends: anywhere near, or at the next branch that is surely taken."""
        if self._random.random() < 0.4:
            last = first + self._random.choice([-1, 0, 1, 2, 3, 5, 8, 13, 21, 34])
            last = min(max(0, last), len(self._rows) - 1)
        else:
            last = first
            while last + 1 < len(self._rows) and not self._stops(last):
                last += 1
        return self._before_indirect(first, last)

    def _stops(self, row: int) -> bool:
        sure = (Kind.JUMP, Kind.INDIRECT_JUMP, Kind.RET)
        taken = self._kind[row] == Kind.COND and self._random.random() < 0.4
        return self._kind[row] in sure or taken

    def _before_indirect(self, first: int, last: int) -> int:
        """No run passes over an indirect jump: no recorder claims that."""
        rows = range(first, last)
        return next((i for i in rows if self._kind[i] == Kind.INDIRECT_JUMP), last)


def function(name: str, body: str) -> str:
    """Assembly of a function."""
    return f".globl {name}\n.type {name},@function\n{name}:\n{body}\n.size {name},.-{name}\n"


def code_of(program: Program, *names: str) -> Disassembly:
    """Some functions, disassembled; all if none is named."""
    image, functions = program.image, discover(program.image, program.symbols)
    rows = [functions.names.index(name) for name in names] or list(range(len(functions)))
    table = decode(image, functions.ranges.take(np.array(rows)))
    return disassembled(image, functions, table, idioms_of(image).normalized)


def blocks_of(program: Program, name: str = "_start") -> list[tuple[int, int, bool]]:
    """Start and last instruction as offsets in a function, and whether the block falls through."""
    code, callers, image = code_of(program, name), code_of(program), program.image
    callers = callers.take(callers.function != code.function[0])
    labels = find_labels(image, code, callers, read_references(image), idioms_of(image))
    blocks = build_blocks(code, labels)
    start = code.functions.start[code.functions.names.index(name)]
    columns = ((blocks.start - start), (blocks.last - start), blocks.falls)
    return list(zip(*(column.tolist() for column in columns), strict=True))
