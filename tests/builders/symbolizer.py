"""What llvm-symbolizer says of addresses, in a form that can be compared."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

Frame = tuple[str, int, int, int, str]
"""Function, line, line of declaration, discriminator, file."""


def without_symbols(binary: Path, target: Path) -> Path:
    """A copy without symbol table, from which the symbolizer would take names."""
    command = ["llvm-objcopy-22", "-R", ".symtab", "-R", ".strtab", "-R", ".rela.*"]
    subprocess.run([*command, binary, target], check=True)
    package = Path(f"{binary}.dwp")
    if package.exists():
        shutil.copy(package, f"{target}.dwp")
    return target


def symbolize(binary: Path, addresses: Iterable[int]) -> list[list[Frame]]:
    """Frames of each address, outermost first; none where the symbolizer knows nothing."""
    done = subprocess.run(
        ["llvm-symbolizer-22", "--output-style=JSON", "--functions=linkage", "--no-demangle",
         f"--obj={binary}"],
        input="\n".join(map(hex, addresses)), capture_output=True, text=True, check=True,
    )  # fmt: skip
    answers = [json.loads(line).get("Symbol", []) for line in done.stdout.splitlines()]
    return [_frames(answer) for answer in answers]


def _frames(answer: list[dict[str, object]]) -> list[Frame]:
    keys = ("FunctionName", "Line", "StartLine", "Discriminator", "FileName")
    return telling([tuple(frame[key] for key in keys) for frame in reversed(answer)])  # type: ignore[misc]


def telling(frames: list[Frame]) -> list[Frame]:
    """The frames, or none if there is only one with nothing but a file in it.

    Where the symbolizer knows nothing it gives such a frame too, with a file name taken from
    symbols.
    """
    return [] if len(frames) == 1 and frames[0][1:4] == (0, 0, 0) else frames
