"""`lbr2pgo dump`: each stage of the road as text, for one file or function."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.messages import note, warn
from lbr2pgo.cli.parser import whole_number
from lbr2pgo.cli.selection import add_binary, add_pids, add_selection, counting_options
from lbr2pgo.support.executables import executable
from lbr2pgo.support.file_names import expanded

if TYPE_CHECKING:
    import networkx as nx

    from lbr2pgo.program.program import Program
    from lbr2pgo.replay.replayed import Asks, Replayed


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "dump",
        help=COMMANDS["dump"],
        description="Show what a stage of the road holds: samples as they were recorded, counted "
        "traces, instructions and graph of a function with their counts, pseudo probes, units of "
        "debug information, or a written profile.",
        examples=(
            "lbr2pgo dump stacks perf.data --limit 5",
            "lbr2pgo dump disasm perf.data --binary ./app --function main",
            "lbr2pgo dump cfg --binary ./app --function main --format dot",
            "lbr2pgo dump profile app.prof",
        ),
    )
    stages = parser.add_subparsers(metavar="STAGE", required=True)
    _add_stacks(stages)
    _add_counts(stages)
    _add_disasm(stages)
    _add_cfg(stages)
    _add_probes(stages)
    _add_units(stages)
    _add_profile(stages)
    _add_provenance(stages)


_Stages = argparse._SubParsersAction


def _add_stacks(stages: _Stages[argparse.ArgumentParser]) -> None:
    parser = stages.add_parser("stacks", help="samples, and what was mapped before them")
    parser.add_argument("profile", metavar="PROFILE", help="as of convert; - is standard input")
    parser.add_argument("--limit", type=whole_number, metavar="N", help="at most so many samples")
    add_pids(parser)
    parser.add_argument(
        "--binary",
        type=executable,
        metavar="ELF",
        help="finds addresses for inputs that hold names",
    )
    parser.set_defaults(run=run_stacks)


def _add_counts(stages: _Stages[argparse.ArgumentParser]) -> None:
    parser = stages.add_parser("counts", help="traces, and why a fall-through was rejected")
    _add_input(parser, nargs="+")
    parser.add_argument("--function", metavar="F", help="only what touches this function")
    parser.set_defaults(run=run_counts)


def _add_disasm(stages: _Stages[argparse.ArgumentParser]) -> None:
    parser = stages.add_parser("disasm", help="a function's instructions, source lines and counts")
    _add_input(parser, nargs="*")
    _add_function(parser)
    parser.set_defaults(run=run_disasm)


def _add_cfg(stages: _Stages[argparse.ArgumentParser]) -> None:
    parser = stages.add_parser("cfg", help="a function's blocks and edges, with counts")
    _add_input(parser, nargs="*")
    _add_function(parser)
    parser.add_argument(
        "--format", choices=("text", "dot", "graphml", "json"), default="text",
        help="dot is for Graphviz, the others hold what lbr2pgo.flow_graph gives",
    )  # fmt: skip
    parser.set_defaults(run=run_cfg)


def _add_probes(stages: _Stages[argparse.ArgumentParser]) -> None:
    parser = stages.add_parser("probes", help="a program's pseudo probes")
    parser.add_argument("--binary", required=True, type=executable, metavar="ELF")
    parser.add_argument("--function", metavar="F", help="only those in this function's code")
    parser.set_defaults(run=run_probes)


def _add_units(stages: _Stages[argparse.ArgumentParser]) -> None:
    parser = stages.add_parser("units", help="units of debug information, and their compilers")
    parser.add_argument("--binary", required=True, type=executable, metavar="ELF")
    parser.set_defaults(run=run_units)


def _add_profile(stages: _Stages[argparse.ArgumentParser]) -> None:
    parser = stages.add_parser("profile", help="a written profile, whatever its format")
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--function", metavar="F", help="only this function")
    parser.add_argument(
        "--inlining", action="store_true",
        help="what clang would inline by a sample profile",
    )  # fmt: skip
    parser.add_argument(
        "--binary", type=executable, metavar="ELF", help="tells how large that is, for --inlining"
    )
    parser.set_defaults(run=run_profile)


def _add_provenance(stages: _Stages[argparse.ArgumentParser]) -> None:
    parser = stages.add_parser("provenance", help="what a written profile came of")
    parser.add_argument("file", type=Path, metavar="FILE", help="the profile")
    parser.set_defaults(run=run_provenance)


def _add_input(parser: argparse.ArgumentParser, nargs: str) -> None:
    parser.add_argument(
        "profiles", nargs=nargs, metavar="PROFILE", help="as of convert; - is standard input"
    )
    add_binary(parser)
    add_selection(parser)


def _add_function(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--function", required=True, metavar="F", help="linkage or C++ name, or an address (0x…)"
    )


def run_stacks(args: argparse.Namespace) -> int:
    """Show samples."""
    from lbr2pgo.dumping import stacks
    from lbr2pgo.program.program import Program
    from lbr2pgo.replay.recorded_program import program_of
    from lbr2pgo.replay.replaying import damage_of
    from lbr2pgo.sources import open_source
    from lbr2pgo.sources.base import StackSource
    from lbr2pgo.support.errors import InputError

    source = open_source(args.profile)
    if not isinstance(source, StackSource):
        raise InputError(
            f"is of the format {source.info.format}, which holds counts and no stacks",
            where=source.info.path,
            cure="Show it with `lbr2pgo dump counts` or `lbr2pgo report`.",
        )
    resolve = None
    if args.binary is not None:
        recorded, said = program_of(args.binary, [source])
        resolve = Program.open(recorded).address_of
        note(said)
    _print(stacks.lines(source, stacks.Selection(args.limit, tuple(args.pid)), resolve))
    damage = tuple(damage_of(source))
    warn(damage)
    note(damage)
    return 0


def run_counts(args: argparse.Namespace) -> int:
    """Show traces with their verdicts."""
    from lbr2pgo.dumping import counts
    from lbr2pgo.program.code.named_functions import find_function
    from lbr2pgo.replay.replay import ReplayOptions

    found = _replayed(args)
    function = None if args.function is None else find_function(found.program, args.function)
    options = ReplayOptions(strict=args.strict)
    _print(counts.lines(found.flow, found.program, options, function))
    return 0


def run_disasm(args: argparse.Namespace) -> int:
    """Show a function's instructions."""
    from lbr2pgo.dumping import disasm
    from lbr2pgo.program.dwarf.debug_info import DebugInfo

    program, function, found = _function(args)
    flow = None if found is None else found.flow
    _print(disasm.lines(program, DebugInfo(program.debug_files), function, flow))
    return 0


