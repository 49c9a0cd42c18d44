"""Every target on damaged seeds, whatever code they reach: `mutated.py [--seconds N] [TARGET …]`.

Where `run.py` looks for inputs that reach new code, this only runs many, and without telling where
code goes: so extensions may be built with sanitizers (`make sanitize`). Each piece of runs is a
process of its own. An input that it fails over is made smaller, as long as it fails in the same
way, and stands in build/fuzz/TARGET-DIGEST, with what was said beside it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from subprocess import DEVNULL, Popen

from run import TooSlowError, memory_folder

HERE = Path(__file__).parent
OUTPUT = HERE.parents[1] / "build" / "fuzz"
PIECE = 20
"""Seconds of one process."""
SECONDS = 30
"""Of the processor for one input: sanitizers take their share."""
SMALLER = 60
"""Seconds in which an input is made smaller."""
_PLACE = re.compile(r"SUMMARY: .*|runtime error: .*|\w+(?:Error|Exception|Warning)\b")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run targets in turn; 1 if any of them found something."""
    args = _parser().parse_args(arguments)
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    if args.piece:
        return _piece(*args.piece)
    from targets import TARGETS

    args.output.mkdir(parents=True, exist_ok=True)
    end, done, found = time.monotonic() + args.seconds, Counter[str](), set[str]()

    def work(turn: tuple[int, str]) -> None:
        number, name = turn
        ran, bad = _run_piece(name, args.output / f"piece{number}", args.seed + number)
        done[name] += ran
        found.update(bad)

    with memory_folder() as folder, ThreadPoolExecutor(args.jobs) as pool:
        os.environ["TMPDIR"] = folder  # of the pieces, which may be killed
        names = cycle(args.targets or TARGETS)
        for number in range(args.seconds * args.jobs // PIECE + 1):
            pool.submit(work, (number, next(names)))
    seconds = args.seconds + time.monotonic() - end
    print(f"{sum(done.values()):,} inputs, {sum(done.values()) / seconds * 3600:,.0f} an hour")
    print("\n".join(f"  {name}: {count:,}" for name, count in sorted(done.items())))
    print(f"found: {', '.join(sorted(found))}" if found else "nothing was found")
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where findings go")
    parser.add_argument("--piece", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    return parser


def _run_piece(name: str, scratch: Path, seed: int) -> tuple[int, list[str]]:
    """How many inputs were run, and the finding, if there is one."""
    said = _child(name, scratch, str(seed), "")
    count = scratch.with_suffix(".count")
    ran = int(count.read_text()) if count.exists() else 0
    found = []
    if said:
        small = _smaller(name, scratch, scratch.read_bytes(), _kind(said))
        digest = hashlib.sha256(small).hexdigest()[:8]
        target = scratch.with_name(f"{name}-{digest}")
        target.write_bytes(small)
        target.with_suffix(".txt").write_text(said)
        print(f"{target}: {_kind(said)}", flush=True)
        found.append(target.name)
    for each in (scratch, count):
        each.unlink(missing_ok=True)
    return ran, found


def _child(name: str, scratch: Path, seed: str, replayed: str) -> str:
    """What a process says that fails; empty if it does not."""
    log = scratch.with_suffix(".log")
    words = [sys.executable, __file__, "--piece", name, str(scratch), seed, replayed]
    with log.open("wb") as stream:
        code = Popen(words, stdin=DEVNULL, stdout=stream, stderr=stream).wait()
    said = log.read_text(errors="replace")
    log.unlink()
    return f"{said}\nended with {code}" if code else ""


def _kind(said: str) -> str:
    """What tells one failure from another."""
    places = _PLACE.findall(said)
    return places[-1] if places else said.splitlines()[-1]


def _smaller(name: str, scratch: Path, data: bytes, kind: str) -> bytes:
    """The input without the pieces that it fails without."""
    end, size = time.monotonic() + SMALLER, len(data) // 2
    while size and time.monotonic() < end:
        at = 0
        while at < len(data) and time.monotonic() < end:
            shorter = data[:at] + data[at + size :]
            scratch.write_bytes(shorter)
            if _kind(_child(name, scratch, "0", "replay") or "\n") == kind:
                data = shorter
            else:
                at += size
        size //= 2
    return data


def _piece(name: str, scratch: str, seed: str, replayed: str) -> int:
    """Runs for some seconds; each input stands in a file before it is run."""
    resource.setrlimit(resource.RLIMIT_CPU, (PIECE + 3 * SECONDS, PIECE + 4 * SECONDS))
    if os.environ.pop("LD_PRELOAD", None):  # sanitizers are for this process, not for compilers
        vars(os).pop("RTLD_DEEPBIND", None)  # with which capstone would be loaded, and they refuse
    from targets import TARGETS

    target, path = TARGETS[name], Path(scratch)
    warnings.simplefilter("error", RuntimeWarning)
    signal.signal(signal.SIGPROF, _stop)
    if replayed:
        return _try(target, path.read_bytes())
    end, done, code = time.monotonic() + PIECE, 0, 0
    for data in _damaged(list(target.seeds()), int(seed)):
        path.write_bytes(data)
        code = _try(target, data)
        done += 1
        if code or time.monotonic() > end:
            break
    path.with_suffix(".count").write_text(str(done))
    return code


def _damaged(seeds: Sequence[bytes], seed: int) -> Iterator[bytes]:
    from builders.mutations import mutate

    number = 0
    while seeds:
        yield mutate(seeds[number % len(seeds)], seed, number)[1]
        number += 1


def _stop(*_: object) -> None:
    raise TooSlowError(f"more than {SECONDS} s")


def _try(target: Callable[[bytes], None], data: bytes) -> int:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        target(data)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
