"""Compiler and linker flags of each build of the loop, and the environment that carries them.

Builds take flags from CFLAGS, CXXFLAGS and LDFLAGS (GNU make's implicit rules, autoconf; CMake and
Meson when a build directory is set up). What the user has set there stays, before ours.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEBUG_INFO = ("-g", "-fdebug-info-for-profiling")
"""So that samples find their lines, inline frames and discriminators (LLVM: clang/docs/
UsersManual.rst, "Using Sampling Profilers"). Neither changes the code."""
PROBES = ("-fpseudo-probe-for-profiling",)
"""So that samples find the blocks that they were compiled from (the same; both builds need it)."""
FRAME_POINTERS = (
    "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-fno-optimize-sibling-calls",
)  # fmt: skip
"""So that the kernel finds all callers of what it interrupts."""
_OPTIMISE = "-O2"  # what the user gets who sets nothing: a build without it is no base
_USE_PROFILE = "-fprofile-sample-use"
_LINK = ("-Wl,--build-id",)
_FOR_BOLT = ("-Wl,--emit-relocs",)
_COMPILERS = {"CC": ("cc", "c"), "CXX": ("c++", "c++")}
"""Variable, what is used where it is unset, and the language."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the builds of a loop are for."""

    bolt: bool = False
    """What is linked is to be laid out anew."""
    probes: bool = False
    """Profiles are of pseudo probes."""
    frame_pointers: bool = False
    """Hardware records call chains."""
    training: tuple[str, ...] = ()
    """What else the compiler is given where a build is only recorded, behind all other flags."""

    @property
    def only_recorded(self) -> tuple[str, ...]:
        """Flags of the recorded build alone; with none, the plain build is recorded."""
        return (*(FRAME_POINTERS if self.frame_pointers else ()), *self.training)


@dataclass(frozen=True, slots=True)
class BuildFlags:
    """What one build is given."""

    compile: tuple[str, ...]
    link: tuple[str, ...]

    def settings(self, environment: Mapping[str, str]) -> dict[str, str]:
        """CFLAGS, CXXFLAGS and LDFLAGS, the user's own first."""
        base = {name: environment.get(name, _OPTIMISE) for name in ("CFLAGS", "CXXFLAGS")}
        compiling = {name: " ".join((text, *self.compile)) for name, text in base.items()}
        linking = " ".join((environment.get("LDFLAGS", ""), *self.link)).strip()
        return {**compiling, "LDFLAGS": linking}


def plain_flags(wanted: Wanted) -> BuildFlags:
    """Of the build without a profile, which the others are measured against."""
    return BuildFlags(_found(wanted), _linked(wanted))


def training_flags(wanted: Wanted) -> BuildFlags:
    """Of the build that is recorded for the compiler."""
    return BuildFlags((*_found(wanted), *wanted.only_recorded), _linked(wanted))


def profile_flags(profile: Path, wanted: Wanted) -> BuildFlags:
    """Of the build that uses a sample profile; builds run anywhere, so its path is absolute."""
    use = f"{_USE_PROFILE}={profile.resolve()}"
    return BuildFlags((*_found(wanted), use), _linked(wanted))


def _found(wanted: Wanted) -> tuple[str, ...]:
    return (*DEBUG_INFO, *(PROBES if wanted.probes else ()))


def _linked(wanted: Wanted) -> tuple[str, ...]:
    return (*_LINK, *(_FOR_BOLT if wanted.bolt else ()))


def refused_flags(flags: BuildFlags, environment: Mapping[str, str]) -> list[str]:
    """Which flags which compiler does not know, a sentence each.

    The compilers asked are those that the environment names, or cc and c++. A build may choose
    others: this explains a failure, it does not predict one.
    """
    found = []
    for variable, (usual, language) in _COMPILERS.items():
        words = environment.get(variable, usual).split()
        if not words or shutil.which(words[0], path=environment.get("PATH")) is None:
            continue
        options = [flag.partition("=")[0] for flag in flags.compile]
        unknown = [option for option in options if not _is_known(words, language, option)]
        if unknown:
            found.append(f"{' '.join(words)} does not know {', '.join(unknown)}")
    return found


def _is_known(compiler: list[str], language: str, option: str) -> bool:
    value = "=/dev/null" if option == _USE_PROFILE else ""
    command = [*compiler, option + value, "-x", language, "-fsyntax-only", "/dev/null"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
