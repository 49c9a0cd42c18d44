"""`lbr2pgo diff`: what changed between two written profiles."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.parser import whole_number

if TYPE_CHECKING:
    from lbr2pgo.reports.model import Report

_TOP = 20


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "diff",
        help=COMMANDS["diff"],
        description="Compare two profiles of one kind: functions by how their share of all counts "
        "changed, calls gained and lost. What chance explains is left out. Recordings are "
        "compared by `lbr2pgo report NEW --against OLD`.",
        examples=(
            "lbr2pgo diff old.prof new.prof",
            "lbr2pgo diff old.prof new.prof --format markdown",
        ),
    )
    parser.add_argument("old", type=Path, metavar="OLD", help="a profile that convert or pgo wrote")
    parser.add_argument("new", type=Path, metavar="NEW", help="another one, of the same kind")
    parser.add_argument(
        "--all", dest="everything", action="store_true", help="what may be chance, too"
    )
    parser.add_argument(
        "--top", type=whole_number, default=_TOP, metavar="N",
        help=f"rows of each table ({_TOP}; 0: all)",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("text", "markdown", "json", "csv"), default="text",
        help="markdown: for a comment on a change; json, csv: as those of report",
    )  # fmt: skip
    parser.add_argument(
        "--no-demangle", action="store_true", help="show C++ functions by their linkage names"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare, and print what changed."""
    from lbr2pgo.cli.reporting import for_terminal
    from lbr2pgo.reports.profile_diff import diff_profiles

    found = diff_profiles(args.old, args.new, args.top or None, everything=args.everything)
    if args.format in ("json", "csv"):
        from lbr2pgo.reports import data

        write = data.as_json if args.format == "json" else data.as_csv
        sys.stdout.write(write(found.report))
    elif args.format == "markdown":
        from lbr2pgo.reports.markdown import as_markdown

        sys.stdout.write(as_markdown(for_terminal(args, found.report)))
    else:
        _show(for_terminal(args, found.report))
    return 0


def _show(report: Report) -> None:
    from lbr2pgo.reports.terminal import show

    show(report)
