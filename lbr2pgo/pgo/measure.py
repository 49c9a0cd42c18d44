"""What programs that do the same work cost: counted under the software LBR, and timed.

Instructions, taken branches and simulated mispredictions are counted in one emulated run of each
program; they are exact, and the same in every run of a program that does the same each time. The
first program is counted twice, which shows whether it does. Times are taken natively, by `timing`,
and so is what hardware counts, by `perf_counters`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from lbr2pgo.model.exact_counts import Totals
from lbr2pgo.pgo.code_size import CodeSize, code_size
from lbr2pgo.pgo.native_memory import MemoryState, MemoryUse, memory_use
from lbr2pgo.pgo.perf_counters import (
    EVENTS,
    Countable,
    EventCount,
    count_events,
    countable,
)
from lbr2pgo.pgo.standard_input import reading
from lbr2pgo.pgo.steps import command_words, put, with_binary
from lbr2pgo.pgo.timing import (
    BY_CHANCE,
    FEWEST_RUNS,
    NOT_TIMED,
    Interval,
    Rounds,
    is_short,
    median_interval,
    sign_test,
    time_in_turns,
)
from lbr2pgo.recorders.front_end import USUAL, FrontEnd, FrontEndCounts, preset
from lbr2pgo.recorders.guest import find_guest
from lbr2pgo.recorders.hardware import exit_code
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.support.arrays import F64
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.timings import Timings

_NO_SAMPLES = 1 << 60  # branches between samples: only the totals are wanted


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program to be measured, and how it is called."""

    name: str
    command: tuple[str, ...]
    swap: tuple[Path, Path] | None = None
    """A build, and the file in whose place the command finds it."""
    build: Path | None = None
    """The program's file, if it is not the command's first word."""
    input: Path | None = None
    """A file with its standard input, which else is empty."""

    @property
    def file(self) -> Path:
        """The program."""
        return self.build or Path(shutil.which(self.command[0]) or self.command[0])

    def set_up(self) -> None:
        """Put the build where the command finds it."""
        if self.swap is not None:
            put(*self.swap)


def candidate_of(
    text: str,
    place: Path,
    build: Path,
    content: Path | None = None,
    source: Path | None = None,
) -> Candidate:
    """A build of what is at a place, run by a command that names it, or finds it there.

    `content` is the build's file, if it is not at `build` all the time; `source` has the command's
    standard input.
    """
    named = with_binary(text, place, build)
    file = content or build
    if named is not None:
        return Candidate(str(build), command_words(named), None, file, source)
    return Candidate(str(build), command_words(text), (file, place), file, source)


