"""`lbr2pgo record`: record a command's branches, in hardware or under emulation."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli import messages
from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.foreign import CALL_GRAPHS, NO_KIND
from lbr2pgo.cli.messages import say
from lbr2pgo.cli.parser import names, numbers, section
from lbr2pgo.support.counted import counted
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.executables import runnable

if TYPE_CHECKING:
    from lbr2pgo.model.exact_counts import Totals
    from lbr2pgo.recorders.options import RecordOptions, StartEnd
    from lbr2pgo.recorders.recording import RecordedFile


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    from lbr2pgo.recorders.front_end import PRESETS
    from lbr2pgo.recorders.options import DEPTHS, FILTERS

    parser = subparsers.add_parser(
        "record",
        help=COMMANDS["record"],
        description="Record the branch stacks of a command with perf where the processor can. "
        "Where perf has events but no branch records, it samples instructions, for convert "
        "--no-lbr. Elsewhere it takes branches with the software LBR, which emulates the program "
        "under QEMU. The program's exit code is passed on. What runs already is recorded with perf "
        "alone.",
        examples=(
            "lbr2pgo record -- ./app --its-own-option",
            "lbr2pgo record -o app.data -j any_call,u -- ./app",
            "lbr2pgo record --emulate --exact exact.npz -- ./app",
            "lbr2pgo record -p 4711 --duration 30",
            "lbr2pgo record --open -- ./app",
        ),
    )
    written, often, kept, recorder = (
        section(parser, title)
        for title in ("where it goes", "how often", "what of branches is kept", "which recorder")
    )
    written.add_argument(
        "-o", "--output", type=Path, default=Path("perf.data"), metavar="FILE",
        help="where the recording goes (default: perf.data; - is standard output)",
    )  # fmt: skip
    _add_target(parser)
    _add_rotation(parser)
    often.add_argument(
        "-c",
        "--period",
        type=int,
        metavar="N",
        help="taken branches between samples (software LBR: 10007 unless given, with jitter)",
    )
    often.add_argument(
        "-F", "--frequency", type=int, metavar="N",
        help="samples a second instead, of which perf chooses the period",
    )  # fmt: skip
    kept.add_argument(
        "-j",
        "--filter",
        type=names,
        action="extend",
        default=[],
        metavar="NAMES",
        help=f"which branches to keep, separated by commas: {', '.join(FILTERS)}",
    )
    kept.add_argument(
        "--samples", type=int, metavar="N",
        help="keep at most so many of a process: the software LBR doubles the period, which then "
        "may begin short, while the program runs",
    )  # fmt: skip
    kept.add_argument(
        "--depth", type=int, metavar="N", help=f"entries a sample: {', '.join(map(str, DEPTHS))}"
    )
    kept.add_argument(
        "--call-stack", action="store_true", help="keep the open calls instead of the last branches"
    )
    kept.add_argument(
        "--call-graph",
        action=argparse.BooleanOptionalAction,
        help="keep each sample's call chain beside its branches, and make profiles by calling "
        "context of it: exact in the software LBR, which keeps chains anyway for reports, by frame "
        "pointers on hardware",
    )
    kept.add_argument(
        "--cycles",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="keep cycle counts, which the software LBR simulates (default: yes)",
    )
    written.add_argument(
        "--exact",
        type=Path,
        metavar="FILE",
        help="also write the exact counts of the whole run (software LBR only)",
    )
    recorder.add_argument(
        "--no-lbr", action="store_true", help="sample instructions, and no branches, with perf"
    )
    recorder.add_argument(
        "--emulate", action="store_true", help="use the software LBR even if there is hardware"
    )
    recorder.add_argument(
        "--model", choices=PRESETS, metavar="PRESET",
        help="have the software LBR simulate this front end (skylake, zen4 or neoverse-n1), and "
        "sample what its instruction cache lacks, for reports",
    )  # fmt: skip
    recorder.add_argument(
        "--data", action="store_true",
        help="have the software LBR sample loads and stores, too, as perf mem record does",
    )  # fmt: skip
    recorder.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of the software LBR's jitter"
    )
    recorder.add_argument(
        "--reproducible", action="store_true",
        help="use the software LBR, with an environment, random numbers and turns of threads that "
        "are the same everywhere, count exactly (to FILE.exact), and say what else may differ",
    )  # fmt: skip
    written.add_argument(
        "--open", action="store_true", help="open the page of the recording, as lbr2pgo view does"
    )
    written.add_argument(
        "--keep-binary", action="store_true",
        help="keep the recorded program, too, in FILE.binaries: it is taken there where it was "
        "built anew since",
    )  # fmt: skip
    written.add_argument("--dry-run", action="store_true", help="print the command, run nothing")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- CMD …")
    parser.set_defaults(run=run)


def _add_target(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to record, in place of a command")
    group.add_argument(
        "-p", "--pid", type=numbers, action="extend", default=[], metavar="NUMBERS",
        help="these processes, separated by commas, until Ctrl-C",
    )  # fmt: skip
    group.add_argument(
        "-a", "--all-cpus", action="store_true", help="all that runs here, until Ctrl-C"
    )
    times = parser.add_argument_group("how long")
    times.add_argument(
        "--duration", type=float, metavar="SECONDS",
        help="end the recording after so long, and the command with it",
    )  # fmt: skip
    times.add_argument(
        "--startup", type=float, nargs="?", const=10.0, metavar="SECONDS",
        help="record every branch for so long (10) with the software LBR, for convert "
        "--startup-order",
    )  # fmt: skip
    times.add_argument(
        "--until", metavar="FUNCTION",
        help="end the start-up where this function of the program is first entered",
    )  # fmt: skip
    times.add_argument(
        "--delay", type=float, metavar="SECONDS", help="begin so much later, behind the start-up"
    )


def _add_rotation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("for ever, on hardware")
    group.add_argument(
        "--continuous", action="store_true",
        help="record for --duration (30 s) once in each --every, to OUT.TIME, until Ctrl-C",
    )  # fmt: skip
    group.add_argument(
        "--every", type=float, default=3600.0, metavar="SECONDS", help="(default: 3600)"
    )
    group.add_argument(
        "--keep", type=int, default=168, metavar="N",
        help="delete all but the newest N files (default: 168)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Record, do with it what is asked for, and give the program's exit code."""
    asked = [name for name in ("open", "keep_binary") if getattr(args, name)]
    if not asked:
        return _record_continuously(args) if args.continuous else _record(args).exit_code
    option = f"--{asked[0].replace('_', '-')}"
    if args.continuous or args.dry_run or str(args.output) == "-":
        raise InputError(
            f"{option} is for one recording in a file",
            cure=f"Leave out --continuous, --dry-run and -o -, or {option}.",
        )
    made = _record(args)
    if made.is_written:
        if args.keep_binary:
            _keep(args.output)
        if args.open:
            _open(args.output)
    return made.exit_code


