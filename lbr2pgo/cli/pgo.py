"""`lbr2pgo pgo`: the whole loop of profile-guided optimisation in one command."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.measure import add_runs, print_measured, runs_of
from lbr2pgo.cli.messages import say
from lbr2pgo.cli.parser import section

if TYPE_CHECKING:
    from lbr2pgo.pgo.loop_options import LoopOptions
    from lbr2pgo.support.errors import InputError


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    from lbr2pgo.pgo import COMPILERS, STEPS
    from lbr2pgo.pgo.goal import GOALS
    from lbr2pgo.recorders.front_end import PRESETS

    parser = subparsers.add_parser(
        "pgo",
        help=COMMANDS["pgo"],
        description="Build a program with the right flags, record a training run (in hardware or "
        "with the software LBR), convert it, build again with the profile, optionally optimise the "
        "result with llvm-bolt, and measure before and after. Says what each step took. "
        "Flags reach the build in CFLAGS, CXXFLAGS and LDFLAGS, where {flags} stands in its "
        "command, or by compilers that add them; with --cargo in RUSTFLAGS.",
        examples=(
            'lbr2pgo pgo --build "make -B" --binary ./app --train "./app input"',
            'lbr2pgo pgo --build "make -B" --binary ./app --train "./app input" --bolt',
            'lbr2pgo pgo --build "make -B" --binary ./app --train "./app input" --propeller',
            'lbr2pgo pgo --build "make -B" --binary ./app --train "./app input" --compiler gcc',
            'lbr2pgo pgo --build "zig cc -O2 {flags} a.c -o a" --binary ./a --train "./a input"',
            'lbr2pgo pgo --search --build "make -B" --binary a --train "./a one" --test "./a two"',
            'lbr2pgo pgo --explain before after --binary ./app --measure "./app input"',
            'lbr2pgo pgo --cargo --train "target/release/app input"',
        ),
    )
    built, recorded, kind, layout, measured = (
        section(parser, title)
        for title in (
            "what is built",
            "what is recorded",
            "which profile",
            "which layout",
            "what is measured",
        )
    )
    built.add_argument("--build", metavar="CMD", help="compiles from scratch, through a shell")
    built.add_argument(
        "--binary", type=Path, metavar="PATH", help="what it builds: a program or a shared library"
    )
    built.add_argument(
        "--cargo", action="store_true",
        help="build with Cargo: cargo build --release, and the package's one program, unless "
        "--build and --binary say otherwise",
    )  # fmt: skip
    recorded.add_argument(
        "--train", action="append", default=[], metavar="CMD",
        help="the run to be recorded; may be given several times",
    )  # fmt: skip
    recorded.add_argument(
        "--exact", action="store_true",
        help="count every branch of the training under the software LBR, in place of samples",
    )  # fmt: skip
    recorded.add_argument(
        "--reproducible", action="store_true",
        help="train by exact counts that are the same on other machines, as lbr2pgo record does",
    )  # fmt: skip
    recorded.add_argument(
        "--any-status", action="store_true",
        help="the training may end with another status than 0",
    )  # fmt: skip
    recorded.add_argument(
        "--profile", type=Path, metavar="FILE",
        help="use this stored sample profile and do not train; it may be stale, or missing yet",
    )  # fmt: skip
    built.add_argument(
        "--compiler", choices=COMPILERS, default=COMPILERS[0],
        help=f"whose flags the builds are given, and whose profile (default: {COMPILERS[0]})",
    )  # fmt: skip
    told_by = kind.add_mutually_exclusive_group()
    told_by.add_argument(
        "--probes", action="store_true",
        help="build with pseudo probes, for a profile of these (with clang the default, by calling "
        "context, where it can place them)",
    )  # fmt: skip
    told_by.add_argument(
        "--lines", action="store_true",
        help="make a profile of source lines (default with other compilers, and with --profile)",
    )  # fmt: skip
    kind.add_argument(
        "--contexts",
        action="store_true",
        help="record call chains, for a profile by calling context (with clang the default, where "
        "there is a training build)",
    )
    kind.add_argument(
        "--stable", action="store_true",
        help="write a profile to be committed, as convert --stable does",
    )  # fmt: skip
    kind.add_argument(
        "--provenance", action="store_true",
        help="say beside each profile what it came of, as convert --provenance does",
    )  # fmt: skip
    recorded.add_argument(
        "--instrumented", action="store_true",
        help="train with clang's counters in the program (-fprofile-generate) in place of samples; "
        "in a search, to compare the others with",
    )  # fmt: skip
    recorded.add_argument(
        "--training-flags", type=_words, metavar="FLAGS",
        help="record a build of its own for the compiler, with these flags behind all others "
        "(default with clang: --training-flags=-O1; --training-flags= records the plain build)",
    )  # fmt: skip
    _add_refinements(built, recorded)
    built.add_argument(
        "--copy-of", type=Path, metavar="DIR",
        help="the working directory is a copy of this one: paths in the code, by which clang names "
        "static functions where there are probes, are to be those of DIR",
    )  # fmt: skip
    layout.add_argument("--bolt", action="store_true", help="optimise with llvm-bolt as well")
    layout.add_argument(
        "--bolt-profile", type=Path, metavar="YAML",
        help="what convert --bolt-yaml wrote of an older build, for --bolt: not recorded again",
    )  # fmt: skip
    layout.add_argument(
        "--propeller", action="store_true",
        help="have clang and lld lay out blocks and functions as well, in one more build",
    )  # fmt: skip
    layout.add_argument(
        "--propeller-clone-paths", action="store_true",
        help="with hot paths cloned, by 3 %% of the code at most",
    )  # fmt: skip
    layout.add_argument(
        "--startup", action="store_true",
        help="have lld order functions as the start of the training wants them, in one more build",
    )  # fmt: skip
    measured.add_argument(
        "--measure", metavar="CMD", help="the run to be measured (default: the training's)"
    )
    add_runs(measured)
    measured.add_argument(
        "--model", default="", choices=PRESETS, metavar="PRESET",
        help="the front end whose cycles decide where no time does: skylake, zen4 or neoverse-n1 "
        "(default: by the program's architecture)",
    )  # fmt: skip
    measured.add_argument(
        "--for", dest="goal", choices=GOALS, default="speed",
        help="what is kept: the build with the fewest cycles, the smallest one, or that whose "
        "growth pays (default: speed)",
    )  # fmt: skip
    recorded.add_argument(
        "-c",
        "--period",
        type=int,
        metavar="N",
        help="taken branches between samples (default: hardware's own; under emulation what gives "
        "enough samples)",
    )
    recorded.add_argument(
        "--emulate", action="store_true", help="use the software LBR even if there is hardware"
    )
    built.add_argument(
        "--work", type=Path, metavar="DIR",
        help="for the recordings, the profiles and the builds; may be deleted afterwards, but for "
        "the profile (default: NAME.lbr2pgo)",
    )  # fmt: skip
    steps = section(parser, "which steps")
    for option, default, which in (("--from-step", 0, "first"), ("--to-step", -1, "last")):
        steps.add_argument(
            option, choices=STEPS, default=STEPS[default], metavar="STEP",
            help=f"the {which} step: {', '.join(STEPS)} (default: {STEPS[default]})",
        )  # fmt: skip
    _add_search(parser)
    _add_explain(parser)
    parser.set_defaults(run=run)


def _add_refinements(
    built: argparse._ActionsContainer, recorded: argparse._ActionsContainer
) -> None:
    recorded.add_argument(
        "--both", action="store_true",
        help="record the plain build beside the training build, and merge both profiles",
    )  # fmt: skip
    recorded.add_argument(
        "--again", action="store_true",
        help="record the build with the profile, and build once more with the profile of that",
    )  # fmt: skip
    built.add_argument(
        "--profile-flags", type=_words, default=(), metavar="FLAGS",
        help="give these flags to the build with the profile, behind all others, such as "
        "-mllvm=-profile-summary-cutoff-cold=999900",
    )  # fmt: skip


def _add_explain(parser: argparse.ArgumentParser) -> None:
    group = section(parser, "why one build is better")
    group.add_argument(
        "--explain", nargs=2, metavar=("A", "B"),
        help="build nothing; say why B is better than A, by counting every branch of the --measure "
        "command: paths, or what is in --work (before, after, propelled, bolt; of a search plain, "
        "probes-O1, lines+bolt and the like)",
    )  # fmt: skip
    group.add_argument(
        "--remarks", action="store_true",
        help="keep what clang says of inlining beside each build, for --explain to tell",
    )  # fmt: skip


def _add_search(parser: argparse.ArgumentParser) -> None:
    from lbr2pgo.cli.search import seconds

    group = section(parser, "which builds are tried")
    group.add_argument(
        "--search", action="store_true",
        help="try source lines, pseudo probes and calling contexts, each of the plain build and of "
        "a training build, and keep what costs least; with --bolt or --propeller, the best two "
        "are laid out as well",
    )  # fmt: skip
    group.add_argument(
        "--test", action="append", default=[], metavar="CMD",
        help="a run that judges in the search, on other input than the training; may be given "
        "several times",
    )  # fmt: skip
    group.add_argument(
        "--confirm", action="append", default=[], metavar="CMD",
        help="a run that has no part in the search's choice, and shows what that is worth "
        "(default: every third --test)",
    )  # fmt: skip
    group.add_argument(
        "--budget", type=seconds, metavar="TIME",
        help="time for the search, such as 90s, 20m or 2h; what is not done by then is left out, a "
        "layout that is asked for last",
    )  # fmt: skip
    group.add_argument(
        "--jobs", type=int, default=1, metavar="N",
        help="build so much at once, in copies of the working directory (default: 1)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Go through the loop and print what it gained, and what to do with it."""
    if args.explain:
        from lbr2pgo.cli.explain import run_explain

        return run_explain(args, _binary(args))
    if args.search:
        from lbr2pgo.cli.search import run_search

        return run_search(args, _options(args))
    return _run_loop(args)


