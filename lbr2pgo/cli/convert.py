"""`lbr2pgo convert`: profiles and a binary in, sample profile, fdata and counts out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lbr2pgo.cli.own_process import prepare
from lbr2pgo.cli.selection import add_selection, counting_options

if TYPE_CHECKING:
    from lbr2pgo.conversion import ConvertOptions


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "convert",
        help="write what compilers and optimizers read",
        description="Replay branch stacks over a binary and write a sample profile for "
        "clang -fprofile-sample-use, fdata for llvm-bolt, or counts, all in one pass. Prints what "
        "became of every sample; without an output option, that is all it does.",
    )
    parser.add_argument(
        "profiles",
        nargs="+",
        metavar="PROFILE",
        help="perf.data, perf script text, pre-aggregated or saved counts; - is standard input",
    )
    parser.add_argument(
        "--binary", required=True, type=Path, metavar="ELF", help="the program that was recorded"
    )
    _add_outputs(parser)
    add_selection(parser)
    parser.add_argument(
        "--compat",
        action="append",
        default=[],
        choices=("llvm-profgen", "perf2bolt"),
        help="give this tool's numbers even where we know better (may be repeated)",
    )
    parser.add_argument(
        "--timings", action="store_true", help="print how long each stage took, to stderr"
    )
    parser.set_defaults(run=run)


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--llvm", type=Path, metavar="OUT", help="LLVM sample profile")
    outputs.add_argument("--llvm-format", choices=("text", "extbinary"), default="text")
    outputs.add_argument("--md5", action="store_true", help="store hashes of names (extbinary)")
    outputs.add_argument(
        "--symbol-list", action="store_true", help="store all functions' names (extbinary)"
    )
    outputs.add_argument("--fdata", type=Path, metavar="OUT", help="profile for llvm-bolt -data")
    outputs.add_argument(
        "--preaggregated", type=Path, metavar="OUT", help="traces for perf2bolt -pa"
    )
    outputs.add_argument(
        "--counts", type=Path, metavar="OUT", help="counts that convert reads again (.npz)"
    )
    outputs.add_argument(
        "--summary-json", metavar="OUT", help="the loss waterfall as JSON; - is standard output"
    )


def _options(args: argparse.Namespace) -> ConvertOptions:
    from lbr2pgo.conversion import ConvertOptions

    return ConvertOptions(
        profiles=tuple(map(Path, args.profiles)),
        binary=args.binary,
        llvm=args.llvm,
        llvm_format=args.llvm_format,
        md5_names=args.md5,
        symbol_list=args.symbol_list,
        fdata=args.fdata,
        preaggregated=args.preaggregated,
        counts=args.counts,
        counting=counting_options(args),
        strict=args.strict,
        compat=frozenset(args.compat),
    )


def run(args: argparse.Namespace) -> int:
    """Convert, print the waterfall, and say what was assumed."""
    prepare()
    from lbr2pgo.cli.progress import SampleProgress
    from lbr2pgo.conversion import convert
    from lbr2pgo.model.incomplete import IncompleteError
    from lbr2pgo.support.output import refuse_overwriting
    from lbr2pgo.support.timings import Timings

    options = _options(args)
    if args.summary_json is not None:
        taken = (*options.outputs, *options.profiles, options.binary)
        refuse_overwriting([args.summary_json], taken)
    try:
        with SampleProgress() as progress:
            timings = Timings(progress.stage)
            done = convert(options, progress, timings)
    except IncompleteError as error:
        _show(error.tallies, error.notes, args)
        raise
    _show(done.tallies, done.notes, args)
    if args.timings:
        print(*timings.lines(), sep="\n", file=sys.stderr)
    return 0


def _show(tallies: Mapping[str, int], notes: Sequence[str], args: argparse.Namespace) -> None:
    """Write the JSON and print the table: to stderr where an output goes to standard output."""
    from lbr2pgo.cli.waterfall import show_losses
    from lbr2pgo.model.waterfall import as_json
    from lbr2pgo.support.output import is_standard_output, write_to

    if args.summary_json is not None:
        text = json.dumps({"waterfall": as_json(tallies)}, indent=2) + "\n"
        write_to(args.summary_json, lambda stream: _write(stream, text))
    outputs = (args.llvm, args.fdata, args.preaggregated, args.counts, args.summary_json)
    is_taken = any(is_standard_output(path) for path in outputs if path is not None)
    show_losses(tallies, notes, sys.stderr if is_taken else sys.stdout)


def _write(stream: BinaryIO, text: str) -> None:
    stream.write(text.encode())
