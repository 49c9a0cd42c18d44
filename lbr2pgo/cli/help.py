"""`lbr2pgo help COMMAND`: what `lbr2pgo COMMAND --help` says."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command, which `main` reads as the option --help."""
    parser = subparsers.add_parser("help", help="show the help of a command")
    parser.add_argument("words", nargs="*", metavar="COMMAND")
