"""What the software LBR costs: processor time of recordings beside the program's own.

``python benchmarks/recording_cost.py [--rounds N] [-c PERIOD] -- COMMAND...``

Prints a row of a table: seconds of a native run, and as factors of it QEMU alone and recordings,
the start of both included. All run in turns; the least of each is told, since other work only adds.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import run
from which_profile import LBR2PGO

from lbr2pgo.recorders.guest import find_guest

NATIVE = "native"


def ways(command: Sequence[str], period: int, folder: Path) -> Mapping[str, Sequence[str]]:
    """To run it, by their headings."""
    record = [*LBR2PGO, "record", "--emulate", "-c", str(period), "-o", str(folder / "perf.data")]
    return {
        NATIVE: command,
        "QEMU alone": find_guest(tuple(command)).command(),
        "recorded": [*record, "--", *command],
        "without call chains": [*record, "--no-call-graph", "--", *command],
        "with `--exact`": [*record, "--exact", str(folder / "exact"), "--", *command],
    }


def seconds(command: Sequence[str], period: int, rounds: int) -> dict[str, float]:
    """Processor time of each way."""
    with TemporaryDirectory() as folder:
        each = ways(command, period, Path(folder))
        turns = [{name: run(words).cpu for name, words in each.items()} for _ in range(rounds)]
    return {name: min(turn[name] for turn in turns) for name in each}


def row(found: Mapping[str, float]) -> list[str]:
    """Cells: seconds, and factors of these."""
    native = found[NATIVE]
    factors = (f"{taken / native:.1f}" for name, taken in found.items() if name != NATIVE)
    return [f"{native:.2f} s", *factors]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-c", "--period", type=int, default=10007, help="taken branches")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    found = seconds(args.command, args.period, args.rounds)
    print(f"| program | {' | '.join(found)} |\n|{' --- |' * (len(found) + 1)}")
    print(f"| `{shlex.join(args.command)}` | {' | '.join(row(found))} |")


if __name__ == "__main__":
    main()
