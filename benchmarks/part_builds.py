"""Builds of a large program of which only some files are compiled again.

What all builds share is built once by CMake and Ninja, or is a static library that Debian has
built. Of the files whose code ran, each build has objects of its own, which are linked first: what
several files define (templates, inline functions) is theirs then.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from which_profile import call

from lbr2pgo.model.exact_counts import ExactCounts
from lbr2pgo.program.elf.image import Image
from lbr2pgo.sources.exact_counts import image_of
from lbr2pgo.support.arrays import U64

COMPILED = (
    "-O2 -g1 -fdebug-info-for-profiling -fpseudo-probe-for-profiling -ffunction-sections "
    "-fno-pie -w"
)
"""Probes and debug information change no code, so this is the plain build and the recorded one."""
LINKED = "-no-pie", "-fuse-ld=lld"
_FIRST_WINS = "-Wl,-z,muldefs"
"""A library's file that was built with more in it (dumps, asserts) comes along, behind ours."""
_CLANG = "-DCMAKE_C_COMPILER=clang-22", "-DCMAKE_CXX_COMPILER=clang++-22"
_SECTION = re.compile(
    r"\s*([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)\s+\d+\s+(\S+\.o\)?):\(\.text[^)]*\)"
)
"""Code in lld's map: address, size and object, which may be a library's."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """How Ninja makes one object."""

    object: str
    """Below the folder of the build."""
    words: Sequence[str]
    """The command, less the object's name."""


