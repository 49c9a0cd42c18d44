"""`perf-PID.map`: names of code that a process made, which it writes as it makes it.

A line is start and size in hexadecimal, and a name that may hold spaces. Of lines over one another
the last counts: that there was something else before is all that they tell of time.

Source: perf: tools/perf/Documentation/jit-interface.txt.
"""

from __future__ import annotations

import re
from pathlib import Path

from lbr2pgo.program.jit.made_functions import LONGEST_NAME, JitFunction, newest, read_made
from lbr2pgo.support.errors import InputError

_LINE = re.compile(rb"(?:0x)?([0-9a-f]{1,16}) +(?:0x)?([0-9a-f]{1,16}) +(.*\S)", re.IGNORECASE)
_LARGEST = 256 << 20
"""Bytes of a file, and of a function."""


def read_perf_map(path: Path, *, is_named: bool = True) -> tuple[list[JitFunction], int]:
    """The functions, and how many lines could not be used: the process may write still.

    Raises InputError for a file that holds no such line, and as `read_made`.
    """
    content = read_made(path, _LARGEST, is_named=is_named)
    lines = [line for line in content.split(b"\n") if line]
    found = (_function(match) for line in lines if (match := _LINE.match(line)))
    possible = [each for each in found if each.is_possible and each.size <= _LARGEST]
    if lines and not possible:
        raise InputError(
            "holds no line of start, size and name",
            where=str(path),
            cure="Give the perf-PID.map that the recorded process wrote.",
        )
    return newest(possible), len(lines) - len(possible)


def _function(line: re.Match[bytes]) -> JitFunction:
    return JitFunction(int(line[1], 16), int(line[2], 16), line[3][:LONGEST_NAME])
