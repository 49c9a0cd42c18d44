"""`lbr2pgo measure`: what programs that do the same work cost, side by side."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lbr2pgo.cli import messages
from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.progress import is_watched

if TYPE_CHECKING:
    from rich.table import Table

    from lbr2pgo.pgo.measure import Measured
    from lbr2pgo.pgo.timing import Interval, Rounds

_ANY = 10_000
"""Columns that no table needs."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "measure",
        help=COMMANDS["measure"],
        description="Run each program once under the software LBR, which counts instructions, "
        "taken branches and simulated mispredictions exactly, the first one twice, and then "
        "natively, in turns, for the user time. Ratios are to the first program. All must exit "
        "alike; each reads standard input from its beginning.",
        examples=("lbr2pgo measure ./before ./after -- input",),
        usage="%(prog)s [-h] [--runs N] [--precision PERCENT] [--model [PRESET]] [--memory STATE] "
        "[--format F] BINARY … [-- ARGS …]",
    )
    add_runs(parser)
    parser.add_argument(
        "--model", nargs="?", const="", metavar="PRESET",
        help="simulate a front end beside (skylake, zen4, neoverse-n1; default: by the program's "
        "architecture): its misses, and an estimate of cycles; a program alone is then not timed, "
        "unless --runs says so",
    )  # fmt: skip
    parser.add_argument(
        "--memory", choices=("warm", "cold"),
        help="tell what native runs have in memory of the program's own code when they end, and "
        "their page faults; cold: with the program out of the page cache before each run",
    )  # fmt: skip
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="BINARY … -- ARGS …")
    parser.set_defaults(run=run)


def add_runs(parser: argparse._ActionsContainer) -> None:
    """Add --runs and --precision."""
    parser.add_argument(
        "--runs", type=int, metavar="N",
        help="timed runs of each program; 0 leaves time out (default: as many as --precision "
        "needs, at most 100, and none more after half a minute)",
    )  # fmt: skip
    parser.add_argument(
        "--precision", type=float, default=1.0, metavar="PERCENT",
        help="half the width of the intervals of times (default: 1)",
    )  # fmt: skip


def runs_of(args: argparse.Namespace) -> Rounds:
    """What these options ask for."""
    from lbr2pgo.pgo.timing import Rounds

    return Rounds(args.runs, args.precision / 100)


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    from lbr2pgo.pgo.measurements import measure_programs
    from lbr2pgo.pgo.standard_input import kept_input
    from lbr2pgo.pgo.timing import NOT_TIMED
    from lbr2pgo.support.printable import printable
    from lbr2pgo.support.timings import Timings

    model, words = _model_and_words(args)
    binaries, arguments = _split(words)
    is_model_alone = model is not None and len(binaries) == 1 and args.runs is None
    runs = NOT_TIMED if is_model_alone else runs_of(args)
    with TemporaryDirectory(prefix="lbr2pgo-") as folder:
        source = kept_input(Path(folder) / "stdin")
        timings = Timings(_say_stage)
        found = measure_programs(binaries, arguments, runs, source, timings, model, args.memory)
    measured = found.programs
    if messages.is_verbose():
        messages.show_times(timings)
    if args.format == "json":
        _print_json(measured)
    else:
        print_measured(measured)
        for sentence in found.changes:
            print(printable(sentence))
    return 0


def _say_stage(name: str, _: int) -> None:
    """In a line: programs write to the same terminal."""
    if is_watched():
        messages.say(f"{name} …")


