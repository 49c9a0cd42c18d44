"""Programs of many source files, which are made up and compiled side by side."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CXX = "clang++-22"


def build(
    program: Path, sources: Iterable[tuple[str, str]], flags: Sequence[str], linking: Sequence[str]
) -> Path:
    """A C++ program of files with these names and texts, built if it is not there; needs lld-22."""
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda part: compiled(program.parent, *part, flags), sources))
    link(program, objects, linking)
    return program


def compiled(folder: Path, name: str, text: str, flags: Sequence[str]) -> Path:
    """The object of a source file, made if it is not there."""
    target = folder / f"{name}.o"
    if not target.exists():
        (folder / name).write_text(text)
        subprocess.run([CXX, *flags, "-c", name, "-o", target.name], cwd=folder, check=True)
    return target


def link(program: Path, objects: Iterable[Path], linking: Sequence[str]) -> None:
    """A program of these objects."""
    command = [CXX, "-fuse-ld=lld", "-Wl,--build-id", *linking, *map(str, objects)]
    subprocess.run([*command, "-o", str(program)], check=True)