def _keep(recording: Path) -> None:
    from lbr2pgo.replay.kept_programs import keep_programs

    kept, problems = keep_programs(recording)
    for path in kept:
        messages.wrote(path, "the recorded program")
    for problem in problems:
        say(f"Warning: {problem}")


def _open(recording: Path) -> None:
    from lbr2pgo.cli import _parse

    viewing = _parse(["view", str(recording)])
    viewing.run(viewing)


def _record(args: argparse.Namespace) -> RecordedFile:
    from lbr2pgo.cli.progress import is_watched, watch
    from lbr2pgo.recorders.machine import read_machine
    from lbr2pgo.recorders.recording import record_at_best

    options = _options(args)
    made = record_at_best(read_machine(), options, say=say, watch=watch if is_watched() else None)
    _tell(made)
    return made


def _record_continuously(args: argparse.Namespace) -> int:
    if args.startup is not None or args.until is not None:
        raise InputError(
            "what is recorded for ever has started long ago",
            cure="Leave out --continuous, or --startup and --until.",
        )
    from lbr2pgo.recorders.continuous import Rotation, record_continuously
    from lbr2pgo.recorders.machine import read_machine
    from lbr2pgo.recorders.recording import record_with_perf

    machine, options = read_machine(), _options(args)
    seconds = 30.0 if options.duration is None else options.duration
    rotation = Rotation(args.every, args.keep, seconds)

    if options.dry_run:
        _tell(record_with_perf(machine, replace(options, duration=seconds)))
        return 0
    return record_continuously(
        options, rotation, lambda each: record_with_perf(machine, each).exit_code
    )


def _tell(made: RecordedFile) -> None:
    """What was recorded, and what to do with it; of a dry run what would be."""
    if made.planned:
        import shlex

        print(shlex.join(made.planned))
        return
    for warning in made.warnings:
        say(f"Warning: {warning}")
    if made.is_written:
        flag = "--no-lbr " if made.no_lbr else ""
        next_step = f"lbr2pgo convert {made.path} {flag}--llvm OUT"
        holds = "" if made.samples is None else counted(made.samples, "sample")
        messages.wrote(made.path, next_step, holds)
    if made.exact is not None and made.totals is not None:
        _tell_exact(made.exact, made.totals)


def _options(args: argparse.Namespace) -> RecordOptions:
    from lbr2pgo.recorders.options import RecordOptions

    program = args.program[1:] if args.program[:1] == ["--"] else args.program
    if args.call_graph and program[:1] and program[0] in CALL_GRAPHS:
        raise InputError(NO_KIND, cure=f"Leave out {program[0]}.")
    program[:1] = map(runnable, program[:1])
    from lbr2pgo.recorders.front_end import PRESETS

    return RecordOptions(
        output=args.output,
        period=args.period,
        frequency=args.frequency,
        most_samples=args.samples,
        filters=tuple(args.filter),
        depth=args.depth,
        call_stack=args.call_stack,
        call_graph=args.call_graph,
        cycles=args.cycles,
        no_lbr=args.no_lbr,
        emulate=args.emulate,
        dry_run=args.dry_run,
        exact=args.exact,
        front_end=PRESETS.get(args.model),
        data=args.data,
        seed=args.seed,
        pids=tuple(args.pid),
        all_cpus=args.all_cpus,
        duration=args.duration,
        delay=args.delay,
        startup=args.startup,
        until=_until(args, program),
        reproducible=args.reproducible,
        command=tuple(program),
    )


def _until(args: argparse.Namespace, command: Sequence[str]) -> StartEnd | None:
    if args.until is None:
        return None
    from lbr2pgo.api.start_end import start_end

    return start_end(args.until, command)


def _tell_exact(path: Path, totals: Totals) -> None:
    messages.wrote(path, f"lbr2pgo convert {path} --binary ELF --llvm OUT", "exact counts")
    say(f"  {totals.instructions:,} instructions")
    say(f"  {totals.taken:,} taken branches")
    say(f"  {totals.not_taken:,} conditional branches not taken")
    say(f"  {totals.mispredicted:,} mispredictions (simulated)")
