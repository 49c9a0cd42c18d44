"""Call frame information, beside what LLVM makes of it."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.fixtures import Tool
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.program.elf._call_frames import MADE, NOT_MADE, SAVED, frame_rows
from lbr2pgo.program.elf.image import Image

FRAMES = """
#include <stdlib.h>
#include <string.h>
typedef float Wide __attribute__((vector_size(32)));
Wide sums[8];
__attribute__((noinline)) long leaf(long a) { return a * 3 + 1; }
__attribute__((noinline)) long late(long a, long *b) {
  if (a < 3) return a;
  long s = 0;
  for (long i = 0; i < a; i++) s += leaf(i) * b[i & 1];
  return s;
}
__attribute__((noinline)) long room(long n) {
  long *p = __builtin_alloca(n * 8);
  for (long i = 0; i < n; i++) p[i] = leaf(i);
  return late(n, p);
}
__attribute__((noinline)) long aligned(long n) {
  Wide local[8];
  memset(local, (int)n, sizeof local);
  for (long i = 0; i < n; i++) sums[i & 7] += local[leaf(i) & 7];
  return n;
}
int main(int argc, char **argv) { return room(argc) + aligned(argc) == 9; }
"""
BUILDS = {
    "clang": ("clang-22", "-O2", "-fno-omit-frame-pointer"),
    "gcc": ("gcc", "-O2", "-fno-omit-frame-pointer"),
    "without frame pointers": ("gcc", "-O2", "-mavx2"),
    "in debug_frame": ("clang-22", "-O1", "-g", "-fno-asynchronous-unwind-tables"),
    "aarch64": ("aarch64-linux-gnu-gcc", "-O2"),
    "riscv64": (
        "clang-22",
        "--target=riscv64-linux-gnu",
        "-fuse-ld=lld",
        "-O2",
        "-fno-omit-frame-pointer",
    ),
}
REGISTER = {"x86-64": ("RBP", 6), "aarch64": ("W29", 29), "riscv64": ("X8", 8)}


def state_of(row: str, register: str) -> int:
    frame, _, rest = row.partition(":")
    if re.match(rf"CFA=\[?(?:DW_OP_breg\d+ )?{register}", frame):
        return MADE
    return SAVED if f"{register}=" in rest else NOT_MADE


def rows_of_llvm(said: str, register: str) -> dict[int, int]:
    """The state at each address where a row starts, in entries that cover code."""
    found = {}
    for entry in said.split(" FDE ")[1:]:
        start, end = (int(x, 16) for x in re.findall(r"pc=(\w+)\.\.\.(\w+)", entry)[0])
        for address, row in re.findall(r"(?m)^  0x(\w+): (CFA=.*)", entry):
            if start <= int(address, 16) < end:
                found[int(address, 16)] = state_of(row, register)
    return found


@pytest.mark.parametrize("build", BUILDS)
def test_rows_are_those_of_llvm(
    build: str, tool: Tool, run: Callable[..., Any], tmp_path: Path
) -> None:
    compiler, *flags = BUILDS[build]
    source, path = tmp_path / "frames.c", tmp_path / "frames"
    source.write_text(FRAMES)
    run(tool(compiler), *flags, source, "-o", path)
    image, states = Image.open(path), set()
    register, number = REGISTER[image.machine]
    for name in (".eh_frame", ".debug_frame"):
        section, data = image.section(name), image.section_view(name)
        if section is None or data is None:
            continue
        option = "--eh-frame" if name == ".eh_frame" else "--debug-frame"
        said = run(tool("llvm-dwarfdump-22"), option, path).stdout
        said = said[said.index(f"{name} contents") :].split("contents:")[1]
        wanted = rows_of_llvm(said, register)
        rows = frame_rows(
            np.frombuffer(data, np.uint8), section.address, name == ".debug_frame", number
        ).tolist()
        for address, state in wanted.items():
            assert [row[2] for row in rows if row[0] <= address < row[1]] == [state]
        states |= set(wanted.values())
    assert states >= ({MADE, NOT_MADE, SAVED} if "pointers" not in build else {NOT_MADE, SAVED})


def section_of(instructions: bytes) -> bytes:
    """A common entry that finds the frame by register 7, and one for 16 bytes at 0x100."""
    common = struct.pack("<IB", 0, 1) + b"zR\0\x01\x78\x10\x01\x03" + b"\x0c\x07\x08"
    data = struct.pack("<I", len(common)) + common
    body = struct.pack("<III", len(data) + 4, 0x100, 16) + b"\0" + instructions
    return data + struct.pack("<I", len(body)) + body


def rows_of(instructions: bytes, register: int = 6) -> list[list[int]]:
    return frame_rows(
        np.frombuffer(section_of(instructions), np.uint8), 0, False, register
    ).tolist()


def test_a_frame_is_made_and_left() -> None:
    """push rbp; mov rbp, rsp; …; pop rbp; ret"""
    prologue = b"\x41\x0e\x10\x86\x02" + b"\x43\x0d\x06"
    assert rows_of(prologue + b"\x4a\x0c\x07\x08") == [
        [0x100, 0x101, NOT_MADE, 0x100], [0x101, 0x104, SAVED, 0x100],
        [0x104, 0x10E, MADE, 0x100], [0x10E, 0x110, SAVED, 0x100],
    ]  # fmt: skip


def test_states_are_remembered_and_restored() -> None:
    found = rows_of(b"\x86\x02\x0a\x44\xc6\x44\x0b")
    assert [row[2] for row in found] == [SAVED, NOT_MADE, SAVED]


def test_what_is_behind_damage_is_left_out() -> None:
    """An unknown instruction, a state that was not remembered, an argument that is cut."""
    for damage in (b"\x3f", b"\x0b", b"\x0d", b"\x0f\x7f"):
        assert rows_of(b"\x44\x86\x02\x44" + damage) == [
            [0x100, 0x104, NOT_MADE, 0x100], [0x104, 0x108, SAVED, 0x100],
        ]  # fmt: skip


@given(st.binary(max_size=40))
def test_noise_gives_ranges_of_the_function(instructions: bytes) -> None:
    at = 0x100
    for start, end, state, function in rows_of(instructions):
        assert start == at < end <= 0x110
        assert (state in (NOT_MADE, SAVED, MADE), function) == (True, 0x100)
        at = end


@given(st.binary(max_size=200), st.booleans())
def test_noise_in_a_section_ends(data: bytes, is_debug: bool) -> None:
    assert frame_rows(np.frombuffer(data, np.uint8), 0, is_debug, 6).shape[1] == 4
