"""Two builds of a program with pseudo probes, between which most of its functions changed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from builders.fixtures import ROOT

FLAGS = ("-O2", "-g1", "-fpseudo-probe-for-profiling")
SOURCES = ROOT / "tests/programs"


@dataclass(frozen=True)
class ProbedBuild:
    """One of them, with the profile of exact counts of one run."""

    folder: Path

    @property
    def program(self) -> Path:
        """The program."""
        return self.folder / "app"

    @property
    def profile(self) -> Path:
        """Made of a run's exact counts."""
        return self.folder / "app.prof"


def built(source: str, folder: Path, clang: str, *flags: str) -> ProbedBuild:
    """A build; names of static functions are those of any other build."""
    folder.mkdir(exist_ok=True)
    (folder / "app.c").write_bytes((SOURCES / source).read_bytes())
    words = [clang, *(flags or FLAGS), "-w", "app.c", "-o", "app"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return ProbedBuild(folder)


def recorded(build: ProbedBuild, command: Callable[..., object]) -> ProbedBuild:
    """The same with a profile, by `lbr2pgo` commands."""
    exact = build.folder / "app.exact"
    how = ("--emulate", "--exact", exact, "-o", build.folder / "app.data")
    command("record", *how, "--", build.program, "3000")
    command("convert", exact, "--binary", build.program, "--llvm", build.profile)
    return build
