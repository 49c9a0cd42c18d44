"""Options that choose which samples count, the same for every command that counts."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli.parser import names, numbers, whole_number
from lbr2pgo.support.executables import executable

if TYPE_CHECKING:
    from lbr2pgo.counting.chosen_samples import CountingOptions


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


def add_binary(parser: argparse._ActionsContainer) -> None:
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
    _add_choice(selection)
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


def _add_choice(parser: argparse._ActionsContainer) -> None:
    """Add what perf script and perf report choose samples with, by their names."""
    parser.add_argument(
        "--tid", type=numbers, action="extend", default=[], metavar="NUMBERS",
        help="only samples of these threads",
    )  # fmt: skip
    parser.add_argument(
        "--comm", "--comms", type=names, action="extend", default=[], metavar="NAMES",
        help="only samples of threads that were called so",
    )  # fmt: skip
    parser.add_argument(
        "--cpu", "-C", type=_processors, action="extend", default=[], metavar="LIST",
        help="only samples on these processors, as 0,2-4",
    )  # fmt: skip
    parser.add_argument(
        "--time", type=_span, metavar="FROM,TO",
        help="only samples from one second of the recording's clock to another; either may be left "
        "out",
    )  # fmt: skip
    parser.add_argument(
        "--phase", type=whole_number, metavar="N",
        help="only samples of the Nth phase, as report --only phases shows them",
    )  # fmt: skip


def _processors(text: str) -> list[int]:
    """Numbers and ranges of them, as perf -C takes them.

    >>> _processors("0,2-4")
    [0, 2, 3, 4]
    """
    found: list[int] = []
    for word in names(text):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", word, re.ASCII)
        if match is None:
            raise argparse.ArgumentTypeError(f"{text} is no list of processors, as 0,2-4")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def _span(text: str) -> tuple[int, int | None]:
    """Nanoseconds of a span in seconds (perf: tools/perf/util/time-utils.c, parse_nsec_time).

    >>> _span("1.5,2"), _span("12.000000001,"), _span(",3.25")
    ((1500000000, 2000000000), (12000000001, None), (0, 3250000000))
    """
    start, comma, end = text.partition(",")
    span = _nanoseconds(start or "0", text), _nanoseconds(end, text) if end else None
    if not comma or (span[1] is not None and span[1] < span[0]):
        raise argparse.ArgumentTypeError(f"{text} is not of the form FROM,TO, in seconds")
    return span


def _nanoseconds(seconds: str, text: str) -> int:
    match = re.fullmatch(r"(\d{1,10})(?:\.(\d{1,9})\d*)?", seconds.strip(), re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is not of the form FROM,TO, in seconds")
    return int(match[1]) * 10**9 + int((match[2] or "").ljust(9, "0"))


def _build_id(text: str) -> str:
    if not re.fullmatch("(?:[0-9a-f]{2})+", text.lower()):
        raise argparse.ArgumentTypeError("must be whole bytes in hexadecimal")
    return text.lower()


def counting_options(args: argparse.Namespace) -> CountingOptions:
    """What the options of `add_selection` say."""
    from lbr2pgo.api.keywords import counting_options

    return counting_options(vars(args))
