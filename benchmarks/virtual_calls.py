"""What could be said of the targets of virtual calls without having seen one.

``python benchmarks/virtual_calls.py EXACT.npz PROGRAM``

A call through a vtable names a slot, and the functions at this slot of all vtables are all that it
may lead to. Each is given its part of the call by how often it was entered in ways that no direct
call explains. Here these are exact, so samples can but do worse. It wants binutils.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program

_CALL = re.compile(r"^ *([0-9a-f]+):\s+call +\*(?:0x([0-9a-f]+))?\(%r\w+\)", re.MULTILINE)
_VTABLE = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) \w _ZTV", re.MULTILINE)
_RELATIVE = re.compile(r"^([0-9a-f]+) +[0-9a-f]+ R_X86_64_RELATIVE +([0-9a-f]+)", re.MULTILINE)
_HEADER = 16
"""Bytes of a vtable before its first slot."""


def _said(*command: object) -> str:
    words = list(map(str, command))
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def _functions_by_slot(path: Path, program: Program) -> dict[int, set[int]]:
    """By the offset of a slot, the functions there in any class's own part of a vtable."""
    starts, content = set(program.functions.start.tolist()), path.read_bytes()
    pointers = {int(a, 16): int(b, 16) for a, b in _RELATIVE.findall(_said("readelf", "-rW", path))}

    def pointer(address: int) -> int:
        for segment in program.image.layout.segments:
            place = address - segment.address
            if 0 <= place < segment.file_size and address not in pointers:
                at = segment.file_offset + place
                return int.from_bytes(content[at : at + 8], "little")
        return pointers.get(address, 0)

    found: dict[int, set[int]] = defaultdict(set)
    for start, size in _VTABLE.findall(_said("nm", "-S", path)):
        for offset in range(0, int(size, 16) - _HEADER, 8):
            target = pointer(int(start, 16) + _HEADER + offset)
            if target not in starts:
                break
            found[offset].add(target)
    return found


def main() -> None:
    """Measure and print, in parts of all calls through pointers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exact", type=Path)
    parser.add_argument("program", type=Path)
    args = parser.parse_args()
    program = Program.open(args.program)
    exact, code = exact_edges_of(args.exact, program), program.branches
    calls = set(code.address[code.kind == Kind.INDIRECT_CALL].tolist())
    truth: dict[int, Counter[int]] = defaultdict(Counter)
    unexplained: Counter[int] = Counter()
    rows = zip(exact.source.tolist(), exact.target.tolist(), exact.count.tolist(), strict=True)
    for source, target, count in rows:
        if source in calls:
            truth[source][target] += count
            unexplained[target] += count
    listing = _said("objdump", "-d", "--no-show-raw-insn", args.program)
    slot = {int(a, 16): int(b or "0", 16) for a, b in _CALL.findall(listing)}
    functions, total = _functions_by_slot(args.program, program), unexplained.total()
    alike = single = sure = right = 0.0
    for site, led in truth.items():
        single += led.total() * (max(led.values()) > 0.95 * led.total())
        may = {f: unexplained[f] for f in functions.get(slot.get(site, -1), ()) if unexplained[f]}
        every = sum(may.values())
        alike += sum(min(led[f], led.total() * n / every) for f, n in may.items())
        likely = max(may, key=may.__getitem__, default=None)
        if likely is not None and may[likely] > every / 2:
            sure += led.total()
            right += led.total() * (led.most_common(1)[0][0] == likely)
    print(f"{total:,} of {exact.count.sum():,} branches are calls through pointers; of these")
    print(f"{single / total:.2f} are at places that lead to one function (19 times in 20)")
    print(f"{alike / total:.2f} would be given the right target")
    print(f"{sure / total:.2f} would be promoted, as one target has more than half")
    print(f"{right / max(sure, 1):.2f} of those would be promoted rightly")


if __name__ == "__main__":
    main()
