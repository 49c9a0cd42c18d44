"""Simulated truth: random programs, walked at random, seen through a ring of branches.

A program is real x86-64 code whose every instruction the builder knows; a walk knows each
instruction that it executed, so what a sample of it can tell is known without any decoder.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from builders.elf import Function, elf
from builders.sources import Sample

ADDRESS = 0x23000
LIBRARY = 0x7F9999990000
FILLERS = (b"\x90", b"\x48\x89\xc0", b"\x0f\x1f\x44\x00\x00", b"\x66\x0f\x1f\x84\0\0\0\0\0")
ENDINGS = ("fall", "cond", "cond", "cond", "jump", "switch", "call", "call", "icall", "libcall",
           "ret", "cond_self")  # fmt: skip
CODES = {
    "cond": b"\x0f\x84", "cond_self": b"\x0f\x85", "jump": b"\xe9", "tail": b"\xe9",
    "call": b"\xe8", "libcall": b"\xe8", "switch": b"\xff\xe0", "icall": b"\xff\xd0",
    "ret": b"\xc3", "trap": b"\x0f\x0b",
}  # fmt: skip
DIRECT = ("cond", "cond_self", "jump", "tail", "call", "libcall")


@dataclass
class Instruction:
    """One instruction of a random program, with all that it may branch to."""

    kind: str
    address: int
    size: int
    targets: list[int] = field(default_factory=list)


@dataclass
class RandomProgram:
    """Functions of random blocks."""

    seed: int
    functions: list[Function] = field(init=False)
    instructions: dict[int, Instruction] = field(init=False)
    code: bytes = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        count = self._random.randint(1, 5)
        plans = [self._plan() for _ in range(count)]
        self.instructions, self.functions = {}, []
        blocks = [self._place(number, plan) for number, plan in enumerate(plans)]
        for starts in blocks:
            self._link(starts)
        self.code = self._assemble()

    def _plan(self) -> list[tuple[list[bytes], str]]:
        """Fillers and ending of each block."""
        choose = self._random.choice
        endings = [choose(ENDINGS) for _ in range(self._random.randint(0, 7))]
        endings.append(choose(("ret", "ret", "jump", "tail", "trap")))
        return [([choose(FILLERS) for _ in range(self._random.randint(0, 4))], e) for e in endings]

    def _place(self, number: int, plan: list[tuple[list[bytes], str]]) -> list[int]:
        """Lay a function behind the others; returns where its blocks start."""
        at = start = self._end() + 15 & ~15
        starts = []
        for fillers, ending in plan:
            starts.append(at)
            for filler in fillers:
                at = self._add("other", at, len(filler))
            if ending != "fall":
                at = self._add(ending, at, len(CODES[ending]) + 4 * (ending in DIRECT))
        self.functions.append(Function(f"f{number}", start, at - start))
        return starts

    def _end(self) -> int:
        last = max(self.instructions.values(), key=lambda i: i.address, default=None)
        return last.address + last.size if last else ADDRESS

    def _add(self, kind: str, address: int, size: int) -> int:
        self.instructions[address] = Instruction(kind, address, size)
        return address + size

    def _link(self, starts: Sequence[int]) -> None:
        """Choose the targets of a function's branches."""
        entries = [f.start for f in self.functions]
        function = next(f for f in self.functions if f.start == starts[0])
        for instruction in self.instructions.values():
            if not function.start <= instruction.address < function.start + function.size:
                continue
            pool, number = {
                "cond": (starts, 1), "jump": (starts, 1), "switch": (starts, 3),
                "tail": (entries, 1), "call": (entries, 1), "icall": (entries, 3),
                "libcall": ([LIBRARY], 1), "cond_self": ([instruction.address], 1),
            }.get(instruction.kind, ([], 0))  # fmt: skip
            instruction.targets = [self._random.choice(pool) for _ in range(number)]

    def _assemble(self) -> bytes:
        code = bytearray(b"\xcc" * (self._end() - ADDRESS))
        fillers = {len(filler): filler for filler in FILLERS}
        for i in self.instructions.values():
            raw = CODES.get(i.kind) or fillers[i.size]
            if i.kind in DIRECT:
                away = (i.targets[0] - i.address - i.size + 2**31) % 2**32 - 2**31
                raw += struct.pack("<i", away)
            at = i.address - ADDRESS
            code[at : at + i.size] = raw
        return bytes(code)

    def elf(self) -> bytes:
        """The program as a file."""
        return elf(self.code, ADDRESS, self.functions)


