"""How a program of `fresh.py` is built, in the working directory: what is there stays."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from fresh_figures import SAMPLED
from fresh_programs import SOURCES, Program
from which_profile import INSTRUMENTED, LBR2PGO, PLAIN, call

UNSIZED = "unsized"
MAKEFILE = """\
CC = clang-22
CXX = clang++-22
CPPFLAGS = -w {flags}
app: {objects}
\t{linker} $(LDFLAGS) -o $@ $^ {libraries}
%.o: %.cxx
\t$(COMPILE.cc) -o $@ $<
"""
MAKE = f"make -B -j{len(os.sched_getaffinity(0))}"
WORK = Path("pgo")
"""Where `lbr2pgo pgo` has left the sampled build."""
COUNTERS = Path("counters.profdata")


class ProgramBuilds:
    """Of one program, by their names."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.train = [expanded(words) for words in program.train]

    def build(self, builds: Sequence[str]) -> None:
        """What of them is not there."""
        self._write_makefile()
        builders: dict[str, Callable[[], None]] = {
            PLAIN: self._build_plainly, INSTRUMENTED: self._build_instrumented,
            SAMPLED: self._build_sampled, UNSIZED: self._build_unsized,
        }  # fmt: skip
        for build in builds:
            if not Path(build).exists():
                builders[build]()
                shutil.move("app", build)

    def pgo(self, work: Path, *words: str, linked: str = "") -> None:
        """Run `lbr2pgo pgo` on the program; its log is beside its files."""
        commands = [shlex.join(["./app", *each]) for each in self.train]
        train = [word for each in commands for word in ("--train", each)]
        built = "--build", MAKE, "--binary", "app", "--work", str(work)
        with work.with_suffix(".log").open("ab") as log:
            subprocess.run(
                (*LBR2PGO, "pgo", *built, *train, *words), check=True, stdout=log, stderr=log,
                env=environment("") | ({"LDFLAGS": linked} if linked else {}),
            )  # fmt: skip

    def _write_makefile(self) -> None:
        files = self._program.files()
        is_plus = any(file.suffix in (".cc", ".cpp", ".cxx") for file in files)
        text = MAKEFILE.format(
            flags=self._program.flags_of_paths(),
            objects=" ".join(str(file.with_suffix(".o")) for file in files),
            linker="$(CXX)" if is_plus else "$(CC)",
            libraries=self._program.libraries,
        )
        Path("Makefile").write_text(text)

    def _build_plainly(self) -> None:
        made("")

    def _build_instrumented(self) -> None:
        counters = Path("counters").absolute()
        made(f"-fprofile-generate={counters}")
        for words in self.train:
            call("./app", *words)
        call("llvm-profdata-22", "merge", "-o", COUNTERS, counters)
        made(f"-fprofile-use={COUNTERS.absolute()}")

    def _build_unsized(self) -> None:
        made(f"-fprofile-use={COUNTERS.absolute()} -mllvm -disable-memop-opt")

    def _build_sampled(self) -> None:
        self.pgo(WORK, "--to-step", "rebuild")


def expanded(words: str) -> list[str]:
    """As a shell would: folders of sources, braces and patterns."""
    command = f"S={SOURCES}; printf '%s\\0' {words}"
    return call("bash", "-c", command).decode().split("\0")[:-1]


def environment(flags: str) -> dict[str, str]:
    """Of a build; without flags, of one whose flags `lbr2pgo pgo` gives."""
    own = {key: text for key, text in os.environ.items() if key not in ("CFLAGS", "CXXFLAGS")}
    return own | (dict.fromkeys(("CFLAGS", "CXXFLAGS", "LDFLAGS"), flags) if flags else {})


def made(flags: str) -> None:
    """Build by make."""
    subprocess.run(
        MAKE.split(), check=True, stdout=subprocess.DEVNULL, env=environment(f"-O2 {flags}")
    )