class PartBuild:
    """One program, built below a folder."""

    def __init__(
        self, folder: Path, target: str, driver: Path | None = None, libraries: Sequence[str] = ()
    ) -> None:
        """Of Ninja's target; or of libraries that are there, whose sources the target has.

        These are what the linker is told. A driver is a source that makes a program of them,
        compiled as their last file is.
        """
        self.folder, self._target, self._driver = folder, target, driver
        self._built = libraries

    def configure(
        self, source: Path, options: Sequence[str], generated: Sequence[str] = ()
    ) -> None:
        """Build what all builds share, unless that was done; of libraries, targets of headers."""
        flags = [f"-DCMAKE_{language}_FLAGS={COMPILED}" for language in ("C", "CXX")]
        kind = [f"-DCMAKE_{language}_FLAGS_RELEASE=-DNDEBUG" for language in ("C", "CXX")]
        linked = f"-DCMAKE_EXE_LINKER_FLAGS={' '.join(LINKED)}"
        told = "-DCMAKE_BUILD_TYPE=Release", *_CLANG, *flags, *kind, linked, *options
        if not (self.folder / "build.ninja").exists():
            call("cmake", "-G", "Ninja", "-S", source, "-B", self.folder, *told)
        targets = generated if self._built else [self._target]
        if targets:  # without any, Ninja makes all
            call("ninja", "-C", self.folder, *targets)

    @cached_property
    def _commands(self) -> list[list[str]]:
        told = call("ninja", "-C", self.folder, "-t", "commands", self._target).decode()
        return [shlex.split(line) for line in told.splitlines()]

    @cached_property
    def compilations(self) -> list[Compilation]:
        """Of all objects, in the order of the build."""
        found = [_compilation(words) for words in self._commands if "-c" in words]
        if self._driver is None:
            return found
        words = found[-1].words
        own = [*words[: words.index("-c") + 1], str(self._driver)]
        return [Compilation(f"{self._driver.name}.o", own), *found]

    @cached_property
    def _libraries(self) -> list[str]:
        """What else is linked: all that stands outside, by name or path."""
        if self._built:
            return list(self._built)
        linked = self._commands[-1]
        names = linked[linked.index("-o") + 2 :]
        ours = {path.name for path in self.folder.rglob("*.a")}
        return [
            word for word in names
            if word.startswith(("-l", "/")) and Path(word).name not in ours
        ]  # fmt: skip

    def compile(self, names: Sequence[str], out: Path, *flags: str) -> dict[str, Path]:
        """Compile some objects with more flags; where each is."""
        parts = [each for each in self.compilations if each.object in set(names)]
        made = {part.object: out / part.object.replace("/", "+") for part in parts}
        out.mkdir(exist_ok=True)

        def compile_one(part: Compilation) -> None:
            if not made[part.object].exists():
                words = (*part.words, *flags, "-o", str(made[part.object].resolve()))
                subprocess.run(words, check=True, cwd=self.folder)

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(compile_one, parts))
        return made

    def link(
        self, out: Path, first: Mapping[str, Path] | None = None, flags: Sequence[str] = ()
    ) -> None:
        """Link objects that were compiled first, and what else is shared; beside it lld's map."""
        first = first or {}
        shared = [] if self._built else [each.object for each in self.compilations]
        others = [self.folder / name for name in shared if name not in first]
        answers = out.with_name(f"{out.name}.objects")
        objects = (shlex.quote(str(each.resolve())) for each in (*first.values(), *others))
        answers.write_text("\n".join(objects))
        told = *LINKED, f"-Wl,--build-id,-Map={out}.map", _FIRST_WINS, *flags
        call("clang++-22", *told, f"@{answers}", *self._libraries, "-o", out)

    def hot_objects(self, program: Path, counts: Path, share: float) -> list[str]:
        """The fewest objects whose code has such a share of the branches in exact counts."""
        own = self._own()
        start, size, names = _functions(Path(f"{program}.map"))
        names = [Path(name).name if self._built else name for name in names]
        place, count = _branches(program, counts)
        at = np.searchsorted(start, place, side="right") - 1
        inside = (at >= 0) & (place < (start + size)[at])
        branches: dict[str, int] = dict.fromkeys(own.values(), 0)
        for index, times in zip(at[inside].tolist(), count[inside].tolist(), strict=True):
            name = names[index]
            if name in own:
                branches[own[name]] += times
        ranked = sorted(branches, key=lambda name: (-branches[name], name))
        covered = np.cumsum([branches[name] for name in ranked])
        return ranked[: int(np.searchsorted(covered, share * float(covered[-1]))) + 1]

    def _own(self) -> dict[str, str]:
        """Our objects by their names in lld's map, less those that two libraries' members share."""
        names = [self._mapped(each.object) for each in self.compilations]
        often = Counter(names)
        pairs = zip(names, self.compilations, strict=True)
        return {name: each.object for name, each in pairs if often[name] == 1}

    def _mapped(self, name: str) -> str:
        if not self._built:
            return str((self.folder / name).resolve())
        folders, _, member = name.rpartition(".dir/")
        library = folders.rpartition("/")[2].removeprefix("obj.")
        return f"lib{library}.a({member.rpartition('/')[2]})" if library else name


def _compilation(words: Sequence[str]) -> Compilation:
    """Without what else it writes, the lists of headers."""
    at = words.index("-o")
    other = {at, at + 1}
    for option, length in (("-MD", 1), ("-MT", 2), ("-MF", 2)):
        if option in words:
            first = words.index(option)
            other.update(range(first, first + length))
    return Compilation(
        words[at + 1], [word for number, word in enumerate(words) if number not in other]
    )


def _functions(linked: Path) -> tuple[U64, U64, list[str]]:
    """Start, size and object of each function, by address."""
    found = [match.groups() for match in map(_SECTION.match, linked.open()) if match]
    rows = sorted((int(start, 16), int(size, 16), name) for start, size, name in found)
    starts, sizes, names = zip(*rows, strict=True)
    return np.array(starts, np.uint64), np.array(sizes, np.uint64), list(names)


def _branches(program: Path, counts: Path) -> tuple[U64, U64]:
    """Where the program branched, and how often."""
    exact = ExactCounts.load(counts)
    own = exact.from_image == image_of(exact, Image.open(program).layout, str(counts))
    return exact.from_[own], exact.count[own]