@dataclass(frozen=True, slots=True)
class CountedRun:
    """One emulated run."""

    totals: Totals
    """Of all its processes, and of the libraries too."""
    exit_code: int
    """128 + n if signal n ended it."""
    output: str
    """SHA-256 of what it wrote to standard output, in hexadecimal."""
    front_end: FrontEndCounts | None = None
    """What a simulated front end lacked; None where none was asked for."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one program costs."""

    name: str
    counted: CountedRun
    seconds: F64
    """(rounds,): user time; empty if it was not timed."""
    size: CodeSize | None = None
    """None where the program is no ELF file."""
    again: CountedRun | None = None
    """Another run of the same, of the first program; without a front end, whose cycles nobody
    compares with their own."""
    events: Sequence[Mapping[str, EventCount]] = ()
    """What hardware counted of some native runs, of those events that it can count."""
    uncounted: str = ""
    """Why hardware counted nothing; empty where it did, or nobody asked."""
    memory: MemoryUse | None = None
    """What native runs had in memory; None where nobody asked, or none could be made."""

    def time_ratios(self, base: Measured) -> F64:
        """(rounds,): its user time, with that of `base` as 1; empty if there is none."""
        is_told = base.seconds.all()
        return self.seconds / base.seconds if is_told else base.seconds[:0]

    def time_ratio(self, base: Measured) -> Interval | None:
        """The median of these; None if there are none."""
        ratios = self.time_ratios(base)
        return median_interval(ratios) if len(ratios) else None

    def sure_time(self, base: Measured) -> Interval | None:
        """The same; None where it may be chance, or the times of `base` are too short to tell."""
        time = None if is_short(base.seconds) else self.time_ratio(base)
        return time if time is not None and time.excludes_one else None

    def time_chance(self, base: Measured) -> float:
        """How likely these ratios are, if both programs are equally fast."""
        return sign_test(self.time_ratios(base))

    def count_ratios(self, base: Measured) -> dict[str, float | None]:
        """Instructions, taken branches and mispredictions, with those of `base` as 1."""
        return _ratios(self.counted, base.counted)

    def cycle_ratio(self, base: Measured) -> float | None:
        """Cycles by the model of a front end, with those of `base` as 1; None without one."""
        own, other = self.counted.front_end, base.counted.front_end
        return None if own is None or other is None else own.cycles / other.cycles

    def growth(self, base: Measured) -> float:
        """Bytes of code, with those of `base` as 1; 1 where they are not known."""
        return self.size.text / base.size.text if self.size and base.size else 1.0

    def event_ratios(self, base: Measured) -> dict[str, Interval]:
        """Medians of what hardware counted, with those of `base` as 1, of each turn."""
        found = {}
        for name in self.events[0] if self.events else ():
            runs = [each for each in zip(self.events, base.events, strict=True)
                    if all(name in run and run[name].value for run in each)]  # fmt: skip
            if len(runs) == len(self.events):
                ratios = [own[name].value / other[name].value for own, other in runs]
                found[name] = median_interval(np.array(ratios))
        return found

    @property
    def spread(self) -> dict[str, float]:
        """By what share counts differ from one run of it to the next."""
        ratios = _ratios(self.again or self.counted, self.counted)
        return {name: abs((ratio or 1.0) - 1) for name, ratio in ratios.items()}

    @property
    def noise(self) -> dict[str, float]:
        """By what share those of other programs may differ from its own by chance."""
        return {name: BY_CHANCE * spread for name, spread in self.spread.items()}

    @property
    def repeats_output(self) -> bool:
        """Whether it writes the same each time."""
        return self.again is None or self.again.output == self.counted.output


def _ratios(run: CountedRun, base: CountedRun) -> dict[str, float | None]:
    return {
        name: getattr(run.totals, name) / getattr(base.totals, name)
        if getattr(base.totals, name)
        else None
        for name in ("instructions", "taken", "mispredicted")
    }


def measure(
    candidates: Sequence[Candidate],
    runs: Rounds,
    timings: Timings | None = None,
    front_end: FrontEnd | None = None,
    memory: MemoryState | None = None,
) -> list[Measured]:
    """Count each program once, the first one twice, and time them in turns.

    `front_end` is simulated beside, and what native runs have in memory looked at from the state
    `memory`. A program for another kind of processor can't be timed here. Standard output is
    compared and dropped. Raises InputError where the programs do not exit alike or can't be
    emulated; MissingToolError as `record_software`.
    """
    first, names = candidates[0], [candidate.name for candidate in candidates]
    timings = timings or Timings()
    with _kept(candidates), TemporaryDirectory(prefix="lbr2pgo-") as folder:
        files = [Path(folder) / f"{number}.exact" for number in range(len(candidates))]
        counted = []
        for candidate, file in zip(candidates, files, strict=True):
            with timings.stage(f"count {candidate.name}"):
                counted.append(_count(candidate, file, front_end))
        with timings.stage(f"count {first.name} once more"):
            again = _count(first)
        codes = [each.exit_code for each in (*counted, again)]
        _refuse_different_exits([*names, f"{first.name} once more"], codes)
        sizes = [code_size(each.file, file) for each, file in zip(candidates, files, strict=True)]
        are_native = all(is_native(candidate.command) for candidate in candidates)
        with timings.stage("time in turns"):
            seconds = time_in_turns(
                lambda number: user_time(candidates[number], codes[0]),
                len(candidates),
                runs if are_native else NOT_TIMED,
            )
        with timings.stage("count by hardware"):
            can = countable(EVENTS) if len(seconds) else Countable(())
            events = _event_rounds(candidates, can.events)
        uses = [_memory_use(each, memory if are_native else None) for each in candidates]
    repeated = (again, *[None] * (len(names) - 1))
    why = [can.refusal] * len(names)
    rows = zip(names, counted, seconds.T, sizes, repeated, events, why, uses, strict=True)
    return [Measured(*row) for row in rows]


