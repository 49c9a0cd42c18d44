"""`lbr2pgo convert`: profiles and a binary in, sample profile, fdata and counts out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.cli import messages
from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.images import add_images, run_images
from lbr2pgo.cli.own_process import prepare
from lbr2pgo.cli.parser import section, some_of, whole_number, whole_numbers
from lbr2pgo.cli.selection import add_selection, counting_options, only_binary
from lbr2pgo.model.compat import TOOLS, Compat
from lbr2pgo.support.file_names import expanded

if TYPE_CHECKING:
    from lbr2pgo.conversion import Conversion, ConvertOptions
    from lbr2pgo.fleet.images import ImagesOptions
    from lbr2pgo.profiles.base import Option, Output


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "convert",
        help=COMMANDS["convert"],
        description="Replay branch stacks over a binary and write a sample profile for "
        "clang -fprofile-sample-use, fdata for llvm-bolt, or counts, all in one pass. Prints what "
        "became of every sample; without an output option, that is all it does.",
        examples=(
            "lbr2pgo convert perf.data --binary ./app --llvm app.prof --fdata app.fdata",
            "lbr2pgo convert monday.data tuesday.data --binary ./app --llvm app.prof",
            "lbr2pgo convert perf.data --all-images --llvm 'out/{name}.prof'",
            "perf script -F pid,ip,brstack --show-mmap-events | lbr2pgo convert - --binary ./app",
        ),
    )
    parser.add_argument(
        "profiles",
        nargs="+",
        metavar="PROFILE",
        help="perf.data, perf script text, pre-aggregated or saved counts; - is standard input",
    )
    add_images(parser)
    _add_outputs(parser)
    add_selection(parser)
    inferred = parser.add_argument_group("what is corrected and inferred")
    inferred.add_argument(
        "--compat",
        type=some_of(*TOOLS),
        action="extend",
        default=[],
        metavar="TOOLS",
        help="give this tool's numbers even where we know better: llvm-profgen, perf2bolt",
    )
    inferred.add_argument(
        "--correct-runs",
        action="store_true",
        help="give the newest branch of each stack a fall-through, too, which no recorder sees: "
        "one in N is missing from stacks of N branches",
    )
    inferred.add_argument(
        "--no-lbr",
        action="store_true",
        help="infer branches from where samples interrupted the program, for recordings without "
        "branch stacks",
    )
    inferred.add_argument(
        "--infer",
        action="store_true",
        help="infer what ran between branches, where a filter or the recorder kept some alone, or "
        "fdata is of an earlier build",
    )
    inferred.add_argument(
        "--force",
        action="store_true",
        help="infer from however few samples, and believe recordings that seem to be filtered",
    )
    written = section(parser, "what is written")
    written.add_argument(
        "--timings", action="store_true", help="print how long each stage took, to stderr"
    )
    written.add_argument(
        "--threads", type=whole_number, metavar="N",
        help="work in so many threads (default: as many as the process may use, and pay)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    from lbr2pgo.profiles.registry import formats

    outputs = parser.add_argument_group("what is written")
    for form in formats():
        for option in form.output.options():
            _add_option(outputs, option)
    outputs.add_argument(
        "--all", metavar="PREFIX", dest="all_outputs",
        help="write all of these that the program allows, and say what each is for",
    )  # fmt: skip
    outputs.add_argument(
        "--provenance", action="store_true",
        help="say what each output came of, in OUT.json beside it, for check --verify",
    )  # fmt: skip
    outputs.add_argument(
        "--summary-json", metavar="OUT", help="the loss waterfall as JSON; - is standard output"
    )


def _add_option(group: argparse._ArgumentGroup, option: Option) -> None:
    kind: dict[str, Any] = {"action": "store_true"}
    if option.is_path:
        kind = {"type": Path, "metavar": "OUT"}
    elif option.is_number:
        kind = {"type": whole_number, "metavar": "N"}
    elif option.is_list:
        kind = {"type": whole_numbers, "metavar": "NUMBERS"}
    elif option.choices:
        kind = {"choices": option.choices}
    group.add_argument(option.flag.word, dest=option.keyword, help=option.flag.help, **kind)


def _outputs(args: argparse.Namespace) -> tuple[Output, ...]:
    """Those whose path is given; says which options have no effect, as their output is not."""
    from lbr2pgo.profiles.registry import asked_outputs

    outputs, idle = asked_outputs(vars(args))
    messages.note(idle)
    return outputs


def _options(args: argparse.Namespace) -> ConvertOptions:
    from lbr2pgo.conversion import ConvertOptions
    from lbr2pgo.profiles.registry import every_output

    binary = only_binary(args.binaries)
    return ConvertOptions(
        **_shared_options(args),
        binary=binary,
        optional=() if args.all_outputs is None else every_output(args.all_outputs),
        no_lbr=args.no_lbr,
        infer=args.infer,
    )


def _shared_options(args: argparse.Namespace) -> dict[str, Any]:
    """What is asked for of one image as of several."""
    return {
        "profiles": expanded(args.profiles),
        "outputs": _outputs(args),
        "force": args.force,
        "counting": counting_options(args),
        "strict": args.strict,
        "compat": Compat(frozenset(args.compat)),
        "correct_runs": args.correct_runs,
    }


def run(args: argparse.Namespace) -> int:
    """Convert, print the waterfall, and say what was assumed."""
    prepare()
    from lbr2pgo.support.threads import at_most

    with at_most(args.threads):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    if args.all_images or len(args.binaries) > 1:
        shows_timings = args.timings or messages.is_verbose()
        options = _images_options(args)
        return run_images(options, args.summary_json, shows_timings=shows_timings)
    return _run_one(args)


def _images_options(args: argparse.Namespace) -> ImagesOptions:
    from lbr2pgo.fleet.images import ImagesOptions, refuse_one_image
    from lbr2pgo.program.elf.find import ImagePlaces

    refuse_one_image(
        no_lbr=args.no_lbr, infer=args.infer, all=args.all_outputs is not None,
        provenance=args.provenance,
    )  # fmt: skip
    return ImagesOptions(
        **_shared_options(args),
        binaries=tuple(args.binaries),
        all_images=args.all_images,
        places=ImagePlaces(tuple(args.sysroots)),
    )


def _run_one(args: argparse.Namespace) -> int:
    from lbr2pgo.cli.progress import SampleProgress
    from lbr2pgo.model.incomplete import IncompleteError
    from lbr2pgo.support.output import refuse_overwriting, refuse_unwritable
    from lbr2pgo.support.timings import Timings

    options = _options(args)
    if args.summary_json is not None:
        refuse_overwriting([*options.paths, args.summary_json], options.paths_read)
        refuse_unwritable([args.summary_json])
    try:
        with SampleProgress(options.profiles) as progress:
            timings = Timings(progress.stage)
            done = _conversion(args)(options, progress, timings)
    except IncompleteError as error:
        messages.warn(error.notes)
        _show(error.tallies, error.notes, options.paths, args.summary_json)
        raise
    if args.summary_json is not None:
        refuse_overwriting([args.summary_json], [done.binary])
    messages.warn(done.notes)
    for output in (*options.outputs, *options.optional):
        if output.paths[0] in done.written:
            messages.wrote(output.paths[0], output.next_step)
    _show(done.tallies, done.notes, options.paths, args.summary_json)
    if args.timings or messages.is_verbose():
        messages.show_times(timings)
    return 0


def _conversion(args: argparse.Namespace) -> Callable[..., Conversion]:
    """What converts: alone, or telling what each output came of."""
    if args.provenance:
        from lbr2pgo.provenance.told_conversion import convert_with_provenance

        return convert_with_provenance
    from lbr2pgo.conversion import convert

    return convert


def _show(
    tallies: Mapping[str, int], notes: Sequence[str], outputs: Sequence[Path], summary: str | None
) -> None:
    """Write the JSON and print the table: to stderr where an output goes to standard output."""
    from lbr2pgo.cli.waterfall import show_losses
    from lbr2pgo.model.waterfall import row_as_json
    from lbr2pgo.profiles.registry import waterfall_rows
    from lbr2pgo.support.output import is_standard_output, write_pieces

    if summary is not None:
        import json

        rows = [row_as_json(row) for row in waterfall_rows(tallies)]
        text = json.dumps({"waterfall": rows}, indent=2) + "\n"
        write_pieces(summary, [text.encode()])
    paths = [*map(str, outputs), *([summary] if summary is not None else [])]
    is_taken = any(map(is_standard_output, paths))
    show_losses(tallies, notes, sys.stderr if is_taken else sys.stdout)
