"""Seeded damage to real files, and what the product makes of it, in a process with limits.

`python mutations.py KIND FILE BINARY SEED FIRST RUNS` prints one JSON object: how many runs ended
how, and for each run that ended badly its number, what was done, and the error. Run N with a seed
is always the same damage, whatever ran before it. `KIND@zip` damages one member of a zip file after
the other, `KIND@zstd` the records of a perf.data, which are packed again.
"""

from __future__ import annotations

import json
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))
from builders.containers import CONTAINERS

if TYPE_CHECKING:
    from lbr2pgo.profiles.base import Output

SECONDS = 10
BYTES = 1 << 30
_ADDRESS_SPACE = 8 << 30  # far over BYTES: a compiler maps much that it never touches

_EXTREMES = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0xFFFF,
    1 << 31,
    (1 << 32) - 1,
    1 << 60,
    (1 << 63),
    (1 << 64) - 1,
)


class TooSlowError(Exception):
    """A run took more than SECONDS of processor time: a busy machine is no failure."""


# ---------------------------------------------------------------------------- damage


def truncated(data: bytes, draw: random.Random) -> bytes:
    """The file's beginning."""
    return data[: draw.randrange(len(data))]


def flipped(data: bytes, draw: random.Random) -> bytes:
    """Some bits of some bytes turned over; the beginning, where headers are, more often."""
    damaged = bytearray(data)
    for _ in range(1 << draw.randrange(6)):
        reach = len(data) if draw.random() < 0.6 else min(len(data), 512)
        damaged[draw.randrange(reach)] ^= draw.randrange(1, 256)
    return bytes(damaged)


def overwritten(data: bytes, draw: random.Random) -> bytes:
    """An extreme number of 1 to 8 bytes somewhere."""
    size = draw.choice((1, 2, 4, 8))
    number = draw.choice(_EXTREMES) & ((1 << 8 * size) - 1)
    reach = len(data) if draw.random() < 0.6 else min(len(data), 512)
    at = draw.randrange(reach)
    return data[:at] + number.to_bytes(size, "little") + data[at + size :]


def spliced(data: bytes, draw: random.Random) -> bytes:
    """A piece cut out, repeated, or moved to another place."""
    a, b = sorted(draw.randrange(len(data)) for _ in range(2))
    piece = data[a : min(b, a + 4096)]
    at = draw.randrange(len(data))
    rest = data[:a] + data[a + len(piece) :] if draw.random() < 0.7 else data
    return rest[:at] + (piece if draw.random() < 0.7 else b"") + rest[at:]


DAMAGES = (truncated, flipped, overwritten, spliced)


def mutate(data: bytes, seed: int, number: int) -> tuple[str, bytes]:
    """Damage number `number` of a seed, and what it is called."""
    draw = random.Random(f"{seed}/{number}")
    damage = DAMAGES[number % 2 if draw.random() < 0.7 else draw.randrange(len(DAMAGES))]
    return damage.__name__, damage(data, draw)


# ---------------------------------------------------------------------------- what is run

Run = Callable[[Path, str], object]


def _profile_run(binary: Path, folder: Path, clean: Path) -> Run:
    """Convert a profile to every output; a cut one may hold nothing that the whole one lacks."""
    from lbr2pgo.conversion import ConvertOptions, convert

    def options(path: Path) -> ConvertOptions:
        return ConvertOptions((path,), binary, outputs=_every_output(folder))

    whole = convert(options(clean))
    known = _rows(whole.counts)

    def run(path: Path, damage: str) -> None:
        done = convert(options(path))
        if damage == "truncated" and path.suffix == ".data":
            rows = _rows(done.counts)
            assert all(count <= known.get(row, 0) for row, count in rows.items()), "made up counts"
            assert rows == known or done.notes, "lost counts without a word"

    return run


def _every_output(folder: Path) -> tuple[Output, ...]:
    from lbr2pgo.profiles.registry import formats, output

    return tuple(
        output(each.name, folder / each.name) for each in formats() if not each.forms[0].needs
    )


def _rows(counts: object) -> dict[tuple[int, ...], int]:
    columns = [getattr(counts, name).tolist() for name in ("from_", "to", "end", "known", "count")]
    return {row[:4]: row[4] for row in zip(*columns, strict=True)}


def make_run(kind: str, file: Path, other: Path, folder: Path) -> Run:
    """What is done with a damaged file of a kind."""
    if kind == "profile":
        return _profile_run(other, folder, file)
    if kind == "binary":
        from lbr2pgo.conversion import ConvertOptions, convert

        return lambda path, _: convert(
            ConvertOptions((other,), path, outputs=_every_output(folder))
        )
    if kind == "report":  # on what BOLT reads
        from lbr2pgo.reports.build import ReportOptions, make_report

        return lambda path, _: make_report(ReportOptions((path,), other))
    if kind == "exact":
        from lbr2pgo.model.exact_counts import ExactCounts

        return lambda path, _: ExactCounts.load(path)
    from lbr2pgo.dumping import profile

    return lambda path, _: list(profile.lines(path))


# ---------------------------------------------------------------------------- the runner


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooSlowError(f"more than {SECONDS} s")


def _outcome(run: Run, path: Path, damage: str) -> tuple[str, str]:
    """`good`, `refused` or `bad`, and what was said."""
    from lbr2pgo.support.errors import Lbr2pgoError

    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        run(path, damage)
    except Lbr2pgoError as error:
        return ("refused", str(error)) if error.what else ("bad", "an error without words")
    except BaseException:
        return "bad", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "good", ""


def runs(
    kind: str, file: Path, other: Path, seed: int, numbers: range
) -> Iterator[dict[str, object]]:
    """One object for each run."""
    kind, _, container = kind.partition("@")
    contents, replaced = CONTAINERS[container](file.read_bytes())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = make_run(kind, file, other, folder)
        # Packed, a piece that ends where a record does is a whole recording.
        path = folder / f"damaged{'' if container else file.suffix}"
        for number in numbers:
            part = number % len(contents)
            damage, damaged = mutate(contents[part], seed, number)
            path.write_bytes(replaced(part, damaged))
            begin = time.process_time()
            outcome, said = _outcome(run, path, damage)
            seconds = time.process_time() - begin
            yield {"number": number, "damage": damage, "outcome": outcome, "said": said,
                   "seconds": seconds}  # fmt: skip


def _peak() -> int:
    """Most bytes that this process ever held; ru_maxrss has those of pytest before exec, too."""
    found = re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def main(kind: str, file: str, other: str, seed: str, first: str, count: str) -> None:
    """Run and print the summary."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    signal.signal(signal.SIGPROF, _alarm)
    # What the user would see between the lines of our own messages.
    warnings.simplefilter("error", RuntimeWarning)
    numbers = range(int(first), int(first) + int(count))
    found = list(runs(kind, Path(file), Path(other), int(seed), numbers))
    print(
        json.dumps(
            {
                "outcomes": Counter(str(each["outcome"]) for each in found),
                "bad": [each for each in found if each["outcome"] == "bad"],
                "slowest": max(float(str(each["seconds"])) for each in found),
                "peak": _peak(),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
