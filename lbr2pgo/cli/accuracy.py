"""`lbr2pgo accuracy`: how close a sampled profile comes to the exact counts of its run."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.messages import warn
from lbr2pgo.support.executables import executable

if TYPE_CHECKING:
    from lbr2pgo.analyses.accuracy import Accuracy
    from lbr2pgo.analyses.accuracy_curves import Point
    from lbr2pgo.conversion import ConvertOptions


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "accuracy",
        help=COMMANDS["accuracy"],
        description="Compare a recording with the exact counts that `lbr2pgo record --exact` "
        "wrote: overlap of edge and block weights (1 is perfect), coverage, and the functions "
        "that fare worst.",
        examples=(
            "lbr2pgo accuracy perf.data --exact exact.npz --binary ./app",
            "lbr2pgo accuracy perf.data --exact exact.npz --binary ./app --curves",
        ),
    )
    parser.add_argument("profile", type=Path, help="a recording, in any format that can be read")
    parser.add_argument("--exact", type=Path, required=True, help="exact counts (.npz)")
    parser.add_argument("--binary", type=executable, required=True, help="the program, an ELF file")
    parser.add_argument("--event", help="count this event's samples only")
    for name in ("--correct-bias", "--correct-runs", "--no-lbr", "--infer"):
        parser.add_argument(
            name, action="store_true", help="judge the counts with this of `convert`"
        )
    parser.add_argument(
        "--curves",
        action="store_true",
        help="show what shorter stacks, and samples of instructions drawn from the exact counts, "
        "would come to",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the accuracy, or the curves."""
    from lbr2pgo.analyses.judging import curves, judge
    from lbr2pgo.cli.progress import timed

    if args.curves:
        _show(args.format, curves(args.profile, args.exact, args.binary), _print_curves)
    else:
        found = timed([args.profile], partial(judge, _options(args), args.exact))
        warn(found.notes)
        _show(args.format, found, _print_table)
    return 0


def _show(form: str, found: Any, print_table: Any) -> None:
    if form == "table":
        print_table(found)
        return
    import json
    from dataclasses import asdict

    print(json.dumps([*map(asdict, found)] if isinstance(found, list) else asdict(found), indent=2))


def _options(args: argparse.Namespace) -> ConvertOptions:
    from lbr2pgo.conversion import ConvertOptions
    from lbr2pgo.counting.chosen_samples import CountingOptions

    return ConvertOptions(
        (args.profile,),
        args.binary,
        counting=CountingOptions(event=args.event, corrects_bias=args.correct_bias),
        correct_runs=args.correct_runs,
        no_lbr=args.no_lbr,
        infer=args.infer,
        force=True,
    )


def _print_curves(points: list[Point]) -> None:
    from lbr2pgo.analyses.accuracy_curves import curve_table
    from lbr2pgo.reports.terminal import make_console, show_table

    show_table(curve_table(points), make_console())


def _print_table(accuracy: Accuracy) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    summary, worst = Table(box=None, pad_edge=False), Table(box=None, pad_edge=False)
    for name in ("", "overlap", "coverage", "executed", "seen"):
        summary.add_column(name, justify="right" if name else "left")
    for what, found in (
        ("edges", accuracy.edges),
        ("conditional", accuracy.conditional),
        ("blocks", accuracy.blocks),
    ):
        shares = (f"{found.overlap:.4f}", f"{found.coverage:.4f}")
        summary.add_row(what, *shares, f"{found.executed:,}", f"{found.seen:,}")
    for name in ("function", "executed", "in profile", "overlap", "error"):
        worst.add_column(name, justify="left" if name == "function" else "right", overflow="fold")
    for each in accuracy.worst:
        shares = (f"{each.share:.2%}", f"{each.estimated_share:.2%}")
        worst.add_row(escape(each.name), *shares, f"{each.overlap:.4f}", f"{each.error:.5f}")
    console = Console(highlight=False)
    console.print(summary)
    if accuracy.edges.unreal:
        console.print(f"{accuracy.edges.unreal:,} edges in the profile were never executed")
    if accuracy.worst:
        console.print("\nFunctions that take most away from the edge overlap:")
        console.print(worst)
