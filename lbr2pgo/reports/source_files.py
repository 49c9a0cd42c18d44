"""Source files that debug information names: where they are now, and which of them are shown.

Whoever made the program chose the names, and a page may be read by others than those who may read
the files of this machine. So a file is shown only from folders that hold source code: given ones,
those of system headers, and, where it is called like source code or has the MD5 that the program
knows, that of the build, the program and the command. Links are resolved before that is judged.

Files that were fetched are in the cache of debuginfod's client (elfutils: debuginfod-client.c,
`BUILDID/source` and the path with `#` for `/`; newer ones put a hash before it).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path

from lbr2pgo.program.dwarf.line import Origin
from lbr2pgo.program.elf.find import debuginfod_cache
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.regular_file import UnfitFileError, read_regular

_LARGEST = 16 << 20
"""Bytes of a source file; larger ones are hardly written by people, nor for them."""
_NEVER = tuple(map(Path, ("/proc", "/sys", "/dev")))
"""What is there is of processes and machines, whoever allows it."""
_SUFFIXES = frozenset((
    ".ada", ".adb", ".ads", ".asm", ".c", ".c++", ".cc", ".cp", ".cpp", ".cppm", ".cr", ".cu",
    ".cuh", ".cxx", ".d", ".def", ".f", ".f03", ".f08", ".f90", ".f95", ".for", ".go", ".h",
    ".h++", ".hh", ".hpp", ".hs", ".hxx", ".i", ".inc", ".inl", ".ipp", ".ixx", ".java", ".jl",
    ".js", ".kt", ".l", ".ll", ".m", ".ml", ".mm", ".mod", ".nim", ".pas", ".py", ".pyx", ".rb",
    ".rs", ".s", ".swift", ".tcc", ".td", ".ts", ".txx", ".v", ".y", ".zig",
))  # fmt: skip
"""Of source code in whatever languages compilers tell lines of, in small letters."""
_CHANGED = (
    "has changed since the program was built (its MD5 is another): lines may stand beside figures "
    "of others."
)
_NOWHERE = (
    "was not found: say where it is now with --source-dir FROM=TO, FROM being a beginning of this "
    "path."
)
_BINARY = bytes({*range(0x20)} - {*b"\t\n\v\f\r\x1a\x1b"})


Moved = tuple[str, str]
"""A beginning of paths in the debug information, and the folder that stands for it here; or none,
and a folder whose files are shown under their own paths."""


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Finds, judges and reads the source files of a program, and says of each once what was wrong.

    What is given by `moved` was asked for; nobody else's word counts as much.
    """

    moved: Sequence[Moved] = ()
    program: str | None = None
    """Path of the program's file."""
    build_id: str | None = None
    """Of the image whose files are read."""
    shows_changed: bool = False
    """Whether a file is shown whose MD5 isn't the one in the debug information."""
    _said: set[str] = field(default_factory=set)
    _lines: dict[Hashable, Sequence[str]] = field(default_factory=dict)

    def lines(self, path: str, origin: Origin) -> tuple[Sequence[str], str]:
        """As `read`, by line: none of a file that isn't shown. However often, it is read once."""
        key, wrong = (path, origin, self.build_id), ""
        if key not in self._lines:
            content, wrong = self.read(path, origin)
            text = None if content is None else content.decode("utf-8", "replace")
            self._lines[key] = () if text is None else text.split("\n")
        return self._lines[key], wrong

    def read(self, path: str, origin: Origin) -> tuple[bytes | None, str]:
        """A file's content, if it is shown, and what is wrong with it, unless that was said."""
        content, wrong = self._read(path, origin)
        is_new = wrong and path not in self._said
        self._said.add(path)
        return content, f"The source {path} {wrong}" if is_new else ""

    def _read(self, path: str, origin: Origin) -> tuple[bytes | None, str]:
        reasons = []
        for candidate in self._candidates(path):
            try:
                real = candidate.resolve()
                if not real.exists():
                    continue
                content = self._fit(real, origin)
            except UnfitFileError as error:
                reasons.append(f"is not shown: it {error}.")
            except (OSError, ValueError, RuntimeError):  # a path may hold anything
                continue
            else:
                is_changed = origin.digest is not None and _md5(content) != origin.digest
                return content, _CHANGED if is_changed else ""
        return None, reasons[0] if reasons else _NOWHERE

    def _fit(self, path: Path, origin: Origin) -> bytes:
        """A file without links in its path; raises UnfitFileError if it isn't to be shown."""
        if _is_below(path, _NEVER):
            raise UnfitFileError("is in /proc, /sys or /dev")
        is_trusted = _is_below(path, self._trusted())
        if not is_trusted and not _is_below(path, self._implied(origin)):
            raise UnfitFileError(
                "is outside of the folders of the build, the program, this command and the "
                "system's headers; --source-dir DIR allows one"
            )
        content = read_regular(path, _LARGEST)
        is_same = origin.digest is not None and _md5(content) == origin.digest
        if not (is_trusted or is_same or path.suffix.lower() in _SUFFIXES):
            raise UnfitFileError(
                "is not called like source code; --source-dir DIR allows all in one"
            )
        if content.translate(None, _BINARY) != content:
            raise UnfitFileError("is no text")
        if origin.digest is not None and not is_same and not self.shows_changed:
            raise UnfitFileError(
                "has changed since the program was built (its MD5 is another); --changed-source "
                "allows that"
            )
        return content

    def _candidates(self, path: str) -> Iterator[Path]:
        for old, new in self.moved:
            rest = _behind(path, old) if old else path
            if rest is not None:
                yield Path(new, rest)
        yield Path(path)
        if self.build_id is not None:
            folder = debuginfod_cache() / self.build_id
            name = "source" + path.replace("/", "#")
            yield folder / name
            tail = path.replace("/", "#")[-64:]
            yield from (f for f in sorted(folder.glob("source-*")) if f.name.endswith(tail))

    def _trusted(self) -> Iterator[Path]:
        """Folders that the user gave, or that hold nothing but what is to be read by anybody."""
        yield from (Path(new) for _, new in self.moved)
        yield from _header_folders()
        if self.build_id is not None:
            yield debuginfod_cache() / self.build_id

    def _implied(self, origin: Origin) -> Iterator[Path]:
        """Folders that are likely to hold source code; all is below `/`, which tells nothing."""
        program = [] if self.program is None else [Path(self.program).resolve().parent]
        for folder in (Path(origin.directory), *program, Path()):
            if folder.resolve() != Path("/"):
                yield folder


@cache
def _header_folders() -> tuple[Path, ...]:
    """Those of compilers and the C library, of this machine and those that it compiles for."""
    own = map(Path, ("/usr/include", "/usr/lib", "/usr/src"))
    return (*own, *Path("/usr").glob("*/include"))


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder.resolve()) for folder in folders)


def _behind(path: str, beginning: str) -> str | None:
    """What follows a beginning of a path, whole parts of it only.

    >>> _behind("/build/src/a.c", "/build"), _behind("/builder/a.c", "/build")
    ('src/a.c', None)
    """
    beginning = beginning.rstrip("/")
    if path == beginning or not path.startswith(f"{beginning}/"):
        return None
    return path[len(beginning) + 1 :].lstrip("/")


def _md5(content: bytes) -> bytes:
    import hashlib  # reports of tables alone need none of it

    return hashlib.md5(content, usedforsecurity=False).digest()
