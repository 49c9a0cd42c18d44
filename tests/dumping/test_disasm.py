from __future__ import annotations

from pathlib import Path

from builders.elf import Function
from builders.flows import flow_of

from lbr2pgo.dumping.disasm import lines
from lbr2pgo.program.dwarf.debug_info import DebugInfo

BASE = 0x401000
CODE = bytes.fromhex("7402 90 90 ffe0 c3")
"""je over two nops; jmp *%rax; ret"""
SYMBOLS = [Function("main", BASE, len(CODE))]
TRACES = [
    (6, 0, 0, 3),  # from the ret to the start, as far as the je: taken
    (0, 4, 4, 3),  # by which it was, as far as the jmp
    (6, 0, 4, 5),  # from the start past the je, as far as the jmp
    (4, 6, 6, 7),  # which went to the ret
    (4, None, None, 1),  # or outside
]


def shown(tmp_path: Path, *, with_counts: bool) -> list[str]:
    flow, program = flow_of(tmp_path, CODE, BASE, TRACES, SYMBOLS)
    debug = DebugInfo.open(program.image)
    return list(lines(program, debug, 0, flow if with_counts else None))


def test_instructions_stand_with_what_they_do(tmp_path: Path) -> None:
    missing, head, place, *rows = shown(tmp_path, with_counts=False)
    assert missing.startswith("no source locations: ")
    assert head == "main: 0x401000-0x401007, 7 bytes"
    assert place == "  ; no source location"
    assert [int(row.split(":")[0], 16) - BASE for row in rows] == [0, 2, 3, 4, 6]
    assert rows[0].endswith("; COND, to 0x401004 <main+0x4>")
    assert rows[1].split() == ["401002:", "90", "nop"]
    assert rows[3].endswith("; INDIRECT_JUMP")


def test_counts_are_how_often_each_ran_and_where_it_led(tmp_path: Path) -> None:
    _, _, _, je, first, _, jump, to_ret, outside, ret = shown(tmp_path, with_counts=True)
    assert [row.split()[0] for row in (je, first, jump, ret)] == ["8", "5", "8", "7"]
    assert je.endswith("taken 3, not taken 5, taken share 37.5%")
    assert jump.endswith("; INDIRECT_JUMP, taken 8")
    assert to_ret.split() == ["7", "times", "to", "0x401006", "<main+0x6>"]
    assert outside.split() == ["1", "time", "to", "outside"]
    assert ret.endswith("; RET, taken 8")
