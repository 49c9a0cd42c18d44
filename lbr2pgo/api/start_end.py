"""The function at which the start-up of a command ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.program.code.named_functions import find_function
from lbr2pgo.program.program import Program
from lbr2pgo.recorders.guest import find_guest
from lbr2pgo.recorders.options import StartEnd
from lbr2pgo.support.errors import InputError


def start_end(function: str, command: Sequence[str]) -> StartEnd | None:
    """Where a function of a command's program begins; None without a command.

    Raises InputError where its program, which is the interpreter of a script, has no such function.
    """
    if not command:
        return None
    path = Path(find_guest(tuple(command)).path).resolve()
    program = Program.open(path)
    if not program.symbols.are_complete:
        raise InputError(
            "a stripped program does not tell where its functions are",
            where=str(path),
            cure="Record one with its symbols, or leave out --until.",
        )
    regions = program.regions
    row = int(regions.parent[find_function(program, function)])
    return StartEnd(function, path, int(regions.start[row]))
