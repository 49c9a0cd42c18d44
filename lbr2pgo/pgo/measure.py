"""What programs that do the same work cost: counted under the software LBR, and timed.

Instructions, taken branches and simulated mispredictions are counted in one emulated run of each
program; they are exact, and the same in every run of a program that does the same each time. Wall
time is noisy, so the programs take turns: each round runs every one of them once, the order turns
round by round, and only times of one round are compared. The interval is distribution-free, see
`median_interval`.
"""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.pgo.steps import command_words, put, with_binary
from lbr2pgo.record.guest import find_guest
from lbr2pgo.record.hardware import exit_code
from lbr2pgo.record.options import RecordOptions
from lbr2pgo.record.software import record_software
from lbr2pgo.support.arrays import F64
from lbr2pgo.support.errors import InputError

CONFIDENCE = 0.95
FEWEST_RUNS = 6
"""Rounds that an interval of this confidence needs: 2 · 0.5⁶ is the first below 0.05."""
_NO_SAMPLES = 1 << 60  # branches between samples: only the totals are wanted


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program to be measured, and how it is called."""

    name: str
    command: tuple[str, ...]
    swap: tuple[Path, Path] | None = None
    """A build, and the file in whose place the command finds it."""

    def set_up(self) -> None:
        """Put the build where the command finds it."""
        if self.swap is not None:
            put(*self.swap)


def candidate_of(text: str, place: Path, build: Path, content: Path | None = None) -> Candidate:
    """A build of what is at a place, run by a command that names it, or finds it there.

    `content` is the build's file, if it is not at `build` all the time.
    """
    named = with_binary(text, place, build)
    if named is not None:
        return Candidate(str(build), command_words(named))
    return Candidate(str(build), command_words(text), (content or build, place))


@dataclass(frozen=True, slots=True)
class CountedRun:
    """One emulated run."""

    totals: Totals
    """Of all its processes, and of the libraries too."""
    exit_code: int
    """128 + n if signal n ended it."""
    output: str
    """SHA-256 of what it wrote to standard output, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A median, and where the true one lies with a confidence of `CONFIDENCE`."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one program costs."""

    name: str
    counted: CountedRun
    seconds: F64
    """(rounds,): wall time, process start included; empty if it was not timed."""

    def time_ratio(self, base: Measured) -> Interval | None:
        """Its wall time, with that of `base` as 1; None if there is none."""
        return median_interval(self.seconds / base.seconds) if len(self.seconds) else None

    def count_ratios(self, base: Measured) -> dict[str, float | None]:
        """Instructions, taken branches and mispredictions, with those of `base` as 1."""
        return {
            name: getattr(self.counted.totals, name) / getattr(base.counted.totals, name)
            if getattr(base.counted.totals, name)
            else None
            for name in ("instructions", "taken", "mispredicted")
        }


def measure(candidates: Sequence[Candidate], runs: int) -> list[Measured]:
    """Count each program once and time it `runs` times (0: not at all).

    A program for another kind of processor can't be timed here. Input is empty, standard output is
    compared and dropped. Raises InputError where the programs do not exit alike or can't be
    emulated, or for a number of runs that gives no interval; MissingToolError as
    `record_software`.
    """
    check_runs(runs)
    names = [candidate.name for candidate in candidates]
    with _kept({candidate.swap[1] for candidate in candidates if candidate.swap}):
        counted = [_count(candidate) for candidate in candidates]
        codes = [each.exit_code for each in counted]
        _refuse_different_exits(names, codes)
        are_native = all(is_native(candidate.command) for candidate in candidates)
        seconds = _time_rounds(candidates, runs if are_native else 0, codes[0])
    return [Measured(*row) for row in zip(names, counted, seconds.T, strict=True)]


@contextmanager
def _kept(files: Iterable[Path]) -> Iterator[None]:
    """Put files back that are replaced meanwhile, also when that is interrupted."""
    with TemporaryDirectory(prefix="lbr2pgo-") as directory:
        copies = {file: Path(directory) / str(i) for i, file in enumerate(files)}
        for file, copy in copies.items():
            put(file, copy)
        try:
            yield
        finally:
            for file, copy in copies.items():
                put(copy, file)


