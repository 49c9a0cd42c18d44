"""`lbr2pgo accuracy`: how close a sampled profile comes to the exact counts of its run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli.parser import executable

if TYPE_CHECKING:
    from lbr2pgo.analyses.accuracy import Accuracy, Edges
    from lbr2pgo.program.program import Program


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "accuracy",
        help="compare a profile with the exact counts of the same run",
        description="Compare a recording with the exact counts that `lbr2pgo record --exact` "
        "wrote: overlap of edge and block weights (1 is perfect), coverage, and the functions "
        "that fare worst.",
        examples=("lbr2pgo accuracy perf.data --exact exact.npz --binary ./app",),
    )
    parser.add_argument("profile", type=Path, help="a recording, in any format that can be read")
    parser.add_argument("--exact", type=Path, required=True, help="exact counts (.npz)")
    parser.add_argument("--binary", type=executable, required=True, help="the program, an ELF file")
    parser.add_argument("--event", help="count this event's samples only")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the accuracy."""
    from lbr2pgo.analyses.accuracy import measure
    from lbr2pgo.counting.count import CountingOptions, count
    from lbr2pgo.program.program import Program
    from lbr2pgo.replay.replay import replay
    from lbr2pgo.sources import open_source

    program = Program.open(args.binary)
    exact = _exact_edges(args.exact, program)
    options = CountingOptions(event=args.event)
    counts = count(open_source(args.profile), program.image.layout, options).counts
    accuracy = measure(replay(counts, program), exact, program)
    if args.format == "json":
        import json
        from dataclasses import asdict

        print(json.dumps(asdict(accuracy), indent=2))
    else:
        _print_table(accuracy)
    return 0


def _exact_edges(path: Path, program: Program) -> Edges:
    from lbr2pgo.analyses.accuracy import exact_edges
    from lbr2pgo.model.exact_counts import ExactCounts
    from lbr2pgo.sources.exact_counts import image_of
    from lbr2pgo.support.addresses import image_addresses

    exact = ExactCounts.load(path)
    image = image_of(exact, program.image.layout, str(path))
    return exact_edges(
        image_addresses(exact.from_),
        image_addresses(exact.to),
        exact.from_image == image,
        exact.to_image == image,
        exact.count,
    )


def _print_table(accuracy: Accuracy) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    summary, worst = Table(box=None, pad_edge=False), Table(box=None, pad_edge=False)
    for name in ("", "overlap", "coverage", "executed", "seen"):
        summary.add_column(name, justify="right" if name else "left")
    for what, found in (("edges", accuracy.edges), ("blocks", accuracy.blocks)):
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