@dataclass
class Walk:
    """What one process did: its branches, and the instructions executed behind each."""

    branches: list[tuple[int, int]] = field(default_factory=list)
    lines: list[list[Instruction]] = field(default_factory=list)
    """Behind each branch, up to and with the next one; empty outside the image."""


def walk(program: RandomProgram, length: int, seed: int) -> Walk:
    """Walk for so many branches, now and then through a library."""
    chooser = random.Random(seed)
    found, stack, pc = Walk(), [], LIBRARY
    bias = {address: chooser.random() for address in program.instructions}
    while len(found.branches) < length:
        line: list[Instruction] = []
        source, target = pc, pc
        if pc >= LIBRARY:
            target = stack.pop() if stack else chooser.choice(program.functions).start
        else:
            source, target = _run_straight(program, pc, stack, line, chooser, bias)
            if chooser.random() < 0.03:
                target = LIBRARY + 48  # out of endless loops: any branch may leave the image
                stack.clear()
        if found.branches:
            found.lines.append(line)
        found.branches.append((source, target))
        pc = target
        if pc >= LIBRARY and chooser.random() < 0.5:
            found.lines.append([])
            found.branches.append((LIBRARY + 8, LIBRARY + 64))
            pc = LIBRARY + 64
    found.lines.append([])
    return found


def _run_straight(
    program: RandomProgram, pc: int, stack: list[int], line: list[Instruction],
    chooser: random.Random, bias: dict[int, float],
) -> tuple[int, int]:  # fmt: skip
    """Execute up to a taken branch; fills `line` and keeps the call stack."""
    while True:
        instruction = program.instructions[pc]
        line.append(instruction)
        behind = pc + instruction.size
        if instruction.kind == "ret":
            return pc, stack.pop() if stack else LIBRARY + 32
        if instruction.kind == "trap":
            stack.clear()
            return pc, LIBRARY + 16  # as if the kernel had delivered a signal
        is_taken = bool(instruction.targets) and (
            not instruction.kind.startswith("cond") or chooser.random() < bias[pc] * 0.9
        )
        if is_taken:
            if "call" in instruction.kind:
                stack.append(behind)
            return pc, chooser.choice(instruction.targets)
        pc = behind


@dataclass
class Truth:
    """What a recorder that saw these entries of a walk can know, counted without decoding."""

    branches: Counter[tuple[int | None, int | None]] = field(default_factory=Counter)
    executed: Counter[int] = field(default_factory=Counter)
    not_taken: Counter[int] = field(default_factory=Counter)
    runs: Counter[tuple[int, int]] = field(default_factory=Counter)

    def see(self, walked: Walk, first: int, last: int) -> None:
        """Add the ring's content when branch `last` was its newest and `first` its oldest."""
        for source, target in walked.branches[first : last + 1]:
            ends = (_inside(source), _inside(target))
            if ends != (None, None):
                self.branches[ends] += 1
        for line in filter(None, walked.lines[first:last]):
            self.runs[line[0].address, line[-1].address] += 1
            self.executed.update(i.address for i in line)
            self.not_taken.update(i.address for i in line[:-1] if i.kind.startswith("cond"))


def _inside(address: int) -> int | None:
    return address if address < LIBRARY else None


def sample_at(
    walked: Walk, times: Iterable[int], depth: int, *, bias: int, pid: int, truth: Truth
) -> list[Sample]:
    """The ring's content at these branches, newest entry first, at run-time addresses."""
    samples = []
    for last in times:
        first = max(0, last - depth + 1)
        truth.see(walked, first, last)
        stack = [
            tuple(a + bias if a < LIBRARY else a for a in entry)
            for entry in reversed(walked.branches[first : last + 1])
        ]
        samples.append(Sample(stack, pid=pid))  # type: ignore[arg-type]
    return samples
