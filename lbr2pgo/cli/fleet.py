"""`lbr2pgo fleet`: recordings and counts of many machines in, profiles of every build out."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from lbr2pgo.cli import messages
from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.own_process import prepare
from lbr2pgo.cli.parser import names, section, whole_number
from lbr2pgo.cli.selection import add_binaries, add_sysroot

if TYPE_CHECKING:
    from fractions import Fraction

    from lbr2pgo.fleet.counting import FileOutcome
    from lbr2pgo.fleet.fleet import Fleet, FleetOptions

_KINDS = ("counted", "duplicates", "other_hosts", "too_old", "unreadable")
_PAUSE = 10.0
"""Seconds between two lines about how far it is."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "fleet",
        help=COMMANDS["fleet"],
        description="Count every recording below directories, globs or URLs, each with the "
        "programs that it names, and add all up build by build. Counts are kept in --store: a run "
        "that was interrupted goes on, and a file that comes twice counts once. Ends with 2 if a "
        "file could not be read; the others are counted all the same.",
        examples=(
            "lbr2pgo fleet hosts/ -o all.parquet --sysroot ./root --llvm 'out/{name}.prof'",
            "lbr2pgo fleet 's3://bucket/*.data' -o all.parquet --scheduler tcp://head:8786",
            "lbr2pgo fleet hosts/ -o all.parquet --half-life 7 --report report.json",
        ),
    )
    parser.add_argument(
        "inputs", nargs="+", metavar="IN", help="files, directories, globs, or URLs (fsspec)"
    )
    written = section(parser, "where it goes")
    written.add_argument(
        "-o", "--output", type=Path, required=True, metavar="ALL.parquet",
        help="counts of all builds",
    )  # fmt: skip
    written.add_argument(
        "--store", type=Path, metavar="DIR",
        help="where counts are kept, seen by all workers (default: beside ALL.parquet)",
    )  # fmt: skip
    _add_programs(parser)
    _add_workers(parser)
    _add_choice(parser)
    parser.set_defaults(run=run)


def _add_programs(parser: argparse.ArgumentParser) -> None:
    programs = parser.add_argument_group("programs and outputs")
    add_binaries(programs, "a program that was recorded (may be repeated)")
    add_sysroot(programs, "programs")
    for name, help in (("llvm", "sample profile"), ("fdata", "fdata")):
        programs.add_argument(
            f"--{name}", type=Path, metavar="OUT",
            help=f"{help} of each build; put {{name}} or {{build_id}} in it",
        )  # fmt: skip


def _add_workers(parser: argparse.ArgumentParser) -> None:
    where = parser.add_argument_group("where to work (default: threads of this process)")
    where = where.add_mutually_exclusive_group()
    where.add_argument("--workers", type=whole_number, metavar="N", help="so many processes here")
    where.add_argument("--scheduler", metavar="URL", help="a Dask cluster, as tcp://head:8786")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    choice = parser.add_argument_group("what to count")
    choice.add_argument("--event", metavar="NAME", help="only samples of this event")
    choice.add_argument("--strict", action="store_true", help="reject fall-throughs over a call")
    choice.add_argument(
        "--host", dest="hosts", type=names, action="extend", default=[], metavar="PATTERNS",
        help="only files of these hosts, as web-*; separated by commas",
    )  # fmt: skip
    choice.add_argument(
        "--build-id", dest="builds", type=names, action="extend", default=[], metavar="HEX",
        help="only these builds, by how their build-ids begin; separated by commas",
    )  # fmt: skip
    choice.add_argument(
        "--half-life", type=_days, metavar="DAYS",
        help="halve a file's weight for so many days that it is older than the newest",
    )  # fmt: skip
    choice.add_argument(
        "--keep-duplicates", action="store_true", help="count files of the same content each"
    )
    choice.add_argument(
        "--report", metavar="OUT", help="what became of each file, as JSON; - is standard output"
    )


