"""Random walks through a compiled program, as `perf script` text that any tool can read."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from builders.hybrid import Hybrid, write_hybrid

from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program

LIBRARY = 0x7FFFF7C00000
DEPTH = 16
OUTERMOST = (LIBRARY + 32, 0x5541F689495641D7)
"""Frames above the first one of the program; the last is what a frame pointer was used for."""


@dataclass(frozen=True)
class HybridPlan:
    """How samples with call stacks are taken."""

    entries: int = DEPTH
    most_frames: int = 127
    """The innermost ones are kept."""
    ahead: int = 3
    """The interrupted instruction is so many behind the newest branch at most."""
    callbacks: float = 0.1
    """In so many cases a library that was called calls back."""
    lost_callers: float = 0
    """In so many cases the caller of a function that has just been entered is lost from the call
    stack, while the branch stack shows it."""


@dataclass(frozen=True)
class Step:
    """A taken branch, and the return addresses on the stack before and behind it."""

    source: int
    target: int
    before: list[int]
    after: list[int]


@dataclass(frozen=True)
class Walked:
    """A sample, and what really happened; newest first."""

    sample: Hybrid
    steps: list[Step]


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
        return [branch for branch, _ in itertools.islice(self.steps(), length)]

    def steps(self, callbacks: float = 0) -> Iterator[tuple[tuple[int, int], list[int]]]:
        """Taken branches, oldest first, each with the return addresses on the stack behind it.

        A library that was called calls back in so many cases.
        """
        stack: list[int] = []
        pc = LIBRARY
        while True:
            if pc not in self._row and pc < LIBRARY:
                step = (pc, LIBRARY)  # through the linkage table
            elif pc not in self._row:
                if stack and self._random.random() >= callbacks:
                    back = stack.pop()
                else:
                    back = self._random.choice(self._entries)
                    stack += [LIBRARY + 24] * bool(stack)
                step = (LIBRARY + 16, back)
            else:
                run = self._run(pc, stack)
                if run is None:
                    return
                step = run
            yield step, stack
            pc = step[1]

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

    def hybrid(self, length: int, plan: HybridPlan | None = None) -> list[Walked]:
        """Samples with call stacks, at random branches of one walk."""
        plan = plan or HybridPlan()
        ring: deque[Step] = deque(maxlen=plan.entries)
        samples, before = [], []
        for branch, stack in itertools.islice(self.steps(plan.callbacks), length):
            ring.append(Step(*branch, before, list(stack)))
            before = ring[-1].after
            if len(ring) == plan.entries and self._random.random() < 2 / plan.entries:
                samples.append(self._walked(list(ring)[::-1], plan))
        return samples

    def _walked(self, steps: list[Step], plan: HybridPlan) -> Walked:
        newest = steps[0]
        frames = [self._ahead(newest.target, plan.ahead), *newest.after[::-1], *OUTERMOST]
        is_seen = any(len(s.before) < len(s.after) == len(newest.after) for s in steps)
        if newest.target in self._entries and is_seen and self._random.random() < plan.lost_callers:
            del frames[1]
        frames = [self._loaded(frame) for frame in frames[: plan.most_frames]]
        pairs = [(self._loaded(step.source), self._loaded(step.target)) for step in steps]
        return Walked(Hybrid(frames, pairs), steps)

    def _ahead(self, address: int, most: int) -> int:
        """An instruction that runs right behind another one."""
        for _ in range(self._random.randint(0, most)):
            row = self._row.get(address)
            if row is None or self._kind[row] != Kind.OTHER:
                break
            address = self._end[row]
        return address

    def hybrid_script(self, samples: Iterable[Walked]) -> str:
        """The samples as text, with the mapping of the code."""
        samples = (walked.sample for walked in samples)
        return "".join(self._mappings()) + "\n" + write_hybrid(samples)

    def _loaded(self, address: int) -> int:
        return address if address >= LIBRARY else address + self._base


def walked(where: Path, binary: Path, seed: int = 1, only: str | None = None) -> Path:
    """A recording of random walks through a program, or through functions so called."""
    path = where / "walk.perfscript"
    path.write_text(BinaryWalk(binary, seed, only).perf_script())
    return path
