"""`lbr2pgo help COMMAND`: what `lbr2pgo COMMAND --help` says."""

from __future__ import annotations

import argparse

from lbr2pgo.cli.commands import COMMANDS


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command, which `main` reads as the option --help."""
    parser = subparsers.add_parser("help", help=COMMANDS["help"])
    parser.add_argument("words", nargs="*", metavar="COMMAND")
