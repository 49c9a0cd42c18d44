"""`lbr2pgo measure`: what programs that do the same work cost, side by side."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lbr2pgo.cli.commands import COMMANDS

if TYPE_CHECKING:
    from lbr2pgo.pgo.measure import Interval, Measured

DEFAULT_RUNS = 15
_WIDTH = 120  # a table of figures is not folded to fit a narrow pipe


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "measure",
        help=COMMANDS["measure"],
        description="Run each program once under the software LBR, which counts instructions, "
        "taken branches and simulated mispredictions exactly, and then natively, taking turns. "
        "Ratios are to the first program. All must exit alike.",
        examples=("lbr2pgo measure ./before ./after -- input",),
        usage="%(prog)s [-h] [--runs N] [--format {table,json}] BINARY … [-- ARGS …]",
    )
    add_runs(parser)
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="BINARY … -- ARGS …")
    parser.set_defaults(run=run)


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Add --runs."""
    parser.add_argument(
        "--runs",
        type=int,
        default=DEFAULT_RUNS,
        metavar="N",
        help=f"timed runs of each program; 0 leaves time out (default: {DEFAULT_RUNS})",
    )


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    from lbr2pgo.pgo.measure import Candidate, measure
    from lbr2pgo.support.errors import InputError

    binaries, arguments = _split(args.words)
    option = next((name for name in binaries if name.startswith("-")), None)
    if option is not None or not binaries:
        raise InputError(
            f"{option} is no program" if option else "there is no program to measure",
            cure="Options come first: lbr2pgo measure --runs 20 ./before ./after -- arguments.",
        )
    candidates = [Candidate(name, (name, *arguments)) for name in binaries]
    measured = measure(candidates, args.runs)
    if args.format == "json":
        _print_json(measured)
    else:
        print_measured(measured)
    return 0


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Programs, and the arguments behind the first `--`."""
    at = words.index("--") if "--" in words else len(words)
    return list(words[:at]), list(words[at + 1 :])


def _notes(measured: Sequence[Measured]) -> list[str]:
    from lbr2pgo.pgo.measure import differing_outputs
    from lbr2pgo.support.printable import printable

    notes = [
        f"{printable(name)} writes another output than {printable(measured[0].name)}"
        for name in differing_outputs(measured)
    ]
    code = measured[0].counted.exit_code
    return notes + ([f"every run ended with exit code {code}"] if code else [])


def print_measured(measured: Sequence[Measured]) -> None:
    """Print one row a program, with ratios to the first, and what makes them doubtful."""
    _print_table(measured)
    for note in _notes(measured):
        print(f"note: {note}", file=sys.stderr)


def _print_table(measured: Sequence[Measured]) -> None:
    from rich.console import Console
    from rich.table import Table

    from lbr2pgo.support.printable import printable

    base = measured[0]
    table = Table(box=None, pad_edge=False)
    table.add_column("program", no_wrap=True)
    for name in ("instructions", "taken branches", "mispredictions", "wall time"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in measured:
        counts = [
            f"{getattr(each.counted.totals, name):,}" + ("" if ratio is None else f" ({ratio:.3f})")
            for name, ratio in each.count_ratios(base).items()
        ]
        time = "1" if each is base and len(each.seconds) else _time_text(each.time_ratio(base))
        table.add_row(printable(each.name), *counts, time)
    console = Console(highlight=False, markup=False)
    console.width = max(console.width, _WIDTH + max(len(each.name) for each in measured))
    console.print(table)


def _time_text(ratio: Interval | None) -> str:
    if ratio is None:
        return "not timed"
    return f"{ratio.median:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def _print_json(measured: Sequence[Measured]) -> None:
    import json

    from lbr2pgo.pgo.measure import CONFIDENCE, differing_outputs

    answer = {
        "confidence": CONFIDENCE,
        "exit_code": measured[0].counted.exit_code,
        "differing_outputs": differing_outputs(measured),
        "programs": [_as_json(each, measured[0]) for each in measured],
    }
    print(json.dumps(answer, indent=2))


def _as_json(each: Measured, base: Measured) -> dict[str, Any]:
    from dataclasses import asdict

    ratio = each.time_ratio(base)
    return {
        "program": each.name,
        "counts": asdict(each.counted.totals),
        "ratios": each.count_ratios(base),
        "time_ratio": None if ratio is None else asdict(ratio),
        "seconds": each.seconds.tolist(),
    }
