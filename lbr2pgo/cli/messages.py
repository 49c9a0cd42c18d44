"""What a command says beside its results: on stderr, and as much as the user wants to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

TYPE_CHECKING = False  # see `lbr2pgo`

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from lbr2pgo.support.timings import Timings

_QUIET, _NORMAL, _VERBOSE = range(3)
_wanted = _NORMAL


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --quiet, --verbose and --color."""
    group = parser.add_argument_group("messages")
    how_much = group.add_mutually_exclusive_group()
    how_much.add_argument(
        "--quiet", action="store_true", help="say nothing but results and what goes wrong"
    )
    how_much.add_argument(
        "--verbose", action="store_true", help="say how long each stage took as well"
    )
    group.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto",
        help="style what is printed (auto: on terminals, unless NO_COLOR is set)",
    )  # fmt: skip


def configure(args: argparse.Namespace) -> None:
    """Take over what the options of `add_options` say, for this process."""
    global _wanted
    _wanted = _QUIET if args.quiet else _VERBOSE if args.verbose else _NORMAL
    # rich and the tools that we start follow these (no-color.org, force-color.org).
    if args.color != "auto":
        os.environ.pop("NO_COLOR", None)
        os.environ.pop("FORCE_COLOR", None)
        os.environ["FORCE_COLOR" if args.color == "always" else "NO_COLOR"] = "1"


def is_quiet() -> bool:
    """Whether only results and errors are wanted."""
    return _wanted == _QUIET


def is_verbose() -> bool:
    """Whether details are wanted."""
    return _wanted == _VERBOSE


def show_times(timings: Timings) -> None:
    """How long each stage took, whatever else is wanted."""
    print(*timings.lines(), sep="\n", file=sys.stderr)


def say(text: str) -> None:
    """Print to stderr, in the order of what the commands that we start print."""
    from lbr2pgo.support.printable import printable

    if not is_quiet():
        lines = text.split("\n")
        print(*map(printable, lines), sep="\n", file=sys.stderr, flush=True)


def wrote(path: Path, next_step: str, holds: str = "") -> None:
    """Say that an output was written, how large it is, what it holds, and what it is for."""
    if path.is_file():  # a stream or a device shows by itself what went there
        facts = ", ".join(filter(None, (_size(path.stat().st_size), holds)))
        say(f"wrote {path} ({facts}): {next_step}")


def _size(size: int) -> str:
    """A number of bytes for people.

    >>> _size(999), _size(12_345), _size(5_000_000)
    ('999 bytes', '12.3 kB', '5.0 MB')
    """
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1e3:,.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


def warn(notes: Iterable[str]) -> None:
    """Say what questions the results that follow, to everyone."""
    from lbr2pgo.model.doubts import parted
    from lbr2pgo.support.printable import printable

    doubts, _ = parted(notes)
    for each in doubts:
        print(printable(f"warning: {each}"), file=sys.stderr, flush=True)


def note(notes: Iterable[str]) -> None:
    """Say what had to be assumed; `warn` says the doubts among it."""
    from lbr2pgo.model.doubts import parted

    _, others = parted(notes)
    for each in others:
        say(f"note: {each}")
