"""`perf-PID.map`: names of code that a process made, which it writes as it makes it.

A line is start and size in hexadecimal, and a name that may hold spaces. Of lines over one another
the last counts: that there was something else before is all that they tell of time.

Source: perf: tools/perf/Documentation/jit-interface.txt.
"""

from __future__ import annotations

import re
from pathlib import Path

from lbr2pgo.program.jit.made_file import read_made
from lbr2pgo.program.jit.made_functions import JitFunction, newest
from lbr2pgo.support.errors import InputError

_LINE = re.compile(rb"(?:0x)?([0-9a-f]{1,16}) +(?:0x)?([0-9a-f]{1,16}) +(.*\S)", re.IGNORECASE)
_LARGEST = 256 << 20
"""Bytes of a file, and of a function."""


def read_perf_map(path: Path, *, is_named: bool = True) -> tuple[list[JitFunction], int]:
    """The functions, and how many lines could not be used: the process may write still.

    Raises InputError for a file that holds no such line, and as `read_made`.
    """
    lines = read_made(path, _LARGEST, is_named=is_named).split(b"\n")
    matches = [_LINE.match(line) for line in lines if line]
    found = [
        JitFunction(int(match[1], 16), int(match[2], 16), match[3]) for match in matches if match
    ]
    possible = [each for each in found if each.is_possible and each.size <= _LARGEST]
    if matches and not possible:
        raise InputError(
            "holds no line of start, size and name",
            where=str(path),
            cure="Give the perf-PID.map that the recorded process wrote.",
        )
    return newest(possible), len(matches) - len(possible)
