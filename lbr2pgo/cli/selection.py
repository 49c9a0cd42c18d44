"""Options that choose which samples count, the same for every command that counts."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli.parser import executable, numbers, whole_number

if TYPE_CHECKING:
    from lbr2pgo.counting.count import CountingOptions


def add_binaries(
    parser: argparse._ActionsContainer,
    what: str = "what was recorded; may be repeated (default: the program that the recording "
    "names)",
) -> None:
    """Add --binary, which may be repeated or left out."""
    parser.add_argument(
        "--binary", dest="binaries", type=executable, action="append", default=[], metavar="ELF",
        help=what,
    )  # fmt: skip


def add_sysroot(parser: argparse._ActionsContainer, what: str) -> None:
    """Add --sysroot, which may be repeated; `what` is looked for there."""
    parser.add_argument(
        "--sysroot", "--symfs", dest="sysroots", type=Path, action="append", default=[],
        metavar="DIR", help=f"where {what} are found by their recorded paths (may be repeated)",
    )  # fmt: skip


def only_binary(binaries: Sequence[Path]) -> Path | None:
    """The first one that is given, if any is."""
    return binaries[0] if binaries else None


def add_binary(parser: argparse.ArgumentParser) -> None:
    """Add --binary, which may be left out."""
    parser.add_argument(
        "--binary", type=executable, metavar="ELF",
        help="the program that was recorded (default: the one that the recording names)",
    )  # fmt: skip


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add what chooses samples, and parts of them, and how fall-throughs are judged."""
    selection = parser.add_argument_group("which samples count")
    selection.add_argument("--event", metavar="NAME", help="only samples of this event")
    add_pids(selection)
    selection.add_argument(
        "--build-id", type=_build_id, metavar="HEX",
        help="the binary's build-id in the recording, if not its own",
    )  # fmt: skip
    for end in ("newest", "oldest"):
        selection.add_argument(
            f"--drop-{end}", type=whole_number, default=0, metavar="K",
            help=f"leave out the {end} K branches of each stack, where a recorder's are biased",
        )  # fmt: skip
    selection.add_argument(
        "--correct-bias", action="store_true",
        help="where a recorder prefers some branches for the ends of its stacks, leave these ends "
        "out, and where it prefers some moments, weigh stacks against that: counts anew then",
    )  # fmt: skip
    selection.add_argument("--strict", action="store_true", help="reject fall-throughs over a call")


def add_pids(parser: argparse._ActionsContainer) -> None:
    """Add --pid alone."""
    parser.add_argument(
        "--pid", type=numbers, action="extend", default=[], metavar="NUMBERS",
        help="only samples of these processes, separated by commas",
    )  # fmt: skip


def _build_id(text: str) -> str:
    if not re.fullmatch("(?:[0-9a-f]{2})+", text.lower()):
        raise argparse.ArgumentTypeError("must be whole bytes in hexadecimal")
    return text.lower()


def counting_options(args: argparse.Namespace) -> CountingOptions:
    """What the options of `add_selection` say."""
    from lbr2pgo.counting.count import CountingOptions

    return CountingOptions(
        args.event,
        tuple(args.pid),
        args.build_id,
        drop_newest=args.drop_newest,
        drop_oldest=args.drop_oldest,
        corrects_bias=args.correct_bias,
    )