def _run_loop(args: argparse.Namespace) -> int:
    from lbr2pgo.cli.step_lines import StepLines  # which takes time to import
    from lbr2pgo.pgo.loop import Loop
    from lbr2pgo.pgo.verdict import verdict
    from lbr2pgo.support.printable import printable

    shown = StepLines()
    loop = Loop(_options(args), shown.say, shown.is_over, shown.watch)
    is_told = args.lines or args.probes or args.instrumented or args.cargo or args.profile
    if args.propeller and not is_told:
        say(_LINES_FOR_PROPELLER)
    with shown.naming_failures():
        measured = loop.run()
    if measured:
        print_measured(measured)
    if loop.builds:
        print(*map(printable, verdict(loop.builds, measured, loop.options)), sep="\n")
    logged = f"Builds are logged in {loop.log}" if loop.log.exists() else ""
    ran = f"all commands are in {loop.commands}" if loop.commands.exists() else ""
    if logged or ran:
        say(f"{'; '.join(filter(None, (logged, ran)))}.")
    return 0


_LINES_FOR_PROPELLER = (
    "Note: for Propeller, profiles are of source lines; --probes --contexts often gain more, but "
    "not with LTO."
)


def _words(text: str) -> tuple[str, ...]:
    return tuple(shlex.split(text))


