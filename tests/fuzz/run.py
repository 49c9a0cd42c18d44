"""Coverage-guided fuzzing of the readers: `run.py [--seconds N | --runs N] [TARGET …]`.

Each target runs in a process of its own, with a limit of a gigabyte and of ten seconds of the
processor: on a busy machine, time by the clock tells nothing. These processes are copies of one
that has prepared the package, which takes longer than a few hundred runs. What a target finds
stands in build/fuzz/TARGET, and `run.py --replay TARGET FILE …` runs it again. What led to new code
is kept in build/fuzz/TARGET/seeds, where the next call goes on.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).parent
OUTPUT = HERE.parents[1] / "build" / "fuzz"
SEED = 20260101
PIECE = 2_500
SECONDS = 10
BACKSTOP = 300
"""Seconds by the clock after which even a compiled loop is stopped."""


class TooSlowError(BaseException):
    """Nothing that is read may take so long; no reader catches this."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run targets one after the other; 1 if any of them found something."""
    args = _parser().parse_args(arguments)
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    if args.replay:
        name, *files = args.replay
        return replay(name, map(Path, files))
    targets = _prepared()
    failed = [name for name in args.targets or targets if not _run(name, targets[name], args)]
    print(f"found something: {', '.join(failed)}" if failed else "nothing was found")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument("--seconds", type=int, help="of each target (60)")
    limit.add_argument("--runs", type=int, help="of each target")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where findings go")
    parser.add_argument("--replay", nargs="+", metavar=("TARGET", "FILE"))
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    return parser


def _prepared() -> Mapping[str, Any]:
    """The targets, with the package told to say where it goes."""
    import atheris

    with atheris.instrument_imports(include=["lbr2pgo"]):
        from targets import TARGETS

        for target in TARGETS.values():
            list(target.seeds())  # what several are given is made once, not in every copy
    return TARGETS  # type: ignore[no-any-return]


def _run(name: str, target: Any, args: argparse.Namespace) -> bool:
    """Fuzz in pieces: the fuzzer's own notes of what it saw grow, and would pass for a leak."""
    print(f"{name} …", flush=True)
    end = None if args.runs else time.monotonic() + (args.seconds or 60)
    done, number = 0, 0
    while (done < args.runs) if end is None else (time.monotonic() < end):
        runs = PIECE if end is not None else min(PIECE, args.runs - done)
        seconds = 0 if end is None else max(1, int(end - time.monotonic()))
        limits = f"-seed={SEED + number}", f"-runs={runs}", f"-max_total_time={seconds}"
        ran, said = _run_piece(target, args.output / name, limits)
        if ran is None:
            print(f"{said}\nfailed after {done:,} runs", flush=True)
            return False
        done, number = done + ran, number + 1
        print(f"{done:,} runs", flush=True)
    return True


def _run_piece(target: Any, folder: Path, limits: Sequence[str]) -> tuple[int | None, str]:
    """How many runs went well, None if one did not; and the end of what the fuzzer said."""
    with tempfile.TemporaryFile() as output, memory_folder() as scratch:
        child = os.fork()
        if not child:
            tempfile.tempdir = scratch
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            _fuzz(target, folder, limits)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        said = output.read().decode(errors="replace")
    match = re.search(r"^Done (\d+) runs", said, re.MULTILINE)
    ran = int(match[1]) if match and status == 0 else None
    return ran, "\n".join(said.splitlines()[-40:])


@contextmanager
def memory_folder() -> Iterator[str]:
    """A folder for what a child makes, in memory if possible: the fuzzer ends without tidying."""
    shared = "/dev/shm"
    parent = shared if os.access(shared, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="lbr2pgo-fuzz-", dir=parent) as folder:
        yield folder


def replay(name: str, files: Iterable[Path]) -> int:
    """Run a target on files, and name each."""
    from targets import TARGETS

    for file in files:
        print(file, flush=True)
        TARGETS[name](file.read_bytes())
    return 0


def _limited(target: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The target, stopped after so many seconds of the processor."""

    def stop(*_: object) -> None:
        raise TooSlowError(f"more than {SECONDS} s")

    def run(data: bytes) -> None:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            target(data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    signal.signal(signal.SIGPROF, stop)
    return run


def _fuzz(target: Any, folder: Path, limits: Sequence[str]) -> NoReturn:
    """Fuzz one target in this process, to its end: what is found is stored as it ends."""
    import atheris

    seeds = folder / "seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(include=["lbr2pgo"]):
        warnings.simplefilter("error", RuntimeWarning)
        # Readers import much when they need it: before the clock starts.
        for number, data in enumerate(target.seeds()):
            (seeds / f"{number}").write_bytes(data)
            target(data)
    options = [
        sys.argv[0], *limits, f"-timeout={BACKSTOP}", "-rss_limit_mb=1024",
        f"-max_len={target.longest}", f"-artifact_prefix={folder}/", "-verbosity=1", str(seeds),
    ]  # fmt: skip
    atheris.Setup(options, _limited(target))
    atheris.Fuzz()
    sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())
