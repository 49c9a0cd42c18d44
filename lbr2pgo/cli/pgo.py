"""`lbr2pgo pgo`: the whole loop of profile-guided optimisation in one command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli.measure import add_runs, print_measured
from lbr2pgo.cli.messages import say

if TYPE_CHECKING:
    from lbr2pgo.build.loop import LoopOptions


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "pgo",
        help="build, train, rebuild with the profile, and measure what it gained",
        description="Build a program with the right flags, record a training run (in hardware or "
        "with the software LBR), convert it, build again with the profile, optionally optimise the "
        "result with llvm-bolt, and measure before and after. Says each step and its command. "
        "Flags reach the build in CFLAGS, CXXFLAGS and LDFLAGS.",
        examples=(
            'lbr2pgo pgo --build "make -B" --binary ./app --train "./app input"',
            'lbr2pgo pgo --build "make -B" --binary ./app --train "./app input" --bolt',
        ),
    )
    parser.add_argument(
        "--build", required=True, metavar="CMD", help="compiles from scratch, through a shell"
    )
    parser.add_argument("--binary", required=True, type=Path, metavar="PATH", help="what it builds")
    parser.add_argument("--train", metavar="CMD", help="the run to be recorded")
    parser.add_argument(
        "--profile", type=Path, metavar="FILE",
        help="use this stored sample profile and do not train; it may be stale, or missing yet",
    )  # fmt: skip
    parser.add_argument(
        "--probes", action="store_true", help="build with pseudo probes, for a profile of these"
    )
    parser.add_argument(
        "--contexts",
        action="store_true",
        help="record call chains, for a profile by calling context",
    )
    parser.add_argument("--bolt", action="store_true", help="optimise with llvm-bolt as well")
    parser.add_argument(
        "--measure", metavar="CMD", help="the run to be measured (default: the training's)"
    )
    add_runs(parser)
    parser.add_argument(
        "-c",
        "--period",
        type=int,
        metavar="N",
        help="taken branches between samples (default: hardware's own; under emulation what gives "
        "enough samples)",
    )
    parser.add_argument(
        "--emulate", action="store_true", help="use the software LBR even if there is hardware"
    )
    parser.add_argument(
        "--work", type=Path, metavar="DIR",
        help="for the recording, the profiles and the first build (default: NAME.lbr2pgo)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Go through the loop and print what it gained, and what to do with it."""
    from lbr2pgo.build.loop import Loop
    from lbr2pgo.build.verdict import verdict
    from lbr2pgo.support.printable import printable

    loop = Loop(_options(args), say)
    measured = loop.run()
    if measured:
        print_measured(measured)
    print(*map(printable, verdict(loop.builds, measured)), sep="\n")
    return 0


def _options(args: argparse.Namespace) -> LoopOptions:
    from lbr2pgo.build.loop import LoopOptions
    from lbr2pgo.build.training import Training

    trains = args.train is not None
    return LoopOptions(
        build=args.build,
        binary=args.binary,
        train=Training(args.train, args.period, args.emulate, args.contexts) if trains else None,
        profile=args.profile,
        probes=args.probes,
        bolt=args.bolt,
        measure=args.measure,
        runs=args.runs,
        # Not beside the binary: builds that start from scratch remove that directory.
        work=args.work or Path(f"{args.binary.name}.lbr2pgo"),
    )
