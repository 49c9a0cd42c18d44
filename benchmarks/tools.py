"""The commands that are compared."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Command = list[str]
OURS = "lbr2pgo"


@dataclass(frozen=True, slots=True)
class Case:
    """One input that every tool gets."""

    name: str
    profile: Path
    binary: Path
    is_text: bool = False
    has_much_code: bool = False
    """So that more threads are worth a row."""


def _lbr2pgo(case: Case, out: Path) -> Command:
    return [
        sys.executable, "-m", "lbr2pgo", "convert", str(case.profile), "--binary",
        str(case.binary), "--llvm", str(out / "our.prof"), "--fdata", str(out / "our.fdata"),
    ]  # fmt: skip


def _by_threads(case: Case, out: Path) -> Mapping[str, Command]:
    """The same with so many threads as there are processors for."""
    numbers = [n for n in (1, 2, 4, 8) if n <= len(os.sched_getaffinity(0))]
    return {
        f"{OURS} --threads {n}": [*_lbr2pgo(case, out), "--threads", str(n)]
        for n in (numbers if case.has_much_code else ())
    }


def _llvm_profgen(case: Case, out: Path) -> Command:
    kind = "perfscript" if case.is_text else "perfdata"
    return [
        "llvm-profgen-22", f"--{kind}={case.profile}", f"--binary={case.binary}",
        f"--output={out / 'profgen.prof'}", "--format=text",
    ]  # fmt: skip


def _perf2bolt(case: Case, out: Path) -> Command:
    return [
        "perf2bolt-22",
        "-p",
        str(case.profile),
        "-o",
        str(out / "bolt.fdata"),
        str(case.binary),
    ]


def commands(case: Case, out: Path) -> Mapping[str, Command]:
    """What to run on an input: lbr2pgo, and those of its peers that are installed."""
    peers: dict[str, Callable[[Case, Path], Command]] = {"llvm-profgen-22": _llvm_profgen}
    if not case.is_text:
        peers["perf2bolt-22"] = _perf2bolt
    installed = {name: make(case, out) for name, make in peers.items() if shutil.which(name)}
    return {OURS: _lbr2pgo(case, out), **_by_threads(case, out), **installed}
