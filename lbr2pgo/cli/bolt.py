"""`lbr2pgo bolt`: the post-link step of a build, which works without a profile too."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from lbr2pgo.cli.check import REFUSED, add_staleness_gates
from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.messages import wrote
from lbr2pgo.profiles.staleness import MOST_MISSING, MOST_STALE, MUCH_STALE


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "bolt",
        help=COMMANDS["bolt"],
        description="Run llvm-bolt on a binary, after a look at how stale the profile is. Without "
        "a profile, or without llvm-bolt, the output is a plain copy, and one line says so. Ends "
        "with 1, without an output, if the profile does not fit and there is no --yaml, of which "
        "llvm-bolt carries over what still fits.",
        examples=(
            "lbr2pgo bolt ./app --fdata app.fdata -o app.bolt",
            "lbr2pgo bolt ./app --fdata app.fdata --yaml app.yaml -o app.bolt",
        ),
    )
    parser.add_argument("binary", type=Path, metavar="ELF", help="linked with -Wl,--emit-relocs")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT")
    parser.add_argument(
        "--fdata", type=Path, metavar="FILE", help="what convert --fdata wrote; may not exist yet"
    )
    parser.add_argument(
        "--yaml", type=Path, metavar="FILE",
        help="what convert --bolt-yaml wrote: serves where there is no --fdata, or more than "
        f"{MUCH_STALE} of its counts are stale",
    )  # fmt: skip
    add_staleness_gates(parser, MOST_STALE, MOST_MISSING)
    parser.add_argument(
        "--option", dest="options", action="append", default=[], metavar="OPTION",
        help="of llvm-bolt, in place of ours: --option=-reorder-blocks=ext-tsp (may be repeated)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Optimise or copy, and say which."""
    from lbr2pgo.profiles.bolt.tool import find_bolt
    from lbr2pgo.support.output import refuse_overwriting

    given = [path for path in (args.fdata, args.yaml) if path is not None]
    refuse_overwriting([args.output], [args.binary, *given])
    there = [path for path in given if path.exists()]
    if not there:
        return _copy(args, f"there is no profile {' or '.join(map(str, given))}".rstrip())
    tool = find_bolt()
    if tool is None:
        return _copy(args, "llvm-bolt is not installed (or name it in LLVM_BOLT)")
    most_stale = min(args.max_stale, MUCH_STALE) if args.yaml in there else args.max_stale
    if args.fdata in there and _fits(args, args.fdata, most_stale):
        _lay_out(args, tool, args.fdata)
    elif args.yaml in there and _fits(args, args.yaml, 1.0):
        _lay_out(args, tool, args.yaml)
    else:
        return REFUSED
    return 0


def _lay_out(args: argparse.Namespace, tool: str, profile: Path) -> None:
    from lbr2pgo.pgo.post_link import bolt, profiled
    from lbr2pgo.support.printable import printable

    infers = profile == args.yaml
    said = bolt(tool, args.binary, profile, args.output, args.options, infers=infers)
    for line in profiled(said) if infers else ():
        print(printable(f"lbr2pgo: {profile}: {line}"))
    wrote(args.output, f"lbr2pgo measure {args.binary} {args.output}")


def _copy(args: argparse.Namespace, reason: str) -> int:
    from lbr2pgo.support.printable import printable

    shutil.copy(args.binary, args.output)
    text = f"lbr2pgo: warning: {reason}: {args.output} is a plain copy of {args.binary}"
    print(printable(text), file=sys.stderr)
    return 0


def _fits(args: argparse.Namespace, profile: Path, most_stale: float) -> bool:
    """Say how stale the profile is; tell whether it may be used."""
    from lbr2pgo.analyses.quality import Gates, measure
    from lbr2pgo.cli.check import print_line
    from lbr2pgo.program.program import Program
    from lbr2pgo.reports.checking import load_profile

    program = Program.open(args.binary)
    quality = measure(load_profile(str(profile), program), program)
    gates = Gates({"stale": most_stale, "missing": args.max_missing})
    failed = list(gates.failed(quality))
    print_line(str(profile), args.binary, quality, failed)
    return not failed
