"""`lbr2pgo warmup`: compile what the first run would have to compile."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "warmup",
        help="compile the loops that the first run would have to compile",
        description="Compile the loops that read and count, and keep them beside the package, in "
        "NUMBA_CACHE_DIR if that is set, or in the user's cache directory. For container images: "
        "run it where the image is built; it has to be on a processor of the same model.",
    )
    parser.set_defaults(run=run)


def run(_args: argparse.Namespace) -> int:
    """Compile, and say where the loops are kept."""
    from lbr2pgo.support.printable import printable
    from lbr2pgo.warmup import warm_up

    print(f"compiled loops are kept in {printable(str(warm_up()))}")
    return 0
