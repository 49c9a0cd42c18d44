"""Loops over a small interpreter, and what they did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lbr2pgo.pgo.loop import Loop
from lbr2pgo.program.elf.image import Image

BUILD = "clang-22 $CFLAGS interp.c -fuse-ld=lld $LDFLAGS -o app"

MakeLoop = Callable[..., Loop]


def steps(said: list[str]) -> list[str]:
    """Titles of the steps that a loop said."""
    return [line.split(". ", 1)[1] for line in said if line[0].isdigit()]


def is_recorded(image: Image, recording: str = "work/app.perf.data") -> bool:
    """Whether a recording, that for the compiler if not told, names this very build."""
    assert image.build_id is not None
    return bytes.fromhex(image.build_id) in Path(recording).read_bytes()
