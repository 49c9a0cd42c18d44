"""`lbr2pgo check`: is a profile good enough to ship."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.messages import note, warn
from lbr2pgo.cli.parser import section
from lbr2pgo.cli.selection import add_selection, counting_options
from lbr2pgo.profiles.staleness import MUCH_STALE
from lbr2pgo.support.executables import executable

if TYPE_CHECKING:
    from lbr2pgo.analyses.quality import Quality
    from lbr2pgo.analyses.table import Value
    from lbr2pgo.profiles.carried.account import Account
    from lbr2pgo.profiles.staleness import Staleness
    from lbr2pgo.reports.checking import Checked

REFUSED = 1

_WORTH_NAMES = 0.01
"""From this share of counts on, a line names the functions that are not there."""
_NAMED = 5
"""Functions with other probes that a line names."""
_MOST_CHANGED = 8
"""Functions with other probes that are told of in a table."""
_OTHERWISE = (
    "its functions stand otherwise; compile with -ffunction-sections and link with it by lld"
)
"""Of an order of functions."""


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
    compared = section(parser, "what it is compared with")
    compared.add_argument("--binary", required=True, type=executable, metavar="ELF")
    compared.add_argument(
        "--against", metavar="OLD", help="compare with this recording of the binary, or profile"
    )
    compared.add_argument(
        "--new-build", type=Path, metavar="ELF",
        help="tell how stale the profile is for this build, and not for the one that was recorded",
    )  # fmt: skip
    compared.add_argument(
        "--verify", type=Path, action="append", default=[], metavar="RECORDING",
        help="make the profile again of this recording, as its provenance (convert --provenance) "
        "tells, and refuse one that comes out otherwise; may be repeated",
    )  # fmt: skip
    gates = parser.add_argument_group("gates")
    gates.add_argument(
        "--min-density", type=_number, metavar="X", help="samples per location (llvm-profgen: 50)"
    )
    gates.add_argument("--min-coverage", type=share, metavar="X", help="from 0 to 1")
    gates.add_argument("--max-chance", type=share, metavar="X", help="from 0 to 1")
    gates.add_argument("--min-conservation", type=share, metavar="X", help="from 0 to 1")
    add_staleness_gates(gates)
    gates.add_argument(
        "--max-bias", type=share, metavar="X",
        help="share of the entries at one end of stacks that belong to other branches",
    )  # fmt: skip
    gates.add_argument("--min-executed", type=share, metavar="X", help="from 0 to 1")
    gates.add_argument("--min-overlap", type=share, metavar="X", help="from 0 to 1")
    add_selection(parser)
    section(parser, "what is shown").add_argument(
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
            name, type=share, metavar="X", default=default,
            help=f"share of counts {what}, from 0 to 1"
            + (f" ({default})" if default is not None else ""),
        )  # fmt: skip


def _number(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no number from 0 on")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return number


def run(args: argparse.Namespace) -> int:
    """Measure, print, and give the verdict as exit code."""
    from lbr2pgo.analyses.quality import Gates
    from lbr2pgo.cli.progress import timed
    from lbr2pgo.replay.replaying import ReadingOptions
    from lbr2pgo.reports.checking import CheckOptions, check

    chosen = ReadingOptions(counting=counting_options(args), strict=args.strict)
    options = CheckOptions(
        args.profile, args.binary, args.against, args.new_build, Gates.of(vars(args)), chosen,
        tuple(args.verify),
    )  # fmt: skip
    against = [] if args.against is None else [Path(args.against)]
    checked = timed([Path(args.profile), *against], partial(check, options))
    warn(checked.notes)
    note(checked.notes)
    if args.format == "line":
        print_line(args.profile, args.binary, checked.quality, checked.failed)
    elif args.format == "json":
        _print_json(checked)
    else:
        _print_table(checked)
    return REFUSED if checked.failed else 0


def _print_json(checked: Checked) -> None:
    quality, limits = checked.quality, checked.gates.limits
    measures: dict[str, dict[str, object]] = {}
    for name, value in quality.values().items():
        passed = None if name not in limits else name not in checked.failed
        measures[name] = {"value": value, "limit": limits.get(name), "passed": passed}
    if quality.stale is not None:
        measures["stale"]["details"] = asdict(quality.stale)
    if quality.overlap is not None:
        measures["overlap"]["details"] = asdict(quality.overlap)
    verdict = None if checked.grade is None else checked.grade.value
    told = None if checked.provenance is None else asdict(checked.provenance)
    answer = {
        "passed": checked.passed, "verdict": verdict, "measures": measures,
        "provenance": told, "verified": checked.verified,
        "carried": None if checked.carried is None else checked.carried.as_json(),
    }  # fmt: skip
    print(json.dumps(answer, indent=2))


def _print_table(checked: Checked) -> None:
    from rich.console import Console
    from rich.table import Table

    from lbr2pgo.support.printable import printable

    console = Console(highlight=False, markup=False)
    for line in _verdict_lines(checked):
        console.print(printable(line), soft_wrap=True)
    console.print()
    table, gated = Table(box=None, pad_edge=False), bool(checked.gates.limits)
    names = (
        ("measure", "value", "gate", "", "meaning") if gated else ("measure", "value", "meaning")
    )
    for name in names:
        table.add_column(name, justify="right" if name in ("value", "gate") else "left")
    for row in checked.measures.records():
        gate = (_text(row["gate"], ""), str(row["verdict"] or "")) if gated else ()
        table.add_row(str(row["measure"]), _text(row["value"]), *gate, str(row["meaning"]))
    console.print(table)
    stale, carried = _stale_lines(checked.quality.stale), _carried_lines(checked.carried)
    for line in (*stale, *carried, *_origin_lines(checked)):
        console.print(printable(line), soft_wrap=True)


def _verdict_lines(checked: Checked) -> Iterator[str]:
    """Whether to ship it, and why."""
    from lbr2pgo.analyses.quality_verdict import Grade

    yield f"Verdict: {checked.verdict}."
    for remark in checked.remarks:
        cure = "" if remark.grade is Grade.GOOD else f" {remark.cure}"
        grade = "wrong" if remark.grade.is_wrong else remark.grade.value
        yield f"  {grade:<14}{remark.text}.{cure}"


def _stale_lines(stale: Staleness | None) -> Iterator[str]:
    """Functions that are not in the binary, and those whose probes are others now."""
    if stale is None:
        return
    if stale.missing:
        yield f"not in the binary: {', '.join(stale.missing)}"
    if not stale.is_followed:
        yield f"not followed: {_OTHERWISE}"
    for each in stale.changed[:_MOST_CHANGED]:
        yield f"changed: {each.function} ({each.share:.2%} of counts): {each.why()}"
    if len(stale.changed) > _MOST_CHANGED:
        yield f"… and {len(stale.changed) - _MOST_CHANGED:,} more (--format json has all)"


def _carried_lines(account: Account | None) -> Iterator[str]:
    """What `lbr2pgo carry` would make of it."""
    from lbr2pgo.program.demangle import demangled, without_unique_suffix

    if account is not None:
        names = [demangled(without_unique_suffix(name)) for name in islice(account.lost(), _NAMED)]
        lost = f"; lost, most first: {', '.join(names)}" if names else ""
        yield f"lbr2pgo carry would keep {account.carried():.1%} of the counts{lost}"


def _origin_lines(checked: Checked) -> Iterator[str]:
    """What the profile came of, and whether that was proved."""
    if checked.provenance is not None:
        yield from ("", *checked.provenance.lines())
    if checked.verified is not None:
        yield f"verify: {checked.verified}"


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
    if stale is not None and not stale.is_followed:
        said += f", and is not followed: {_OTHERWISE}"
    verdict = f"; refused: {', '.join(failed)}" if failed else ""
    warning = "warning: " if stale is not None and stale.share > MUCH_STALE else ""
    print(printable(f"lbr2pgo: {warning}{profile}: {said}{verdict}"))


def _changed(stale: Staleness) -> str:
    """How many functions have changed, and the heaviest."""
    from lbr2pgo.program.demangle import demangled

    share = sum(each.share for each in stale.changed)
    names = ", ".join(demangled(each.function) for each in stale.changed[:_NAMED])
    return f"{share:.2%} in functions whose control flow has changed ({names})"


def _text(value: Value, nothing: str = "unknown") -> str:
    return f"{value:.4g}" if isinstance(value, float) else nothing
