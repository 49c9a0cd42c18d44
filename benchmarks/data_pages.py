"""Data that a program touches, by the order that its objects were linked in.

``python benchmarks/data_pages.py FOLDER SOURCE... [--flags=FLAGS] [--train=WORDS…]
[--arguments=WORDS…]``

What was accessed is learned from the runs with `--train`. In those with `--arguments`, pages of
4 KiB of the program's own data are counted exactly by the emulator: those with objects that were
accessed, and with what only the dynamic loader looks at, and literals. Both may be given several
times. It wants clang 22, lld 22 and llvm-profdata 22.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from startup import Start, ordered, run, start_of

from lbr2pgo.evidence.data_accesses import DATA_ACCESSES
from lbr2pgo.evidence.second_look import SecondLook
from lbr2pgo.program.elf.data_symbols import data_symbols
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.replay.replayed import Replayed

SECTIONS = "-fdata-sections"
EVERY_ACCESS = "--data", "-c", "32"
PARTED = (
    "-fpartition-static-data-sections", "-mllvm", "-memprof-annotate-static-data-prefix",
)  # fmt: skip


def asked(found: Replayed) -> SecondLook:
    """Which data was accessed."""
    return SecondLook(found, (DATA_ACCESSES,))


def touched(start: Start, program: Path) -> Iterator[tuple[int, int]]:
    """Pages with objects that were accessed, and all pages, for each run that judges."""
    recording = start.folder / "judged.data"
    for words in start.arguments:
        start.record(program, words, *EVERY_ACCESS, "-o", recording)
        found = read_and_replay(Inputs((recording,), program), asks=asked)
        address = found.told[DATA_ACCESSES].address
        is_object = data_symbols(found.program.symbols).containing(address) >= 0
        page = address >> np.uint64(12)
        yield len(np.unique(page[is_object])), len(np.unique(page))


def plain(start: Start) -> Path:
    """As it is compiled."""
    return start.link("plain", start.objects("plain", SECTIONS))


def in_order(start: Start) -> Path:
    """The same objects by lld."""
    order = start.order("--data-order", *EVERY_ACCESS)
    return start.link("ordered", start.objects("plain", SECTIONS), *ordered(order))


def parted(start: Start) -> Path:
    """Hot data apart from cold, by clang."""
    profile = start.folder / "memprof"
    written = start.order("--data-access", *EVERY_ACCESS)
    run("llvm-profdata-22", "merge", "--memprof-version=4", written, "-o", profile)
    by_profile = SECTIONS, f"-fmemory-profile-use={profile}", *PARTED
    return start.link("parted", start.objects("parted", *by_profile))


BUILDS: dict[str, Callable[[Start], Path]] = {
    "plain": plain,
    "--data-order": in_order,
    "--data-access, by clang": parted,
}


def main() -> None:
    """Print a row for each order."""
    start = start_of(__doc__)
    for name, build in BUILDS.items():
        found = "   ".join(
            f"{own:3,} of {pages:3,} pages" for own, pages in touched(start, build(start))
        )
        print(f"{name:24} {found}", flush=True)


if __name__ == "__main__":
    main()
