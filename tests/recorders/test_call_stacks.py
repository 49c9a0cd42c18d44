"""Recordings in call-stack mode, as perf report and lbr2pgo report show them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.evidence import gather
from builders.fixtures import Tool
from builders.recordings import TESTBINS

from lbr2pgo.analyses.call_stacks import call_stacks, folded
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.program.program import Program

Shares = dict[int | None, tuple[int, int]]
Stacks = Counter[tuple[int | None, ...]]

_SHARES = re.compile(r"\s*([\d.]+)%\s*\|\s*([\d.]+)%\s*\|\s*(\d+)\s*\|\[.\] (\S+)\s*")
_FUNCTION = re.compile(r"\s*[\d.]+%\s*\|\s*\d+\s*\|\[.\] (\S+)\s*")
_PIECE = re.compile(r"\.(?:part|cold|isra|constprop)(?:\.\d+)*$")
_CHAIN = re.compile(r"(\d+) (\S+)")


def whole_function(program: Program, symbol: str) -> int | None:
    """Address of a function, or of the one that a symbol is a piece of; perf keeps these apart."""
    whole = program.address_of(_PIECE.sub("", symbol))
    return program.address_of(symbol) if whole is None else whole


def perf_shares(text: str, samples: int, program: Program) -> Shares:
    """Samples with callees and samples itself of each function, by its address.

    Those of None are of code without a symbol. perf has two rows for a sample in such code: one by
    the offset of its instruction in the file, one by the address that its call stack ends in.
    """
    shares: Shares = {}
    for m in filter(None, map(_SHARES.fullmatch, text.splitlines())):
        function = whole_function(program, m[4])
        total, own = shares.get(function, (0, 0))
        shares[function] = total + round(float(m[1]) * samples / 100), own + int(m[3])
    return shares


def perf_stacks(text: str, program: Program, *, with_jumps: bool = True) -> Stacks:
    """Call stacks from the outermost caller inwards.

    perf leaves a function that was not called but jumped to out of its stacks.
    """
    stacks: Stacks = Counter()
    running = None
    for line in text.splitlines():
        if found := _FUNCTION.fullmatch(line):
            running = whole_function(program, found[1])
        elif found := _CHAIN.fullmatch(line):
            chain = tuple(whole_function(program, name) for name in found[2].split("|"))
            is_jump = with_jumps and chain[-1] != running
            stacks[(*chain, running) if is_jump else chain] += int(found[1])
    return stacks


def perf_place(program: Program, name: str) -> int | None:
    """Where perf finds a function: entries of linkage tables belong to symbols without a size."""
    if not name.endswith("@plt"):
        return program.address_of(name)
    labels = map(program.regions.label, range(len(program.regions)))
    entry = program.regions.start[list(labels).index(name)]
    row = np.flatnonzero(program.symbols.start <= entry)[-1]
    return None if program.symbols.size[row] else int(program.symbols.start[row])


def our_stacks(found: Evidence) -> Stacks:
    stacks: Stacks = Counter()
    for text, count in folded(found):
        stacks[tuple(perf_place(found.program, name) for name in text.split(";"))] += count
    return stacks


@pytest.mark.parametrize("name", ["interp.static", "shapes.static"])
def test_the_call_tree_is_that_of_perf_report(
    name: str,
    tmp_path: Path,
    record: Callable[..., Any],
    tool: Tool,
    run: Callable[..., Any],
) -> None:
    binary = TESTBINS / "x86-64" / name
    path: Path = record(binary, 2, call_stack=True, depth=32, period=101).path
    found = gather((path,), binary).evidence
    program = found.program
    command = [
        tool("perf"), "report", "-f", "-i", path, "--stdio", "--no-demangle", "-n", "-t", "|",
        "--percent-limit", "0",
    ]  # fmt: skip
    flat = run(*command, "--children", "-g", "none", "-F", "overhead_children,overhead,sample,sym")
    tree = run(
        *command, "--no-children", "-F", "overhead,sample,sym", "--max-stack", "40",
        "-g", "folded,0,caller,function,count",
    )  # fmt: skip

    functions, *_ = call_stacks(found, None)
    shares: dict[int | None, tuple[int, int]] = {}
    for row in functions.records():
        place = perf_place(program, str(row["function"]))
        total, own = shares.get(place, (0, 0))
        shares[place] = total + row["total"], own + row["own"]
    samples = sum(own for _, own in shares.values())
    assert 1000 < samples < 10_000  # so that perf's 0.01 % is less than a sample
    theirs = perf_shares(flat.stdout, samples, program)
    nameless, theirs_nameless = shares.pop(None, (0, 0)), theirs.pop(None, (0, 0))
    assert nameless[1] == theirs_nameless[1]
    assert nameless[0] <= theirs_nameless[0] <= sum(nameless)
    assert shares == theirs
    ours = our_stacks(found)
    assert ours == perf_stacks(tree.stdout, program)
    assert max(map(len, ours)) > 8

    script = [tool("perf"), "script", "-f", "-i", path, "--header", "--show-mmap-events", "-F"]
    text = tmp_path / "script.txt"
    text.write_text(run(*script, "comm,pid,tid,time,event,ip,brstack").stdout)
    of_text = our_stacks(gather((text,), binary).evidence)
    assert of_text == perf_stacks(tree.stdout, program, with_jumps=False)
