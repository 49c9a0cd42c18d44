"""`lbr2pgo check`: is a profile good enough to ship."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.parser import executable
from lbr2pgo.cli.selection import add_selection, counting_options
from lbr2pgo.profiles.staleness import MOST_MISSING, MOST_STALE, MUCH_STALE

if TYPE_CHECKING:
    from lbr2pgo.analyses.quality import Gates, Quality
    from lbr2pgo.analyses.quality_verdict import Bounds, Remark
    from lbr2pgo.profiles.reader import Profile
    from lbr2pgo.profiles.staleness import Staleness
    from lbr2pgo.program.program import Program
    from lbr2pgo.replay.replaying import ReadingOptions

REFUSED = 1

_WORTH_NAMES = 0.01
"""From this share of counts on, a line names the functions that are not there."""
_NAMED = 5
"""Functions with other probes that a line names."""
_MOST_CHANGED = 8
"""Functions with other probes that are told of in a table."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "check",
        help=COMMANDS["check"],
        description="Measure a profile: density, coverage of hot functions, conservation of flow, "
        "staleness against the binary, overlap with another profile. Begins with a verdict in "
        "words. Ends with 1 if a gate fails, or if the measure that it is about can't be taken; "
        "also where the profile is another program's, architecture's or build's, unless "
        "--max-missing or --max-stale allow for that.",
        examples=(
            "lbr2pgo check perf.data --binary ./app",
            "lbr2pgo check app.prof --binary ./app --max-stale 0.2",
            "lbr2pgo check app.prof --binary ./app --new-build ./app-2",
        ),
    )
    parser.add_argument("profile", metavar="PROFILE", help="a recording, or a written profile")
    parser.add_argument("--binary", required=True, type=executable, metavar="ELF")
    parser.add_argument(
        "--against", metavar="OLD", help="compare with this recording of the binary, or profile"
    )
    parser.add_argument(
        "--new-build", type=Path, metavar="ELF",
        help="tell how stale the profile is for this build, and not for the one that was recorded",
    )  # fmt: skip
    gates = parser.add_argument_group("gates")
    gates.add_argument(
        "--min-density", type=_number, metavar="X", help="samples per location (llvm-profgen: 50)"
    )
    gates.add_argument("--min-coverage", type=_share, metavar="X", help="from 0 to 1")
    gates.add_argument("--max-chance", type=_share, metavar="X", help="from 0 to 1")
    gates.add_argument("--min-conservation", type=_share, metavar="X", help="from 0 to 1")
    add_staleness_gates(gates)
    gates.add_argument(
        "--max-bias", type=_share, metavar="X",
        help="share of the entries at one end of stacks that belong to other branches",
    )  # fmt: skip
    gates.add_argument("--min-executed", type=_share, metavar="X", help="from 0 to 1")
    gates.add_argument("--min-overlap", type=_share, metavar="X", help="from 0 to 1")
    add_selection(parser)
    parser.add_argument(
        "--format", choices=("table", "json", "line"), default="table",
        help="line: only how stale the profile is, for the log of a build",
    )  # fmt: skip
    parser.set_defaults(run=run)


def add_staleness_gates(
    parser: argparse._ActionsContainer, stale: float | None = None, missing: float | None = None
) -> None:
    """Add the gates that a profile fails which does not fit, the same for every command."""
    for name, default, what in (
        ("--max-stale", stale, "that the binary has no place for"),
        ("--max-missing", missing, "in functions that the binary lacks"),
    ):
        parser.add_argument(
            name, type=_share, metavar="X", default=default,
            help=f"share of counts {what}, from 0 to 1"
            + (f" ({default})" if default is not None else ""),
        )  # fmt: skip


