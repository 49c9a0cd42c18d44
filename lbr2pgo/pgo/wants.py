"""What a run that failed, or did nothing, may have wanted, and how to give it."""

from __future__ import annotations

from pathlib import Path

WANTS = (
    "does it want arguments, input (lbr2pgo … < FILE) or a terminal (script -qec 'CMD' /dev/null)?"
)
_START = 2_000_000
"""Instructions: a program that does nothing runs 0.1 million in C, in C++ 1.7 million."""


def did_nothing(instructions: int) -> str | None:
    """What is to be said of a run that hardly did more than start; None of any other."""
    if instructions >= _START:
        return None
    return f"ran only {instructions:,} instructions, hardly more than a start: {WANTS}"


def what_it_read(source: Path | None) -> str:
    """What a command had for its standard input."""
    return f"Its standard input was {source or 'empty'}"