def _model_and_words(args: argparse.Namespace) -> tuple[str | None, list[str]]:
    """`--model ./app` has the usual preset: what it was given is a program."""
    from lbr2pgo.recorders.front_end import PRESETS

    model, words = args.model, list(args.words)
    if model and model not in PRESETS and shutil.which(model):
        return "", [model, *words]
    return model, words


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Programs, and the arguments behind the first `--`; behind nothing, a program comes there."""
    at = words.index("--") if "--" in words else len(words)
    programs, rest = list(words[:at]), list(words[at + 1 :])
    return (programs, rest) if programs else (rest[:1], rest[1:])


def print_measured(measured: Sequence[Measured]) -> None:
    """Print one row a program, with ratios to the first, and what makes them doubtful."""
    from lbr2pgo.pgo.measurements import measured_notes
    from lbr2pgo.support.printable import printable

    _print_table(measured)
    for note in measured_notes(measured):
        print(printable(f"note: {note}"), file=sys.stderr)


def _print_table(measured: Sequence[Measured]) -> None:
    """A row a program or, where there is no room for that, a row a figure."""
    from rich.measure import Measurement

    from lbr2pgo.reports.terminal import make_console

    console, base = make_console(), measured[0]
    wide = _by_program(measured)
    table = wide
    if Measurement.get(console, console.options.update(max_width=_ANY), wide).maximum > (
        console.width
    ):
        table = _by_figure(measured)
        needed = Measurement.get(console, console.options.update(max_width=_ANY), table)
        console.width = max(console.width, needed.maximum)  # figures are not folded
    console.print(table)
    if base.counted.front_end is not None:
        console.print(_simulated_table(measured))
    if base.events:
        console.print(_event_table(measured))
    if base.memory is not None:
        console.print(_memory_table(measured))


def _by_program(measured: Sequence[Measured]) -> Table:
    from rich.table import Table

    from lbr2pgo.support.printable import printable

    table = Table(box=None, pad_edge=False)
    table.add_column("program", no_wrap=True)
    for name in _figures(measured[0]):
        table.add_column(name, justify="right", no_wrap=True)
    for each in measured:
        table.add_row(printable(each.name), *_cells(each, measured[0]))
    return table


def _by_figure(measured: Sequence[Measured]) -> Table:
    """Programs side by side, each as wide as its figures."""
    from rich.table import Table

    from lbr2pgo.reports.values import shortened
    from lbr2pgo.support.printable import printable

    base = measured[0]
    columns = [[cell.replace(", p", "\np") for cell in _cells(each, base)] for each in measured]
    columns[0] = [cell.removesuffix(" (1.000)") for cell in columns[0]]
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for each, cells in zip(measured, columns, strict=True):
        width = max(len(line) for cell in cells for line in cell.split("\n"))
        table.add_column(shortened(printable(each.name), width), justify="right", no_wrap=True)
    for row in zip(_figures(base), *columns, strict=True):
        table.add_row(*row)
    return table


_COUNTS = {
    "instructions": "instructions", "taken": "taken branches", "mispredicted": "mispredictions",
}  # fmt: skip


def _counts(base: Measured) -> list[str]:
    """Names of what was counted; a front end has a predictor of its own, and tells by that."""
    front_end = base.counted.front_end
    return [name for name in _COUNTS if front_end is None or name != "mispredicted"]


def _figures(base: Measured) -> tuple[str, ...]:
    rounds = len(base.seconds)
    time = f"user time, {rounds} rounds" if rounds else "user time"
    return (*(_COUNTS[name] for name in _counts(base)), "code", "hot pages", time)


def _cells(each: Measured, base: Measured) -> list[str]:
    ratios = each.count_ratios(base)
    counts = [
        f"{getattr(each.counted.totals, name):,}"
        + ("" if (ratio := ratios[name]) is None else f" ({ratio:.3f})")
        for name in _counts(base)
    ]
    return [*counts, *_size_cells(each, base), _time_cell(each, base)]


_SIMULATED: dict[str, str] = {
    "l1i": "L1I misses", "l2": "L2 misses (code)", "itlb": "iTLB misses",
    "stlb": "second-level TLB misses", "btb": "BTB misses", "directions": "wrong directions",
    "targets": "wrong indirect targets", "returns": "wrong returns",
}  # fmt: skip


def _beside(title: str, measured: Sequence[Measured]) -> Table:
    """An empty table with a column for each program."""
    from rich.table import Table

    from lbr2pgo.support.printable import printable

    table = Table(box=None, pad_edge=False)
    table.add_column(title, no_wrap=True)
    for each in measured:
        table.add_column(printable(each.name), justify="right", no_wrap=True)
    return table


def _simulated_table(measured: Sequence[Measured]) -> Table:
    base = measured[0]
    runs = [each.counted.front_end for each in measured]
    table = _beside(f"simulated: {runs[0].front_end.name}" if runs[0] else "", measured)
    cycles = [f"{run.cycles:,.0f}" for run in runs if run]
    ratios = [f" ({each.cycle_ratio(base):.3f})" for each in measured]
    table.add_row("cycles, estimated", *map("".join, zip(cycles, ratios, strict=True)))
    for name, words in _SIMULATED.items():
        table.add_row(words, *(f"{run.missed(name):,}" for run in runs if run))
    return table


def _event_table(measured: Sequence[Measured]) -> Table:
    base, table = measured[0], _beside("counted by hardware", measured)
    ratios = [each.event_ratios(base) for each in measured[1:]]
    for name in base.events[0]:
        value = median(run[name].value for run in base.events if name in run)
        cells = [_interval_text(each[name]) if name in each else "" for each in ratios]
        table.add_row(name, f"{value:,.0f}", *cells)
    return table


_IN_MEMORY = {
    "resident_code": "resident code (bytes)", "page_faults": "page faults",
    "from_disk": "from disk",
}  # fmt: skip


def _memory_table(measured: Sequence[Measured]) -> Table:
    table = _beside("in memory", measured)
    uses = [each.memory for each in measured if each.memory is not None]
    for name, words in _IN_MEMORY.items():
        values = [getattr(use, name) for use in uses]
        table.add_row(words, *(f"{v:,}{_ratio_text(v, values[0])}" for v in values))
    return table


def _ratio_text(value: int, base: int) -> str:
    return f" ({value / base:.3f})" if base else ""


def _size_cells(each: Measured, base: Measured) -> tuple[str, str]:
    if each.size is None:
        return "", ""
    ratio = _ratio_text(each.size.text, base.size.text) if base.size is not None else ""
    return f"{each.size.text:,}{ratio}", f"{each.size.hot_pages:,}"


def _time_cell(each: Measured, base: Measured) -> str:
    """Its median, or how it differs from the first program's, and how likely that is chance."""
    ratio = each.time_ratio(base)
    if ratio is None:
        return "too short" if len(each.seconds) else "not timed"
    if each is base:
        return f"{median(each.seconds.tolist()):.4f} s"
    return f"{_interval_text(ratio)}, p = {each.time_chance(base):.2g}"


