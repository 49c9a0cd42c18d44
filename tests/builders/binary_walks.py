"""Random walks through a compiled program, as `perf script` text that any tool can read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program

LIBRARY = 0x7FFFF7C00000
DEPTH = 16


class BinaryWalk:
    """Walks a program as its instructions allow: conditions and indirect targets are drawn."""

    def __init__(self, path: Path, seed: int, only: str | None = None) -> None:
        self.path = path
        self._random = random.Random(seed)
        program = Program.open(path)
        functions = program.functions
        self._layout = program.image.layout
        text = program.image.section(".text")
        assert text is not None
        in_text = (functions.start >= text.address) & (functions.start < text.address + text.size)
        if only is not None:
            in_text &= np.array([only in functions.name[i] for i in range(len(functions))])
        table = program.instructions_for(functions.start[in_text])
        self._address, self._end = table.address.tolist(), table.end.tolist()
        self._kind, self._target = table.kind.tolist(), table.target.tolist()
        self._has_target = table.has_target.tolist()
        self._row = {address: row for row, address in enumerate(self._address)}
        self._entries = [a for a in functions.start[in_text].tolist() if a in self._row]
        owner = functions.containing(table.address).tolist()
        self._leaders: dict[int, list[int]] = {}
        for row, function in enumerate(owner):
            if row and self._kind[row - 1] != Kind.OTHER:
                self._leaders.setdefault(function, []).append(self._address[row])
        self._owner = owner
        self._bias = [self._random.random() * 0.8 for _ in self._address]

    def branches(self, length: int) -> list[tuple[int, int]]:
        """Taken branches, oldest first."""
        found: list[tuple[int, int]] = []
        stack: list[int] = []
        pc = LIBRARY
        while len(found) < length:
            if pc not in self._row:
                back = stack.pop() if stack else self._random.choice(self._entries)
                found.append((LIBRARY + 16, back))
                pc = back
                continue
            step = self._run(pc, stack)
            if step is None:
                return found
            found.append(step)
            pc = step[1]
        return found

    def _run(self, pc: int, stack: list[int]) -> tuple[int, int] | None:
        """The next taken branch; None where the code ends."""
        row = self._row[pc]
        while True:
            target = self._taken(row, stack)
            if target is not None:
                return self._address[row], target
            if self._end[row] not in self._row:
                return None
            row = self._row[self._end[row]]

    def _taken(self, row: int, stack: list[int]) -> int | None:
        kind, direct = self._kind[row], self._target[row]
        if kind == Kind.COND:
            return direct if self._random.random() < self._bias[row] else None
        if kind == Kind.JUMP:
            return direct
        if kind in (Kind.CALL, Kind.INDIRECT_CALL):
            stack.append(self._end[row])
            return direct if self._has_target[row] else self._random.choice(self._entries)
        if kind == Kind.INDIRECT_JUMP:
            leaders = self._leaders.get(self._owner[row])
            return self._random.choice(leaders) if leaders else LIBRARY
        if kind == Kind.RET:
            return stack.pop() if stack else LIBRARY
        return LIBRARY if kind == Kind.TRAP else None

    def perf_script(self, walks: int = 30, length: int = 320) -> str:
        """Samples at every DEPTH-th branch of some walks, with the mapping of the code."""
        return "".join(self._mappings()) + "".join(self._samples(walks, length))

    @property
    def _base(self) -> int:
        return 0x555555554000 if self._layout.is_pie else 0

    def _mappings(self) -> Iterator[str]:
        for segment in self._layout.segments:
            if segment.executable:
                slack = segment.file_offset % 0x1000
                start = self._base + segment.address - slack
                size = slack + segment.file_size + 0xFFF & ~0xFFF
                offset = segment.file_offset - slack
                yield (
                    f"PERF_RECORD_MMAP2 7/7: [{start:#x}({size:#x}) @ {offset:#x} 08:01 1 1]:"
                    f" r-xp {self.path}\n"
                )

    def _samples(self, walks: int, length: int) -> Iterator[str]:
        for _ in range(walks):
            taken = self.branches(length)
            for last in range(DEPTH - 1, len(taken), DEPTH):
                stack = taken[last - DEPTH + 1 : last + 1]
                entries = [f"{self._loaded(a):#x}/{self._loaded(b):#x}" for a, b in reversed(stack)]
                ip = self._loaded(stack[-1][1])
                yield f" {ip:x} " + " ".join(f" {entry}/P/-/-/0" for entry in entries) + "\n"

    def _loaded(self, address: int) -> int:
        return address if address >= LIBRARY else address + self._base
