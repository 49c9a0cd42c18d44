"""`lbr2pgo merge`: many counts, recordings or profiles in, one sum of each build out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli import messages
from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.own_process import prepare
from lbr2pgo.cli.parser import section
from lbr2pgo.cli.selection import add_binary, add_selection, counting_options
from lbr2pgo.support.file_names import expanded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from lbr2pgo.fleet.merge import Merge


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "merge",
        help=COMMANDS["merge"],
        description="Add up files of many runs or machines, exactly. Counts and recordings add up "
        "build by build, in any mix; sample profiles (LLVM's or GCC's) as llvm-profdata merge adds "
        "them, fdata and BOLT's YAML as merge-fdata does. What it gives of two files is "
        "what convert gives of both.",
        examples=(
            "lbr2pgo merge -o all.npz host1.npz host2.npz",
            "lbr2pgo merge -o all.parquet hosts/a.parquet hosts/b.parquet",
            "lbr2pgo merge -o '{build_id}.npz' --weight a.npz=1/10 a.npz b.npz perf.data",
            "lbr2pgo merge -o app.prof monday.prof tuesday.prof",
        ),
    )
    parser.add_argument("inputs", nargs="+", type=Path, metavar="IN", help="files to add up")
    added = section(parser, "what is added up, and where it goes")
    added.add_argument(
        "-o", "--output", type=Path, required=True, metavar="ALL",
        help="the sum; counts of several builds go to a .parquet, or to names with {build_id}",
    )  # fmt: skip
    added.add_argument(
        "--weight", dest="weights", action="append", type=_weight, default=[], metavar="FILE=W",
        help="multiply what a file holds: 3, 0.25 or 1/3 (profiles: whole numbers)",
    )  # fmt: skip
    add_binary(section(parser, "which program"))
    add_selection(parser)
    parser.set_defaults(run=run)


def _weight(text: str) -> tuple[Path, Fraction]:
    from lbr2pgo.support.file_weights import weight_of

    path, _, weight = text.rpartition("=")
    if not path:
        raise argparse.ArgumentTypeError(f"{text} is not of the form FILE=W")
    try:
        return Path(path), weight_of(weight)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Add up, and say which builds there are and what share each has."""
    prepare()
    from lbr2pgo.cli.progress import SampleProgress
    from lbr2pgo.fleet.merge import MergeOptions, merge_files
    from lbr2pgo.profiles.counts.format import CountsOutput
    from lbr2pgo.replay.replaying import ReadingOptions
    from lbr2pgo.support.output import is_standard_output

    reading = ReadingOptions(counting=counting_options(args), strict=args.strict)
    options = MergeOptions(
        expanded(args.inputs), args.output, dict(args.weights), args.binary, reading
    )
    with SampleProgress(options.inputs) as progress:
        done = merge_files(options, progress)
    messages.warn(done.notes)
    for path in done.written:
        next_step = CountsOutput(path).next_step if done.builds else "lbr2pgo check"
        messages.wrote(path, next_step)
    if not messages.is_quiet():
        stream = sys.stderr if is_standard_output(args.output) else sys.stdout
        print(*shares(done), sep="\n", end="\n" if done.builds else "", file=stream)
    messages.note(done.notes)
    return 0


def shares(done: Merge) -> Iterator[str]:
    """A line for each build, with its share of all branches."""
    from lbr2pgo.support.file_names import NO_BUILD_ID

    branches = [build.counts.branch_total() for build in done.builds]
    if branches:
        yield f"{'build-id':<40}  {'files':>7}  {'traces':>11}  {'branches':>15}   share"
    for build, own in zip(done.builds, branches, strict=True):
        name = build.counts.build_id or NO_BUILD_ID
        share = f"{own / (sum(branches) or 1):7.2%}"
        yield f"{name:<40}  {build.files:>7,}  {len(build.counts):>11,}  {own:>15,} {share}"
