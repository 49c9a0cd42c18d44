"""What came out of a build: whether its code is another one's, and which flags won."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.program.dwarf.compile_units import command_lines
from lbr2pgo.program.elf.image import Image

RECORD_FLAGS = ("-frecord-gcc-switches",)
"""Keeps each unit's command line, beside the code. clang and GCC both know this name of it."""
_LEVEL = re.compile(r"-O(?:[0-9]|s|z|g|fast)?")


def same_code(a: Path, b: Path) -> bool:
    """Whether two programs have the same instructions."""
    return code_digest(a) == code_digest(b)


def code_digest(path: Path) -> str:
    """Of a program's instructions and where they are.

    Files differ by more: build-ids, dates, what compilers note of probes and of command lines.
    """
    image, digest = Image.open(path), hashlib.sha256()
    for section in image.sections:
        if section.is_code:
            digest.update(f"{section.name}\0{section.address}\0{section.size}\0".encode())
            digest.update(image.contents(section) or b"")
    return digest.hexdigest()


def winning_levels(build: Path, flags: Sequence[str]) -> tuple[str, ...]:
    """Levels of optimisation that won over the one among flags; none if there is none, or it won.

    `build` was built with `RECORD_FLAGS`. Of a command line's levels, the last one counts.
    """
    wanted = _last_level(flags)
    if wanted is None:
        return ()
    found = {_last_level(line.split()) for line in command_lines(Image.open(build))}
    return tuple(sorted(level for level in found - {wanted} if level is not None))


def _last_level(words: Sequence[str]) -> str | None:
    levels = [word for word in words if _LEVEL.fullmatch(word)]
    return levels[-1] if levels else None
