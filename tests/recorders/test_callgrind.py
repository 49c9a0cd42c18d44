"""The exact counts against callgrind's, for every conditional branch of the test programs."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.fixtures import TESTBINS, Tool

COND = 1


class CallgrindReader:
    """How often each instruction of a program ran, and how often each conditional jump was taken.

    Callgrind's own "executed" of a jump leaves out contexts in which it was never taken, so the
    instruction's cost is used. Format: Valgrind manual, "Callgrind Format Specification".
    """

    def __init__(self, program: str) -> None:
        self.executed: Counter[int] = Counter()
        self.taken: Counter[int] = Counter()
        self._program = program
        self._names: dict[str, str] = {}
        self._inside = False
        self._address = 0
        self._jumps: int | None = None  # of the line before, whose next line holds no own cost

    def read(self, lines: Iterable[str]) -> None:
        for line in lines:
            if named := re.match(r"(ob|cob)=\((\d+)\)(?: (.*))?$", line):
                self._take_object(*named.groups())
            elif jump := re.match(r"jcnd=(\d+)/", line):
                self._jumps = int(jump[1])
            elif line.startswith(("calls=", "jump=")):
                self._jumps = 0
            elif cost := re.match(r"(0x[0-9a-f]+|[+-]\d+|\*) \S+ ?(\d+)?", line):
                self._take_cost(cost[1], int(cost[2] or 0))

    def _take_object(self, kind: str, number: str, name: str | None) -> None:
        self._names.setdefault(number, name or "")
        if kind == "ob":
            self._inside = self._names[number] == self._program

    def _take_cost(self, position: str, cost: int) -> None:
        if position.startswith("0x"):
            self._address = int(position, 16)
        elif position != "*":
            self._address += int(position)
        if self._inside and self._jumps is None:
            self.executed[self._address] += cost
        elif self._inside:
            self.taken[self._address] += self._jumps or 0
        self._jumps = None


def functions(program: Path) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of every function that has a size."""
    command = ["nm", "-S", "--defined-only", program]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for start, size, kind, name in (
        words for line in listing.splitlines() if len(words := line.split()) == 4
    ):
        if kind in "tTwW" and not name.startswith("_start"):
            yield name, int(start, 16), int(start, 16) + int(size, 16)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["interp.pie", "interp.static", "shapes.pie", "shapes.static"])
def test_conditional_branches_as_callgrind_counts_them(
    name: str, record: Callable[..., Any], tool: Tool, tmp_path: Path
) -> None:
    program = TESTBINS / "x86-64" / name
    output = tmp_path / "callgrind"
    command = [
        tool("valgrind"), "--tool=callgrind", "--dump-instr=yes", "--collect-jumps=yes",
        f"--callgrind-out-file={output}", program, "20",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    callgrind = CallgrindReader(str(program))
    callgrind.read(output.read_text().splitlines())
    exact = record(program, 20).exact
    conditional = (exact.kind == COND) & (exact.from_image == exact.find_image(None, str(program)))
    # The C library in the static programs does other things under Valgrind.
    ours = {name for name, _, _ in functions(program.with_suffix(".pie"))}
    compared = 0
    for function, start, end in functions(program):
        here = conditional & (exact.from_ >= start) & (exact.from_ < end)
        for address in map(int, np.unique(exact.from_[here]) if function in ours else ()):
            rows = here & (exact.from_ == address)
            counts = int(exact.count[rows & exact.taken].sum()), int(exact.count[rows].sum())
            expected = callgrind.taken[address], callgrind.executed[address]
            assert counts == expected, f"{function}+{address - start:#x}"
            compared += 1
    assert compared > 25
