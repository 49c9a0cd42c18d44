"""Counts the instructions of commands, those of compiled loops too, however busy the machine is.

valgrind runs one process that first does the first command unwatched, so that what is imported and
compiled once is done, and then counts each. In one thread and with one seed of hashes, counts of
equal work differ by less than a thousandth.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_REQUESTS = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; }
void end(void) { CALLGRIND_DUMP_STATS; CALLGRIND_STOP_INSTRUMENTATION; }
"""
_SETTINGS = {"PYTHONHASHSEED": "0", "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-ERMS"}
"""Without ERMS, glibc copies long arrays as it does short ones; with it, each byte is counted."""
_RUN = """
import ctypes, gc, json, sys
from lbr2pgo.cli import main
requests = ctypes.CDLL(sys.argv[1])
commands = [[*words, "--threads", "1"] for words in json.loads(sys.argv[2])]
assert main(commands[0]) == 0
for words in commands:
    gc.collect()
    requests.begin()
    assert main(words) == 0
    requests.end()
"""


def instructions_of(commands: Sequence[Sequence[object]], folder: Path) -> list[int]:
    """How many instructions each command of ours takes, warmed up; needs gcc and valgrind."""
    (folder / "requests.c").write_text(_REQUESTS)
    library = folder / "requests.so"
    subprocess.run(["gcc", "-shared", "-fPIC", folder / "requests.c", "-o", library], check=True)
    words = json.dumps([list(map(str, command)) for command in commands])
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=counted",
         sys.executable, "-c", _RUN, library, words],
        capture_output=True, text=True, cwd=folder, env=os.environ | _SETTINGS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    parts = (folder / f"counted.{number}" for number in range(1, len(commands) + 1))
    return [int(re.findall(r"^totals: (\d+)", part.read_text(), re.M)[0]) for part in parts]
