"""`lbr2pgo share`: where the files for build systems and git are."""

from __future__ import annotations

import argparse
from pathlib import Path

from lbr2pgo.cli.commands import COMMANDS

SHARE = Path(__file__).parents[1] / "share"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "share",
        help=COMMANDS["share"],
        description="Print the directory of the files that bring profiles into a build. CMake: "
        '-Dlbr2pgo_DIR="$(lbr2pgo share cmake)"; Make: include $(shell lbr2pgo share make)/'
        "lbr2pgo.mk; for Meson and Bazel, copy them into the project. For git: "
        'git config --add include.path "$(lbr2pgo share git)/lbr2pgo.gitconfig".',
        examples=('cmake -Dlbr2pgo_DIR="$(lbr2pgo share cmake)" -B build',),
    )
    parser.add_argument("build_system", choices=("cmake", "make", "meson", "bazel", "git"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the directory."""
    print(SHARE / args.build_system)
    return 0