def run_cfg(args: argparse.Namespace) -> int:
    """Show a function's graph."""
    from lbr2pgo.analyses import function_view
    from lbr2pgo.dumping.cfg import GRAPH_FILES, CfgDump
    from lbr2pgo.reports.gather import look_for_analyses

    asks = look_for_analyses((function_view.NAME,)) if args.format in GRAPH_FILES else None
    program, function, found = _function(args, asks)
    if args.format in GRAPH_FILES:
        _print(GRAPH_FILES[args.format](_network(program, function, found)))
        return 0
    dump = CfgDump(program, function, None if found is None else found.flow)
    _print(dump.dot() if args.format == "dot" else dump.lines())
    return 0


def run_probes(args: argparse.Namespace) -> int:
    """Show pseudo probes."""
    from lbr2pgo.dumping import probes
    from lbr2pgo.program.code.named_functions import find_function
    from lbr2pgo.program.program import Program

    program = Program.open(args.binary)
    function = None if args.function is None else find_function(program, args.function)
    _print(probes.lines(program, function))
    note(f"{reason}: {number:,}" for reason, number in program.probes.health().items())
    return 0


def run_units(args: argparse.Namespace) -> int:
    """Show units of debug information."""
    from lbr2pgo.dumping import units
    from lbr2pgo.program.dwarf.debug_info import DebugInfo
    from lbr2pgo.program.program import Program

    _print(units.lines(DebugInfo(Program.open(args.binary).debug_files)))
    return 0


def run_provenance(args: argparse.Namespace) -> int:
    """Show what is told beside a profile."""
    from lbr2pgo.provenance.told import needed_provenance, provenance_doubts

    told = needed_provenance(args.file)
    warn(provenance_doubts(told, args.file))
    _print(told.lines())
    return 0


def run_profile(args: argparse.Namespace) -> int:
    """Show a written profile."""
    from lbr2pgo.dumping import inlining, profile

    if args.inlining:
        _print(inlining.lines(args.file, args.function, args.binary))
        return 0
    _print(profile.lines(args.file, args.function))
    return 0


def _function(
    args: argparse.Namespace, asks: Asks | None = None
) -> tuple[Program, int, Replayed | None]:
    """The program, the function asked for, and what was recorded of it, if a profile is given."""
    from lbr2pgo.program.code.named_functions import find_function
    from lbr2pgo.program.program import Program
    from lbr2pgo.support.errors import InputError

    if not args.profiles:
        if args.binary is None:
            raise InputError("there is nothing to show", cure="Name a recording or --binary.")
        program = Program.open(args.binary)
        return program, find_function(program, args.function), None
    found = _replayed(args, asks)
    return found.program, find_function(found.program, args.function), found


def _network(program: Program, function: int, found: Replayed | None) -> nx.DiGraph:
    """The function's graph, with what was recorded of it, if anything was."""
    from lbr2pgo.analyses.flow_network import code_network, flow_network
    from lbr2pgo.analyses.places import PlaceNames
    from lbr2pgo.reports.gather import gather

    if found is None:
        names = PlaceNames(program, program.debug_info())
        return code_network(program, names, program.cfg(function))
    return flow_network(gather(found).evidence, function)


def _replayed(args: argparse.Namespace, asks: Asks | None = None) -> Replayed:
    from lbr2pgo.cli.progress import SampleProgress
    from lbr2pgo.replay.recordings import Inputs, read_and_replay
    from lbr2pgo.support.timings import Timings

    inputs = Inputs(
        profiles=expanded(args.profiles),
        binary=args.binary,
        counting=counting_options(args),
        strict=args.strict,
    )
    with SampleProgress(inputs.profiles) as progress:
        found = read_and_replay(inputs, progress, Timings(progress.stage), asks=asks)
    found.refuse_nothing()
    warn(found.notes)
    note(found.notes)
    return found


def _print(lines: Iterator[str]) -> None:
    from lbr2pgo.support.printable import printable

    for line in lines:
        print(printable(line))
