"""Whether reproducible trainings are: runs that vary what may, and the code that comes of them.

``python benchmarks/reproducible.py FOLDER [--runs N]``

Each run of each program has another directory, length of path, environment, time, and load beside
it, and as root every other one another user. What differs of the exact counts' profile, and of the
`.text` that clang makes with it, is counted.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = Path(__file__).parent.parent / "tests" / "recorders" / "programs"
NAMES = {
    "answers": "asks for times, random numbers and addresses",
    "turns": "threads that take work from each other",
    "threads": "threads that don't",
    "processes": "forks",
    "calls": "calls in every way",
}
FLAGS = ("-O2", "-g", "-w", "-pthread", f"-I{PROGRAMS}")
NOBODY = "65534"


@contextmanager
def load(processes: int) -> Iterator[None]:
    """So many others that want a processor."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def build(name: str, where: Path, *flags: str) -> Path:
    """A program."""
    where.mkdir(parents=True, exist_ok=True)
    out = where / name
    subprocess.run(["clang-22", *FLAGS, *flags, PROGRAMS / f"{name}.c", "-o", out], check=True)
    return out


def text_of(program: Path) -> str:
    """Hash of a program's code."""
    out = program.with_suffix(".text")
    words = ("-O", "binary", "--only-section=.text", program, out)
    subprocess.run(["llvm-objcopy-22", *words], check=True)
    return hashlib.sha256(out.read_bytes()).hexdigest()


def trained(name: str, program: Path, folder: Path, number: int) -> tuple[str, str]:
    """Hashes of the profile, and of the code built with it, of one run."""
    place = folder / ("far" * (number % 7)) / f"run{number}"
    shutil.copytree(program.parent, place)
    for path in (place, *place.parents[: 1 + bool(number % 7)], *place.iterdir()):
        path.chmod(0o777)
    user = ("setpriv", f"--reuid={NOBODY}", "--clear-groups")
    environment = {**os.environ, "MORE": "x" * (number * 37), "TZ": f"Etc/GMT+{number % 12}"}
    if os.geteuid() == 0 and number % 2:
        environment["XDG_CACHE_HOME"] = str(place / "cache")
    record = ("record", "--reproducible", "-o", "run.data", "--", place / name)
    words = [sys.executable, "-m", "lbr2pgo", *map(str, record)]
    if os.geteuid() == 0 and number % 2:
        words = [*user, *words]
    with load(number % 4):
        subprocess.run(words, cwd=place, env=environment, capture_output=True, check=False)
    profile = place / "run.prof"
    convert = ("convert", place / "run.data.exact", "--binary", program, "--llvm", profile)
    words = [sys.executable, "-m", "lbr2pgo", *map(str, convert)]
    subprocess.run(words, check=True, capture_output=True)
    built = build(name, place / "built", f"-fprofile-sample-use={profile}")
    return hashlib.sha256(profile.read_bytes()).hexdigest(), text_of(built)


def main() -> None:
    """Train, build, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    folder = args.folder.resolve()
    print("| program | runs | other profiles | other code |")
    print("| --- | --: | --: | --: |")
    for name, what in NAMES.items():
        program = build(name, folder / name / "plain")
        made = [trained(name, program, folder / name, i) for i in range(args.runs)]
        others = [
            args.runs - Counter(each).most_common(1)[0][1] for each in zip(*made, strict=True)
        ]
        print(f"| {what} | {args.runs} | {others[0]} | {others[1]} |", flush=True)


if __name__ == "__main__":
    main()
