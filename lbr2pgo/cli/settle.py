"""`lbr2pgo settle`: a new profile that keeps the old numbers where chance is the difference."""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

from lbr2pgo.cli import messages
from lbr2pgo.cli.commands import COMMANDS

_NAMED = 5
"""Functions that are named."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "settle",
        help=COMMANDS["settle"],
        description="Lay a new sample profile onto the one that is committed: numbers that differ "
        "by no more than chance stay as they are, so that a change of the file shows the functions "
        "that changed. The result is as convert --stable writes it.",
        examples=("lbr2pgo settle new.prof --onto app.prof -o settled.prof",),
    )
    parser.add_argument("new", type=Path, metavar="NEW", help="the profile of a new training")
    parser.add_argument(
        "--onto", type=Path, required=True, metavar="OLD", help="the one that is committed"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="OUT", help="where it goes"
    )
    parser.add_argument(
        "--exact", action="store_true", help="both are of exact counts: nothing is chance"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Settle, and name what changed."""
    from lbr2pgo.pgo.settled_files import settle_files
    from lbr2pgo.profiles.llvm.format import LlvmOutput
    from lbr2pgo.program.demangle import short_name

    settled = settle_files(args.new, args.onto, args.output, is_exact=args.exact)
    messages.wrote(args.output, LlvmOutput(args.output).next_step)
    names = [*map(short_name, islice(settled.changed, _NAMED))]
    more = ["…"] if len(settled.changed) > _NAMED else []
    messages.say(": ".join(filter(None, (settled.verdict, ", ".join([*names, *more])))))
    return 0
