"""Calls whose pseudo probe the optimizer dropped: whether anything tells which it was.

``python benchmarks/lost_probes.py PROGRAM [OTHER ...]``

It could be any call probe that the function has somewhere, in PROGRAM or in another build of the
source (OTHER: with `pgo`'s flags for training, say), and that is nowhere else in the same copy of
the function. Where one alone is left, it could be put back. How far to trust that, calls with a
probe tell: each is asked as if it had none. What the compiler adds (`memset`) never had one.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lbr2pgo.profiles.llvm.calls_by_lines import nodes_by_lines
from lbr2pgo.program.code.instructions import CALLS, Kind
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import ProbeKind, ProbeTable

Function = tuple[int, int]
"""The GUID and the checksum of its control flow: of other code probes have other numbers."""


def _functions(table: ProbeTable) -> list[Function]:
    """Of each node of the tree."""
    checksum = np.append(table.tree.descriptors.checksum, np.uint64(0))[table.tree.function]
    return list(zip(table.tree.guid.tolist(), checksum.tolist(), strict=True))


def _copies(table: ProbeTable) -> list[int]:
    """A number for each node of the tree; pieces of one function have the same."""
    numbers: dict[tuple[int, int, int], int] = {}
    found: list[int] = []
    columns = (column.tolist() for column in (table.tree.parent, table.tree.site, table.tree.guid))
    for parent, site, guid in zip(*columns, strict=True):
        key = (found[parent] if parent >= 0 else -1, site, guid)
        found.append(numbers.setdefault(key, len(numbers)))
    return found


def _placed(table: ProbeTable) -> Iterator[tuple[int, int, int]]:
    """Node, index and kind of each call probe; those of calls that were inlined have no kind."""
    rows = np.flatnonzero(table.is_call)
    columns = (column[rows].tolist() for column in (table.node, table.index, table.kind))
    yield from zip(*columns, strict=True)
    for parent, site in zip(table.tree.parent.tolist(), table.tree.site.tolist(), strict=True):
        if parent >= 0 and site:
            yield parent, site, 0


def _calls(program: Program, table: ProbeTable) -> Iterator[tuple[bool, int, int]]:
    """Calls in functions with probes: whether indirect, index of the probe or 0, node or -1."""
    functions, code = program.functions, program.branches
    probed = np.unique(functions.containing(table.address))
    rows = np.flatnonzero(np.isin(code.kind, CALLS))
    rows = rows[np.isin(functions.containing(code.address[rows]), probed[probed >= 0])]
    address = code.address[rows]
    found, place = DebugInfo.open(program.image).places(address)
    node = nodes_by_lines(table, address, found.scope[place], found.scopes)
    index = np.append(table.index, 0)[table.call_at(address)]
    is_indirect = code.kind[rows] == Kind.INDIRECT_CALL
    columns = (column.tolist() for column in (is_indirect, index, node))
    yield from zip(*columns, strict=True)


def _counted(path: Path, known: dict[Function, dict[int, int]]) -> dict[bool, Counter[str]]:
    """What is printed, of indirect calls and of direct ones."""
    program = Program.open(path)
    table = program.probes.table()
    function, copy = _functions(table), _copies(table)
    placed: dict[int, Counter[int]] = defaultdict(Counter)
    for node, index, _ in _placed(table):
        placed[copy[node]][index] += 1
    found: dict[bool, Counter[str]] = defaultdict(Counter)
    for is_indirect, index, node in _calls(program, table):
        row, part = found[is_indirect], "with" if index else "without"
        row[part] += 1
        if node < 0:
            row[f"{part}, nowhere"] += 1
            continue
        elsewhere = placed[copy[node]] - Counter([index])
        kinds = (0, ProbeKind.INDIRECT_CALL, *[ProbeKind.DIRECT_CALL][is_indirect:])
        probes = known[function[node]].items()
        left = [each for each, kind in probes if kind in kinds and each not in elsewhere]
        row[f"{part}, {min(len(left), 2)} left"] += 1
        row["right"] += left == [index]
    return found


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("others", type=Path, nargs="*")
    given = parser.parse_args()
    known: dict[Function, dict[int, int]] = defaultdict(dict)
    for path in (given.program, *given.others):
        table = Program.open(path).probes.table()
        function = _functions(table)
        for node, index, kind in _placed(table):
            known[function[node]][index] = kind or known[function[node]].get(index, 0)
    for is_indirect, row in sorted(_counted(given.program, known).items()):
        print("calls through pointers:" if is_indirect else "direct calls:")
        for part in ("with", "without"):
            several, one, none, nowhere = (
                f"{row[f'{part}, {what}']:,}" for what in ("2 left", "1 left", "0 left", "nowhere")
            )
            told = f" (the right one: {row['right']:,})" if part == "with" else ""
            print(f"    {row[part]:,} {part} a probe, of which are left: one {one}{told}, "
                  f"several {several}, none {none}; in no known function: {nowhere}")  # fmt: skip


if __name__ == "__main__":
    main()
