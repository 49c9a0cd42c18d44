"""Source code beside its figures: where files are now, and whether they are those that were built.

A path of the debug information is looked for as it is, where `--source-dir` says, and in the cache
of debuginfod's client (elfutils: debuginfod-client.c, `BUILDID/source` and the path with `#` for
`/`; newer ones put a hash before it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lbr2pgo.analyses.places import short_paths
from lbr2pgo.analyses.source_view import LineFigures
from lbr2pgo.analyses.table import Column, Table, Unit, Value
from lbr2pgo.program.elf.find import debuginfod_cache
from lbr2pgo.support.dataclass import dataclass

NAME = "source"
_CONTEXT = 3
"""Lines shown around each line that ran."""
_LARGEST = 32 << 20
"""Bytes of a source file; larger ones are hardly written by people, nor for them."""
_TAB = 4

_COLUMNS = (
    Column("line", "source line", Unit.LOCATION),
    Column("count", "executed", Unit.COUNT),
    Column("taken_share", "taken", Unit.SHARE),
    Column("mispredicted", "mispredicted", Unit.COUNT, of_processor=True),
    Column("cycles", "cycles", Unit.CYCLES, of_processor=True),
    Column("text", "source", Unit.TEXT),
)
_SPREAD = "Cycles of a straight run are spread evenly over its instructions."

Moved = tuple[str, str]
"""A beginning of paths in the debug information, and what stands for it here."""


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Finds and reads source files."""

    moved: Sequence[Moved] = ()
    build_id: str | None = None

    def read(self, path: str) -> bytes | None:
        """A file's content; None if it is nowhere, too large, or no plain file."""
        for candidate in self._candidates(path):
            try:
                if candidate.is_file() and candidate.stat().st_size <= _LARGEST:
                    return candidate.read_bytes()
            except (OSError, ValueError):  # a path may hold anything, and name what is forbidden
                continue
        return None

    def _candidates(self, path: str) -> Iterator[Path]:
        for old, new in self.moved:
            rest = _behind(path, old)
            if rest is not None:
                yield Path(new, rest)
        yield Path(path)
        if self.build_id is not None:
            folder = debuginfod_cache() / self.build_id
            name = "source" + path.replace("/", "#")
            yield folder / name
            tail = path.replace("/", "#")[-64:]
            yield from (f for f in sorted(folder.glob("source-*")) if f.name.endswith(tail))


def _behind(path: str, beginning: str) -> str | None:
    """What follows a beginning of a path, whole parts of it only.

    >>> _behind("/build/src/a.c", "/build"), _behind("/builder/a.c", "/build")
    ('src/a.c', None)
    """
    beginning = beginning.rstrip("/")
    if path == beginning or not path.startswith(f"{beginning}/"):
        return None
    return path[len(beginning) + 1 :].lstrip("/")


def source_table(
    name: str, figures: LineFigures, files: SourceFiles, digests: Mapping[str, bytes]
) -> Table:
    """The lines of a function that ran and what stands around them, file by file."""
    rows: list[tuple[Value, ...]] = []
    notes: list[str] = [_SPREAD] if figures.has_cycles else []
    short = short_paths(figures.files)
    for number, path in enumerate(figures.files):
        ran = [row for row in figures.of_file(number) if figures.executed[row]]
        if not ran:
            continue
        content = files.read(path)
        notes += _what_is_wrong(path, content, digests.get(path))
        text = [] if content is None else _lines(content)
        rows += _file_rows(short[number], figures, number, text)
    return Table(NAME, f"Source of {name}", _COLUMNS, tuple(rows), tuple(notes))


def _what_is_wrong(path: str, content: bytes | None, digest: bytes | None) -> Iterator[str]:
    if content is None:
        yield (
            f"The source {path} was not found: say where it is now with --source-dir FROM=TO, "
            "FROM being a beginning of this path."
        )
    elif digest is not None and _md5(content) != digest:
        yield (
            f"The source {path} has changed since the program was built (its MD5 is another): "
            "lines may stand beside figures of others."
        )


def _md5(content: bytes) -> bytes:
    import hashlib  # reports of tables alone need none of it

    return hashlib.md5(content, usedforsecurity=False).digest()


def _lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", "replace")
    return [line.rstrip("\r").expandtabs(_TAB) for line in text.split("\n")]


def _file_rows(
    name: str, figures: LineFigures, number: int, text: Sequence[str]
) -> Iterator[tuple[Value, ...]]:
    by_line = {int(figures.line[row]): row for row in figures.of_file(number)}
    ran = [line for line, row in by_line.items() if figures.executed[row]]
    around = {
        near for line in ran for near in range(line - _CONTEXT, line + _CONTEXT + 1)
        if 0 < near <= len(text)
    }  # fmt: skip
    for line in sorted({*ran, *around}):
        shown = text[line - 1] if line <= len(text) else None
        row = by_line.get(line)
        figure = (None,) * 4 if row is None else _figure(figures, row)
        yield (f"{name}:{line}", *figure, shown)


def _figure(figures: LineFigures, row: int) -> tuple[Value, ...]:
    taken, past = int(figures.taken[row]), int(figures.not_taken[row])
    return (
        int(figures.executed[row]),
        taken / (taken + past) if taken + past else None,
        int(figures.mispredicted[row]) if figures.says_predictions else None,
        round(float(figures.cycles[row]), 1) if figures.has_cycles else None,
    )