def _options(args: argparse.Namespace) -> LoopOptions:
    from lbr2pgo.pgo.goal import GOALS
    from lbr2pgo.pgo.kinds import INSTRUMENTED, usual_kind
    from lbr2pgo.pgo.loop_options import LoopOptions
    from lbr2pgo.pgo.standard_input import kept_input
    from lbr2pgo.pgo.training import Training

    build, binary = _target(args)
    work = _work(args, binary)
    compiler = "rustc" if args.cargo else args.compiler
    usual = usual_kind(compiler, "propeller" if args.propeller else "")
    if args.instrumented:
        usual = INSTRUMENTED
    is_stored = args.profile is not None
    contexts = args.contexts or (usual.told_by == "contexts" and not _leaves_contexts(args))
    how = args.period, args.emulate, contexts, _counts_exactly(args), args.any_status
    source = kept_input(work / f"{binary.name}.stdin") if args.train else None
    return LoopOptions(
        build=build,
        binary=binary,
        train=Training(tuple(args.train), *how, source, args.reproducible) if args.train else None,
        profile=args.profile,
        probes=args.probes or (usual.has_probes and not args.lines and not is_stored),
        or_lines=not (args.probes or args.contexts),
        bolt=args.bolt,
        bolt_profile=args.bolt_profile,
        training_flags=usual.training if args.training_flags is None else args.training_flags,
        profile_flags=args.profile_flags,
        stable=args.stable,
        provenance=args.provenance,
        both=args.both,
        again=args.again,
        measure=args.measure,
        runs=runs_of(args),
        model=args.model,
        goal=GOALS[args.goal],
        work=work,
        compiler=args.compiler,
        propeller=args.propeller,
        clone_paths=args.propeller_clone_paths,
        startup=args.startup,
        instrumented=args.instrumented,
        cargo=args.cargo,
        copy_of=args.copy_of,
        remarks=args.remarks,
        first=args.from_step,
        last=args.to_step,
    )


def _work(args: argparse.Namespace, binary: Path) -> Path:
    """Not beside the binary: builds that start from scratch remove that directory."""
    return args.work or Path(f"{binary.name}.lbr2pgo")


def _leaves_contexts(args: argparse.Namespace) -> bool:
    """Whether something is asked for that has none; a build to be shipped has no frame pointers."""
    asked = args.lines, args.probes, _counts_exactly(args), args.again, args.profile is not None
    return any(asked) or args.training_flags == ()


def _counts_exactly(args: argparse.Namespace) -> bool:
    """Whether the training is counted: samples depend on the lengths of paths."""
    return bool(args.exact or args.reproducible)


def _target(args: argparse.Namespace) -> tuple[str, Path]:
    """The build's command, and what it builds."""
    if args.cargo:
        from lbr2pgo.pgo.cargo import BUILD

        return args.build or BUILD, _binary(args)
    if args.build is None:
        raise _missing("build")
    return args.build, _binary(args)


def _binary(args: argparse.Namespace) -> Path:
    """What is built."""
    if args.binary is not None:
        binary: Path = args.binary
        return binary
    if args.cargo:
        from lbr2pgo.pgo.cargo import built_program

        return built_program()
    raise _missing("binary")


def _missing(name: str) -> InputError:
    from lbr2pgo.support.errors import InputError

    return InputError(f"--{name} is missing", cure="Only with --cargo it is known.")
