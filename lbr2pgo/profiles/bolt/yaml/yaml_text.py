"""BOLT's YAML as it is written: a header, and each function's lines.

Functions stand in one list, their names on the first line of each::

    functions:
      - name:            main
        fid:             6

Source: LLVM: bolt/include/bolt/Profile/ProfileYAMLMapping.h; llvm/lib/Support/YAMLTraits.cpp.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.support.errors import InputError, readable
from lbr2pgo.support.output import PathLike, write_pieces

_HEAD = re.compile(rb"---[ \t]*\r?\nheader:[ \t]*\r?\n +profile-version: ")
_FUNCTION = re.compile(r"  - name: +(.*)")
_END = "..."
_ESCAPES = {"\\\\": "\\", '\\"': '"', "''": "'"}


@dataclass(frozen=True, slots=True)
class YamlProfile:
    """The lines of a file, without what ends it."""

    header: tuple[str, ...]
    """All before the first function."""
    functions: tuple[tuple[str, tuple[str, ...]], ...]
    """Name and lines of each."""


def is_yaml(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a profile of BOLT's in YAML."""
    return _HEAD.match(head) is not None


def read(path: Path) -> YamlProfile:
    """Read a whole file; raises InputError if it can't be read, or is cut off."""
    with readable(path):
        return parse(path.read_bytes(), str(path))


def parse(written: bytes, where: str) -> YamlProfile:
    """As `read`, of what is there already; `where` names it in errors."""
    text = os.fsdecode(written)
    lines = [line.rstrip("\r") for line in text.rstrip("\n").split("\n")]
    if lines[-1] != _END:
        raise InputError(
            f"has no end ({_END}): the file is cut off",
            where=f"{where}:{len(lines)}",
            cure="Make it again: lbr2pgo convert --bolt-yaml.",
        )
    starts = [i for i, line in enumerate(lines) if _FUNCTION.match(line)]
    ends = [*starts, len(lines) - 1][1:]
    functions = (
        (_name(lines[start]), tuple(lines[start:end]))
        for start, end in zip(starts, ends, strict=True)
    )
    return YamlProfile(tuple(lines[: starts[0] if starts else -1]), tuple(functions))


def _name(line: str) -> str:
    """A function's name, which stands between quotes where YAML needs them."""
    match = _FUNCTION.fullmatch(line)
    assert match is not None  # the line begins a function
    said = match[1].strip()
    quote = said[:1]
    if quote not in ("'", '"') or len(said) < 2 or not said.endswith(quote):
        return said
    escapes = "''" if quote == "'" else r"\\[\\\"]"
    return re.sub(escapes, lambda found: _ESCAPES[found[0]], said[1:-1])


def write(content: YamlProfile, path: PathLike) -> None:
    """Write a whole file."""
    write_pieces(path, (os.fsencode(f"{line}\n") for line in lines(content)))


def lines(content: YamlProfile) -> Iterator[str]:
    """The file."""
    yield from content.header
    for _, own in content.functions:
        yield from own
    yield _END