def _number(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no number from 0 on")
    return number


def _share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return number


def run(args: argparse.Namespace) -> int:
    """Measure, print, and give the verdict as exit code."""
    from lbr2pgo.analyses.quality import MEASURES, Gates, measure
    from lbr2pgo.analyses.quality_verdict import Grade, remarks, whole
    from lbr2pgo.program.program import Program
    from lbr2pgo.replay.replaying import ReadingOptions

    limits = {name: _limit(args, name) for name in MEASURES}
    gates = Gates({name: limit for name, limit in limits.items() if limit is not None})
    _refuse_without_old(args)
    program = Program.open(args.binary)
    chosen = ReadingOptions(counting=counting_options(args), strict=args.strict)
    profile = load(args.profile, program, chosen)
    old = None if args.against is None else load(args.against, program, chosen)
    build = program if args.new_build is None else Program.open(args.new_build)
    quality = measure(profile, build, old)
    if old is not None:
        _refuse_unlike(args, quality, old.staleness(program), _bounds(gates, old))
    failed = list(gates.failed(quality))
    said = list(remarks(quality, _bounds(gates, profile, is_later=build is not program)))
    failed_by = "missing" if whole(said) is Grade.OTHER_PROGRAM else "stale"
    if whole(said).is_wrong and failed_by not in failed:
        failed.append(failed_by)
    if args.format == "line":
        print_line(args.profile, args.binary, quality, failed)
    else:
        show = _print_json if args.format == "json" else _print_table
        show(quality, said, gates.limits, failed)
    return REFUSED if failed else 0


def _limit(args: argparse.Namespace, name: str) -> float | None:
    limit: float | None = getattr(args, f"max_{name}", None)
    return getattr(args, f"min_{name}", limit)


def _refuse_without_old(args: argparse.Namespace) -> None:
    from lbr2pgo.support.errors import InputError

    if args.min_overlap is not None and args.against is None:
        raise InputError(
            "--min-overlap needs another profile to compare with",
            cure="Name it with --against.",
        )


def _bounds(gates: Gates, profile: Profile, *, is_later: bool = False) -> Bounds:
    """From which shares on a profile is not the program's, unless gates allow for more.

    A recording beside what it says was recorded is poor where runs contradict the code.
    """
    from lbr2pgo.analyses.quality_verdict import Bounds
    from lbr2pgo.analyses.recorded_profile import RecordedProfile

    missing = max(MOST_MISSING, gates.limits.get("missing", 0.0))
    # What stands in functions that are missing has no place either.
    stale = max(MOST_STALE, gates.limits.get("stale", 0.0), gates.limits.get("missing", 0.0))
    is_known = isinstance(profile, RecordedProfile) and profile.names_program and not is_later
    if is_known:  # Runs that contradict the code are left out, and mislead nobody.
        return Bounds(1.0, missing, MUCH_STALE, MOST_STALE)
    return Bounds(stale, missing)


def _refuse_unlike(
    args: argparse.Namespace, quality: Quality, stale: Staleness | None, bounds: Bounds
) -> None:
    """Raise InputError for an old profile that is not the program's, or of another kind."""
    from lbr2pgo.support.errors import InputError

    if stale is not None:
        stale.refuse(args.against, args.binary, bounds.missing, bounds.most_stale)
    if quality.overlap is None:
        raise InputError(
            f"has nothing that compares with {args.profile}",
            where=args.against,
            cure="Compare profiles of one kind, or either with a recording.",
        )


def load(path: str, program: Program, chosen: ReadingOptions | None = None) -> Profile:
    """Read a profile, or replay the chosen samples of a recording."""
    from lbr2pgo.profiles.registry import read_written

    written = None if path == "-" else read_written(Path(path))
    return _replayed(path, program, chosen) if written is None else written.beside(program)


def _replayed(path: str, program: Program, chosen: ReadingOptions | None) -> Profile:
    from lbr2pgo.analyses import stack_ends
    from lbr2pgo.analyses.recorded_profile import RecordedProfile
    from lbr2pgo.evidence.interrupted import INTERRUPTED
    from lbr2pgo.replay.recordings import Inputs, read_and_replay
    from lbr2pgo.replay.replaying import ReadingOptions
    from lbr2pgo.reports.gather import gather, look_for_analyses

    chosen = chosen or ReadingOptions()
    inputs = Inputs(
        (Path(path),), Path(program.image.path), counting=chosen.counting, strict=chosen.strict
    )
    asks = look_for_analyses((stack_ends.NAME,), also=(INTERRUPTED,))
    found = read_and_replay(inputs, asks=asks)
    found.refuse_nothing()
    evidence = gather(found).evidence
    bias = stack_ends.position_bias(evidence)
    return RecordedProfile(found, program, bias, evidence.found(INTERRUPTED))


def _print_json(
    quality: Quality, said: Sequence[Remark], limits: Mapping[str, float], failed: list[str]
) -> None:
    from lbr2pgo.analyses.quality_verdict import whole

    measures: dict[str, dict[str, object]] = {}
    for name, value in quality.values().items():
        passed = None if name not in limits else name not in failed
        measures[name] = {"value": value, "limit": limits.get(name), "passed": passed}
    if quality.stale is not None:
        measures["stale"]["details"] = asdict(quality.stale)
    if quality.overlap is not None:
        measures["overlap"]["details"] = asdict(quality.overlap)
    verdict = whole(said).value if said else None
    print(json.dumps({"passed": not failed, "verdict": verdict, "measures": measures}, indent=2))


def _print_table(
    quality: Quality, said: Sequence[Remark], limits: Mapping[str, float], failed: list[str]
) -> None:
    from rich.console import Console
    from rich.table import Table

    from lbr2pgo.analyses.quality import MEASURES
    from lbr2pgo.support.printable import printable

    console = Console(highlight=False, markup=False)
    for line in _verdict_lines(said, limits, failed):
        console.print(printable(line), soft_wrap=True)
    console.print()
    table = Table(box=None, pad_edge=False)
    names = (
        ("measure", "value", "gate", "", "meaning") if limits else ("measure", "value", "meaning")
    )
    for name in names:
        table.add_column(name, justify="right" if name in ("value", "gate") else "left")
    values = quality.values()
    for name, meaning in MEASURES.items():
        verdict = ("failed" if name in failed else "passed") if name in limits else ""
        gate = (_text(limits.get(name), ""), verdict) if limits else ()
        table.add_row(name, _text(values[name]), *gate, meaning)
    console.print(table)
    for line in _stale_lines(quality.stale):
        console.print(printable(line), soft_wrap=True)


def _verdict_lines(
    said: Sequence[Remark], limits: Mapping[str, float], failed: Sequence[str]
) -> Iterator[str]:
    """Whether to ship it: by the gates, or where there are none by what usually matters."""
    from lbr2pgo.analyses.quality_verdict import Grade, whole

    if said and whole(said).is_wrong:
        yield f"Verdict: {whole(said).value}."
    elif limits:
        yield f"Verdict: refused by {', '.join(failed)}." if failed else "Verdict: passed."
    elif not said:
        yield "Verdict: nobody can tell; the profile, or the binary, has nothing to tell it by."
    else:
        yield f"Verdict: {whole(said).value}."
    for remark in said:
        cure = "" if remark.grade is Grade.GOOD else f" {remark.cure}"
        grade = "wrong" if remark.grade.is_wrong else remark.grade.value
        yield f"  {grade:<14}{remark.text}.{cure}"


def _stale_lines(stale: Staleness | None) -> Iterator[str]:
    """Functions that are not in the binary, and those whose probes are others now."""
    if stale is None:
        return
    if stale.missing:
        yield f"not in the binary: {', '.join(stale.missing)}"
    for each in stale.changed[:_MOST_CHANGED]:
        yield f"changed: {each.function} ({each.share:.2%} of counts): {each.why()}"
    if len(stale.changed) > _MOST_CHANGED:
        yield f"… and {len(stale.changed) - _MOST_CHANGED:,} more (--format json has all)"


def print_line(profile: str, binary: Path, quality: Quality, failed: Sequence[str]) -> None:
    """Print how stale a profile is, what is not in the binary, and which gates failed."""
    from lbr2pgo.program.demangle import demangled
    from lbr2pgo.support.printable import printable

    stale = quality.stale
    if stale is None:
        said = f"nobody can tell how well it fits {binary}, which has no debug information"
    elif stale.share == 0:
        said = f"fits {binary}"
    else:
        said = f"{stale.share:.2%} stale: counts that {binary} has no place for"
    if stale is not None and stale.functions >= _WORTH_NAMES:
        names = ", ".join(map(demangled, stale.missing))
        said += f", {stale.functions:.2%} in functions that it lacks ({names})"
    if stale is not None and any(each.share > 0 for each in stale.changed):
        said += f", {_changed(stale)}"
    verdict = f"; refused: {', '.join(failed)}" if failed else ""
    warning = "warning: " if stale is not None and stale.share > MUCH_STALE else ""
    print(printable(f"lbr2pgo: {warning}{profile}: {said}{verdict}"))


def _changed(stale: Staleness) -> str:
    """How many functions have changed, and the heaviest."""
    from lbr2pgo.program.demangle import demangled

    share = sum(each.share for each in stale.changed)
    names = ", ".join(demangled(each.function) for each in stale.changed[:_NAMED])
    return f"{share:.2%} in functions whose control flow has changed ({names})"


def _text(value: float | None, nothing: str = "unknown") -> str:
    return nothing if value is None else f"{value:.4g}"