def count(candidate: Candidate, front_end: FrontEnd | None = None) -> CountedRun:
    """Count one program once; raises as `measure`."""
    with _kept([candidate]):
        return _count(candidate, front_end=front_end)


@contextmanager
def _kept(candidates: Iterable[Candidate]) -> Iterator[None]:
    """Put files back that are replaced meanwhile, also when that is interrupted."""
    files = {candidate.swap[1] for candidate in candidates if candidate.swap}
    with TemporaryDirectory(prefix="lbr2pgo-") as directory:
        copies = {file: Path(directory) / str(i) for i, file in enumerate(files)}
        for file, copy in copies.items():
            put(file, copy)
        try:
            yield
        finally:
            for file, copy in copies.items():
                put(copy, file)


def differing_outputs(measured: Sequence[Measured]) -> list[str]:
    """Names of programs whose output is not that of the first; none if that differs by itself."""
    first, *others = measured
    output = first.counted.output
    is_told = first.repeats_output
    return [each.name for each in others if is_told and each.counted.output != output]


def count_exactly(candidates: Sequence[Candidate], folder: Path) -> list[tuple[CountedRun, Path]]:
    """Count each once, and every branch of it in an exact file in a folder.

    Raises InputError where the programs do not do the same, as far as that is seen from outside.
    """
    with _kept(candidates):
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


def _count(
    candidate: Candidate, exact: Path | None = None, front_end: FrontEnd | None = None
) -> CountedRun:
    candidate.set_up()
    with TemporaryDirectory(prefix="lbr2pgo-") as directory:
        options = RecordOptions(
            output=Path(directory) / "perf.data", command=candidate.command, period=_NO_SAMPLES,
            emulate=True, exact=exact, input=candidate.input or Path(os.devnull),
            front_end=front_end, call_graph=False,
        )  # fmt: skip
        output = Path(directory) / "output"
        with output.open("wb") as stream:
            result = record_software(options, program_output=stream)
        with output.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return CountedRun(result.totals, result.exit_code, digest, result.front_end)


def is_native(command: tuple[str, ...]) -> bool:
    """Whether this machine runs the command's program without emulation."""
    return os.uname().machine in find_guest(command).architecture.uname


def front_end_of(name: str, candidate: Candidate) -> FrontEnd:
    """The front end of that name; of none, what stands for the processors of the program."""
    return preset(name or USUAL[find_guest(candidate.command).architecture.name])


def user_time(candidate: Candidate, code: int) -> float:
    """Seconds of a native run, of what it started too; raises InputError if it ends otherwise."""
    candidate.set_up()
    with reading(candidate.input) as stdin:
        process = subprocess.Popen(
            candidate.command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
    process.returncode = os.waitstatus_to_exitcode(status)
    _refuse_different_exits(
        [f"{candidate.name} emulated", "run natively"], [code, exit_code(process.returncode)]
    )
    return used.ru_utime


def _memory_use(candidate: Candidate, state: MemoryState | None) -> MemoryUse | None:
    if state is None:
        return None
    candidate.set_up()
    with reading(candidate.input) as stdin:
        return memory_use(candidate.command, candidate.file, stdin, cold=state == "cold")


def _event_rounds(
    candidates: Sequence[Candidate], events: Sequence[str]
) -> list[list[dict[str, EventCount]]]:
    """By candidate, what hardware counted in each of its runs; no run where it counts nothing."""
    found: list[list[dict[str, EventCount]]] = [[] for _ in candidates]
    for _ in range(FEWEST_RUNS if events else 0):
        for candidate, runs in zip(candidates, found, strict=True):
            candidate.set_up()
            runs.append(count_events(candidate.command, candidate.input, events))
    return found


def _refuse_different_exits(names: Sequence[str], codes: Sequence[int]) -> None:
    if len(set(codes)) > 1:
        ends = ", ".join(f"{name} with {code}" for name, code in zip(names, codes, strict=True))
        raise InputError(
            f"the programs do not exit alike: {ends}",
            cure="Only programs that do the same work can be compared.",
        )