def check_runs(runs: int) -> None:
    """Raise InputError for a number of timed runs that gives no interval; 0 is good."""
    if runs and runs < FEWEST_RUNS:
        raise InputError(
            f"{runs} runs can't give a {CONFIDENCE:.0%} confidence interval",
            cure=f"Give --runs {FEWEST_RUNS} or more, or 0 to leave time out.",
        )


def differing_outputs(measured: Sequence[Measured]) -> list[str]:
    """Names of programs whose output is not that of the first."""
    first = measured[0].counted.output
    return [each.name for each in measured if each.counted.output != first]


def median_interval(values: F64) -> Interval:
    """The median and its sign-test interval: the k-th smallest and the k-th largest value.

    Each value lies below the true median with a chance of one half, whatever the distribution, so
    k is the largest rank for which fewer than k of n values lie there with at most half of the
    chance that the interval may miss. `values` is (n,), n at least `FEWEST_RUNS`.

    >>> median_interval(np.arange(1.0, 16.0))  # n = 15: k = 4, it misses with a chance of 3.5 %
    Interval(median=8.0, low=4.0, high=12.0)
    """
    ordered = np.sort(values)
    n = len(ordered)
    chance, rank = 0.5**n, 0
    while chance <= (1 - CONFIDENCE) / 2:
        rank += 1
        chance += math.comb(n, rank) * 0.5**n
    if rank == 0:
        raise ValueError(f"{n} values are too few for an interval")
    return Interval(float(np.median(ordered)), float(ordered[rank - 1]), float(ordered[-rank]))


def count_exactly(candidates: Sequence[Candidate], folder: Path) -> list[tuple[CountedRun, Path]]:
    """Count each once, and every branch of it in an exact file in a folder.

    Raises InputError where the programs do not do the same, as far as that is seen from outside.
    """
    with _kept({candidate.swap[1] for candidate in candidates if candidate.swap}):
        files = [folder / f"{number}.exact" for number in range(len(candidates))]
        counted = [_count(*each) for each in zip(candidates, files, strict=True)]
    names = [candidate.name for candidate in candidates]
    _refuse_different_exits(names, [each.exit_code for each in counted])
    if len({each.output for each in counted}) > 1:
        raise InputError(
            f"the programs do not write the same: {', '.join(names)}",
            cure="Only programs that do the same work can be compared.",
        )
    return list(zip(counted, files, strict=True))


def _count(candidate: Candidate, exact: Path | None = None) -> CountedRun:
    candidate.set_up()
    with TemporaryDirectory(prefix="lbr2pgo-") as directory:
        options = RecordOptions(
            output=Path(directory) / "perf.data", command=candidate.command, period=_NO_SAMPLES,
            emulate=True, exact=exact,
        )  # fmt: skip
        output = Path(directory) / "output"
        with output.open("wb") as stream:
            result = record_software(options, program_output=stream)
        with output.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return CountedRun(result.totals, result.exit_code, digest)


def is_native(command: tuple[str, ...]) -> bool:
    """Whether this machine runs the command's program without emulation."""
    return os.uname().machine in find_guest(command).architecture.uname


def _time_rounds(candidates: Sequence[Candidate], runs: int, code: int) -> F64:
    """(runs, candidates): seconds of each run."""
    seconds = np.zeros((runs, len(candidates)))
    for round_, i in _turns(runs, len(candidates)):
        candidates[i].set_up()
        start = time.perf_counter()
        done = subprocess.run(
            candidates[i].command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        seconds[round_, i] = time.perf_counter() - start
        _refuse_different_exits(
            [f"{candidates[i].name} emulated", "run natively"], [code, exit_code(done.returncode)]
        )
    return seconds


def _turns(rounds: int, candidates: int) -> Iterator[tuple[int, int]]:
    """Every candidate once a round; another one begins each time, so that none is always first."""
    for round_ in range(rounds):
        for turn in range(candidates):
            yield round_, (round_ + turn) % candidates


def _refuse_different_exits(names: Sequence[str], codes: Sequence[int]) -> None:
    if len(set(codes)) > 1:
        ends = ", ".join(f"{name} with {code}" for name, code in zip(names, codes, strict=True))
        raise InputError(
            f"the programs do not exit alike: {ends}",
            cure="Only programs that do the same work can be compared.",
        )