def _days(text: str) -> Fraction:
    from lbr2pgo.support.file_weights import weight_of

    try:
        return weight_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _options(args: argparse.Namespace) -> FleetOptions:
    from lbr2pgo.fleet.counting import CountingPlan
    from lbr2pgo.fleet.fleet import FleetOptions
    from lbr2pgo.profiles.registry import output

    store = args.store or args.output.with_name(f"{args.output.name}.counts")
    plan = CountingPlan(
        store.absolute(), tuple(p.absolute() for p in args.binaries),
        tuple(p.absolute() for p in args.sysroots), args.event, args.strict,
    )  # fmt: skip
    asked = {"llvm": args.llvm, "fdata": args.fdata}
    profiles = tuple(output(name, path) for name, path in asked.items() if path is not None)
    return FleetOptions(
        tuple(args.inputs), args.output, plan, profiles, tuple(args.hosts),
        tuple(build.lower() for build in args.builds), args.half_life, args.keep_duplicates,
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Count and add up; say what became of the files, and which builds there are."""
    prepare()
    from lbr2pgo.cli.merge import shares
    from lbr2pgo.fleet.fleet import run_fleet
    from lbr2pgo.fleet.runners import runner
    from lbr2pgo.model.doubts import told_of
    from lbr2pgo.profiles.counts.format import CountsOutput
    from lbr2pgo.support.output import refuse_unwritable

    options = _options(args)
    refuse_unwritable([options.output, *([args.report] if args.report else [])])
    with runner(args.workers, args.scheduler) as where:
        if where.link:
            messages.say(f"watch it at {where.link}")
        done = run_fleet(options, where, _Watch())
    if args.report is not None:
        _report(done, args.report)
    notes = [told_of(each.file.name, note) for each in done.counted for note in each.notes]
    messages.warn(notes)
    messages.note(notes)
    messages.note(f"not counted: {each.file.name}: {each.problem}" for each in done.unreadable)
    if not messages.is_quiet():
        stream = sys.stderr if args.report == "-" else sys.stdout
        told = [f"{len(getattr(done, kind)):,} {kind.replace('_', ' ')}" for kind in _KINDS]
        print("files: " + ", ".join(told), *shares(done.merge), sep="\n", file=stream)
    messages.wrote(options.output, CountsOutput(options.output).next_step)
    has_profiles = _has_profiles(done)
    return 0 if has_profiles and not done.unreadable else 2


def _has_profiles(done: Fleet) -> bool:
    """Write what is said of profiles; tell whether each build with branches has its own."""
    images = [i for i in (done.images.images if done.images else ()) if i.has_branches]
    for image in images:
        for each in image.outputs if image.is_complete else ():
            messages.wrote(each.paths[0], each.next_step)
        if isinstance(image.result, Exception):
            messages.note([f"{image.name}: {image.result.headline}"])
    return all(image.is_complete for image in images)


class _Watch:
    """Says now and then how many files are done."""

    def __init__(self) -> None:
        self._done = self._there = 0
        self._next = monotonic() + _PAUSE

    def __call__(self, outcome: FileOutcome, files: int) -> None:
        self._done += 1
        self._there += outcome.was_there
        if monotonic() >= self._next:
            messages.say(f"{self._done:,} of {files:,} files done, {self._there:,} counted before")
            self._next = monotonic() + _PAUSE


def _report(done: Fleet, path: str) -> None:
    from lbr2pgo.support.output import write_pieces

    files = {
        kind: [
            {"file": o.file.name, "problem": o.problem, "notes": o.notes}
            for o in getattr(done, kind)
        ]
        for kind in _KINDS
    }
    builds = [
        {
            "build_id": build.counts.build_id,
            "traces": len(build.counts),
            "branches": build.counts.branch_total(),
        }
        for build in done.merge.builds
    ]
    text = json.dumps({"files": files, "builds": builds}, indent=2) + "\n"
    write_pieces(path, [text.encode()])