def _interval_text(ratio: Interval) -> str:
    return f"{ratio.median:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def _print_json(measured: Sequence[Measured]) -> None:
    import json

    from lbr2pgo.pgo.measure import differing_outputs
    from lbr2pgo.pgo.timing import CONFIDENCE

    answer = {
        "confidence": CONFIDENCE,
        "exit_code": measured[0].counted.exit_code,
        "differing_outputs": differing_outputs(measured),
        "noise": measured[0].spread,
        "hardware_refusal": measured[0].uncounted or None,
        "programs": [_as_json(each, measured[0]) for each in measured],
    }
    print(json.dumps(answer, indent=2))


def _as_json(each: Measured, base: Measured) -> dict[str, Any]:
    from dataclasses import asdict

    ratio = each.time_ratio(base)
    return {
        "program": each.name,
        "counts": asdict(each.counted.totals),
        "ratios": each.count_ratios(base),
        "size": None if each.size is None else asdict(each.size),
        "time_ratio": None if ratio is None else asdict(ratio) | {"p": each.time_chance(base)},
        "seconds": each.seconds.tolist(),
        "events": [{name: asdict(count) for name, count in run.items()} for run in each.events],
        "memory": None if each.memory is None else asdict(each.memory),
        "front_end": _front_end_json(each, base),
    }


def _front_end_json(each: Measured, base: Measured) -> dict[str, Any] | None:
    found = each.counted.front_end
    if found is None:
        return None
    misses = {name: found.missed(name) for name in _SIMULATED}
    cycles = {"cycles": found.cycles, "cycles_ratio": each.cycle_ratio(base)}
    return {"preset": found.front_end.name, **cycles, **misses}
