"""What came out of a build: whether its code is another one's, and which flags won."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from lbr2pgo.program.elf.image import Image

RECORD_FLAGS = ("-frecord-gcc-switches",)
"""Keeps each unit's command line, beside the code. clang and GCC both know this name of it."""
_COMMAND_LINES = ".GCC.command.line"
_LEVEL = re.compile(r"-O(?:[0-9]|s|z|g|fast)?")


def same_code(a: Path, b: Path) -> bool:
    """Whether two programs have the same instructions.

    Files differ by more: build-ids, dates, what compilers note of probes and of command lines.
    """
    return list(_code(a)) == list(_code(b))


def _code(path: Path) -> Iterator[tuple[str, int, bytes]]:
    image = Image.open(path)
    for section in image.sections:
        if section.is_code:
            yield section.name, section.address, bytes(image.contents(section) or b"")


def winning_levels(build: Path, flags: Sequence[str]) -> tuple[str, ...]:
    """Levels of optimisation that won over the one among flags; none if there is none, or it won.

    `build` was built with `RECORD_FLAGS`. Of a command line's levels, the last one counts.
    """
    wanted = _last_level(flags)
    if wanted is None:
        return ()
    lines = (Image.open(build).section_data(_COMMAND_LINES) or b"").decode(errors="replace")
    found = {_last_level(line.split()) for line in lines.split("\0")}
    return tuple(sorted(level for level in found - {wanted} if level is not None))


def _last_level(words: Sequence[str]) -> str | None:
    levels = [word for word in words if _LEVEL.fullmatch(word)]
    return levels[-1] if levels else None
