"""The inputs, made once and kept in a folder: a long recording, its text, a large program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import many_functions
from tiling import tile
from tools import Case

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "sqlite"
SAMPLES = 72_674
TIMES = (1, 10)
TIMES_IF_LARGE = 69
ROUNDS = "270"
IS_LARGE = os.environ.get("BENCH_LARGE") == "1"


def cases(folder: Path) -> Iterator[Case]:
    """Every input that can be made here."""
    folder.mkdir(parents=True, exist_ok=True)
    if CORPUS.is_dir():
        yield from _sqlite_cases(folder)
    else:
        print("no SQLite corpus: its cases are left out", file=sys.stderr)
    if all(map(shutil.which, ("clang++-22", "ld.lld-22", "qemu-x86_64"))):
        program = many_functions.build(folder / "large")
        yield Case("large C++ program", _recorded(program), program, has_much_code=True)
        if IS_LARGE:
            files = many_functions.FILES_OF_500_MB
            program = many_functions.build(folder / "full", files, "-g")
            size = f"{program.stat().st_size / 1e6:.0f} MB"
            name = f"C++ program of {size}, full DWARF 5"
            yield Case(name, _recorded(program), program, has_much_code=True)
    else:
        print("no clang-22, lld-22 or QEMU: no large program", file=sys.stderr)


def _sqlite_cases(folder: Path) -> Iterator[Case]:
    binary = unpacked(CORPUS / "sq.zst", folder / "sq")
    binary.chmod(0o755)
    recording = unpacked(CORPUS / "sq.perf.data.zst", folder / "sq.perf.data")
    times = (*TIMES, TIMES_IF_LARGE) if IS_LARGE else TIMES
    for count in times:
        tiled = folder / f"sq.{count}.perf.data"
        if not tiled.exists():
            tile(recording, count, tiled)
        yield Case(f"SQLite, {count * SAMPLES:,} samples", tiled, binary)
    if shutil.which("perf"):
        for count in TIMES:
            text = _as_text(folder / f"sq.{count}.perf.data")
            yield Case(f"SQLite, {count * SAMPLES:,} samples as text", text, binary, is_text=True)


def unpacked(source: Path, target: Path) -> Path:
    """A file of the corpus, unpacked if it is not there."""
    if not target.exists():
        subprocess.run(["zstd", "-dqf", source, "-o", target], check=True)
    return target


def _as_text(recording: Path) -> Path:
    text = recording.with_suffix(".txt")
    if not text.exists():
        script = ["perf", "script", "--show-mmap-events", "-F", "ip,brstack", "-i", str(recording)]
        with text.open("wb") as out:
            subprocess.run(script, stdout=out, stderr=subprocess.DEVNULL, check=True)
    return text


def _recorded(program: Path) -> Path:
    recording = program.with_name("perf.data")
    if not recording.exists():
        command = [
            sys.executable, "-m", "lbr2pgo", "record", "--emulate", "-c", "1009",
            "-o", str(recording), "--", str(program), ROUNDS,
        ]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return recording
