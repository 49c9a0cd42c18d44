"""Code that a program's start touches, by the order that its functions were linked in.

``python benchmarks/startup.py FOLDER SOURCE... [--flags=FLAGS] [--train=WORDS…]
[--arguments=WORDS…]``

Orders are made of the runs with `--train`. In those with `--arguments`, pages of 4 KiB are counted
exactly by the emulator, and KiB of resident code in native runs; both may be given several times.
Objects stay in the folder, and are compiled again only where they are gone: give another folder for
other flags. It wants clang 22, lld 22 and llvm-profdata 22.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lbr2pgo.analyses.touched_pages import ran_pages
from lbr2pgo.pgo.native_memory import memory_use
from lbr2pgo.replay.recordings import Inputs, read_and_replay

LBR2PGO = (sys.executable, "-m", "lbr2pgo")
COMPILED = ("-O2", "-g1", "-w", "-ffunction-sections")
LINKED = ("-w", "-fuse-ld=lld", "-Wl,--build-id")
INSTRUMENTED = ("-fprofile-generate", "-mllvm", "-pgo-temporal-instrumentation")


@dataclass(frozen=True, slots=True)
class Start:
    """A program, the runs that orders are made of, and those that are judged."""

    folder: Path
    sources: Sequence[str]
    flags: Sequence[str]
    training: Sequence[Sequence[str]]
    arguments: Sequence[Sequence[str]]

    def build(self, name: str, *words: str) -> Path:
        """Link the objects of the plain build with what this one is given besides."""
        return self.link(name, self.objects("plain"), *words)

    def objects(self, name: str, *words: str) -> Sequence[Path]:
        """Compile each source alone, on all processors.

        What an earlier run left is kept: large programs compile for long.
        """
        folder = self.folder / f"{name}.objects"
        folder.mkdir(exist_ok=True)
        paths = [folder / f"{number}.o" for number in range(len(self.sources))]

        def compiled(source: str, path: Path) -> None:
            made = path.with_suffix(".part")
            run(compiler_of(source), *COMPILED, *words, *self.flags, "-c", source, "-o", made)
            made.rename(path)

        missing = [pair for pair in zip(self.sources, paths, strict=True) if not pair[1].exists()]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for done in [pool.submit(compiled, *pair) for pair in missing]:
                done.result()
        return paths

    def link(self, name: str, objects: Sequence[Path], *words: str) -> Path:
        """Link objects, by the compiler of their sources."""
        program = self.folder / name
        run(compiler_of(self.sources[0]), *LINKED, *words, *objects, *self.flags, "-o", program)
        return program

    def recorded(self, *how: str) -> list[Path]:
        """Recordings of the plain build in training."""
        paths = [self.folder / f"{number}.perf.data" for number in range(len(self.training))]
        for path, words in zip(paths, self.training, strict=True):
            self.record(self.folder / "plain", words, *how, "-o", path)
        return paths

    def record(self, program: Path, words: Sequence[str], *how: object) -> None:
        """Run one of the builds under the software LBR."""
        run(*LBR2PGO, "record", "--emulate", *how, "--", program, *words)

    def order(self, option: str, *how: str) -> Path:
        """What `convert` makes of recordings."""
        path = self.folder / option.strip("-")
        run(
            *LBR2PGO,
            "convert",
            *self.recorded(*how),
            "--binary",
            self.folder / "plain",
            option,
            path,
        )
        return path

    def pages(self, program: Path) -> Iterator[int]:
        """Pages of its code that ran, for each run that judges."""
        exact = self.folder / "exact.npz"
        for words in self.arguments:
            self.record(program, words, "--exact", exact, "-o", self.folder / "perf.data")
            yield len(ran_pages(read_and_replay(Inputs((exact,), program)).flow))

    def resident(self, program: Path) -> Iterator[int]:
        """KiB of its code that are in memory when each of these runs ends."""
        for words in self.arguments:
            yield memory_use((str(program), *words), program).resident_code >> 10


def run(*words: object, **environment: str) -> str:
    """What a command says on standard output."""
    return subprocess.run(
        list(map(str, words)), check=True, text=True, errors="replace",
        env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ).stdout  # fmt: skip


def compiler_of(source: str) -> str:
    """Of a program, by one of its files."""
    return "clang++-22" if source.endswith(("cc", "cpp")) else "clang-22"


def ordered(path: Path) -> tuple[str, ...]:
    """Flags that link by a list of functions."""
    return (f"-Wl,--symbol-ordering-file={path},--no-warn-symbol-ordering",)


def partitioned(name: Path, *traces: Path) -> tuple[str, ...]:
    """By lld's balanced partitioning of temporal profiles."""
    merged = name.with_suffix(".profdata")
    run("llvm-profdata-22", "merge", *(traces or [name]), "-o", merged)
    return (f"-Wl,--irpgo-profile={merged},--bp-startup-sort=function",)


def instrumented(start: Start) -> tuple[str, ...]:
    """The same of what an instrumented build told."""
    objects = start.objects("instrumented", *INSTRUMENTED)
    program = start.link("instrumented", objects, *INSTRUMENTED)
    raw = [start.folder / f"{number}.profraw" for number in range(len(start.training))]
    for path, words in zip(raw, start.training, strict=True):
        run(program, *words, LLVM_PROFILE_FILE=str(path))
    return partitioned(start.folder / "instrumented", *raw)


BUILDS: dict[str, Callable[[Start], tuple[str, ...]]] = {
    "plain": lambda start: (),
    "--symbol-order, period 997": lambda start: ordered(start.order("--symbol-order", "-c", "997")),
    "--startup-order": lambda start: ordered(start.order("--startup-order", "--startup")),
    "--temporal, by lld": lambda start: partitioned(start.order("--temporal", "--startup")),
    "instrumented, by lld": instrumented,
}


def program_parser(description: str | None, *, runs: str = "store") -> argparse.ArgumentParser:
    """Of a folder, a program's sources and flags, and its runs: an action of argparse's."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sources", nargs="+")
    for name, action in (("flags", "store"), ("train", runs), ("arguments", runs)):
        parser.add_argument(f"--{name}", type=shlex.split, default=[], action=action)
    return parser


def start_of(description: str | None) -> Start:
    """What the command line asks for."""
    given = program_parser(description, runs="append").parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    train, arguments = given.train or [[]], given.arguments or [[]]
    return Start(given.folder, given.sources, given.flags, train, arguments)


def main() -> None:
    """Print a row for each order."""
    start = start_of(__doc__)
    for number, (name, words) in enumerate(BUILDS.items()):
        program = start.build("ordered" if number else "plain", *words(start))
        pages = " ".join(f"{pages:6,}" for pages in start.pages(program))
        resident = " ".join(f"{size:6,} KiB" for size in start.resident(program))
        print(f"{name:28} {pages}   {resident}", flush=True)


if __name__ == "__main__":
    main()
