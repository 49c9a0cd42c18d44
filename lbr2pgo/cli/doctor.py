"""`lbr2pgo doctor`: what this machine can record, why not, and the command to use."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.cli.commands import COMMANDS

if TYPE_CHECKING:
    from lbr2pgo.recorders.doctor import Diagnosis

_COLOURS = {"yes": "green", "no": "red", "limited": "yellow", "info": "default"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "doctor",
        help=COMMANDS["doctor"],
        description="Tell which branch recorder this machine has, what it can do, what stands in "
        "its way, and the exact command to use.",
        examples=("lbr2pgo doctor", "lbr2pgo doctor --json"),
    )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument(
        "--json", action="store_const", dest="format", const="json", help="short for --format json"
    )
    parser.add_argument("--root", type=Path, default=Path("/"), help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the diagnosis of this machine; 1 if nothing can record here."""
    from lbr2pgo.recorders.doctor import diagnose
    from lbr2pgo.recorders.machine import read_machine

    diagnosis = diagnose(read_machine(args.root))
    if args.format == "json":
        import json

        print(json.dumps(as_dict(diagnosis), indent=2))
    else:
        _print_table(diagnosis)
    return 1 if diagnosis.missing else 0


def as_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as JSON values."""
    from lbr2pgo.recorders.doctor import command_line

    return {
        "recorder": "hardware" if diagnosis.choice.hardware else "software",
        "branches": diagnosis.choice.branches,
        "reason": diagnosis.choice.reason,
        "can_record": not diagnosis.missing,
        "missing": list(diagnosis.missing),
        "command": list(diagnosis.command),
        "command_line": command_line(diagnosis.command),
        "rows": [
            {"name": r.name, "status": r.status.value, "value": r.value, "reason": r.reason}
            for r in diagnosis.rows
        ],
    }


def _print_table(diagnosis: Diagnosis) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from lbr2pgo.recorders.doctor import command_line

    table = Table(box=None, pad_edge=False)
    for column in ("what", "", "value", "why"):
        table.add_column(column)
    for row in diagnosis.rows:
        status = f"[{_COLOURS[row.status.value]}]{row.status.value}[/]"
        table.add_row(escape(row.name), status, escape(row.value), escape(row.reason))
    console = Console(highlight=False)
    console.print(table)
    if diagnosis.missing:
        needed = escape(", ".join(diagnosis.missing))
        console.print(
            f"\nNothing can record here: {escape(diagnosis.choice.reason)}", soft_wrap=True
        )
        console.print(f"For the software LBR, install {needed}.", soft_wrap=True)
        return
    recorder = "perf" if diagnosis.choice.hardware else "the software LBR"
    if not diagnosis.choice.branches:
        recorder = "perf to sample instructions, for convert --no-lbr"
    console.print(f"\nlbr2pgo record uses {recorder}: {escape(diagnosis.choice.reason)}")
    console.print(f"To record: {escape(command_line(diagnosis.command))}", soft_wrap=True)
