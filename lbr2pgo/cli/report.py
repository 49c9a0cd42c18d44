"""`lbr2pgo report`: what a recording shows, in the terminal, for scripts, or on one page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.cli.messages import say, warn, wrote
from lbr2pgo.cli.own_process import give_back_memory, prepare
from lbr2pgo.cli.parser import names, section, whole_number
from lbr2pgo.cli.reporting import (
    PAGE_TOP,
    SHOWN,
    add_inputs,
    add_page_functions,
    add_shown,
    for_people,
    for_terminal,
    read_report,
    report_options,
)
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.executables import executable
from lbr2pgo.support.file_names import expanded

if TYPE_CHECKING:
    from lbr2pgo.reports.build import ReportOptions
    from lbr2pgo.reports.exports import Export
    from lbr2pgo.reports.model import Report

_TOP = 20
_FORMATS = ("json", "csv", "parquet", "folded", "pprof", "otlp", "speedscope", "firefox")
"""Those of `reports.exports`, which takes time to import."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "report",
        help=COMMANDS["report"],
        description="Answer questions about a recording: hot-functions, hot-branches, "
        "mispredictions, fetch-misses, data, latency, outcomes, indirect-targets, hyperblocks, "
        "call-stacks, callers, call-edges, phases, stack-ends, function.",
        examples=(
            "lbr2pgo report perf.data --binary ./app",
            "lbr2pgo report perf.data --binary ./app --only hot-branches,mispredictions --top 5",
            "lbr2pgo report perf.data --binary ./app --html app.html",
            "lbr2pgo report perf.data --binary ./app --function main --source",
        ),
    )
    add_inputs(parser)
    shown = section(parser, SHOWN)
    only = shown.add_argument(
        "--only", type=names, action="extend", default=[], metavar="NAMES",
        help="only these analyses or tables, separated by commas",
    )  # fmt: skip
    only.completer = _tables  # type: ignore[attr-defined]  # argcomplete's
    shown.add_argument(
        "--sort", type=sort_keys, action="extend", default=[], metavar="KEYS",
        help="one table of branches, grouped by keys of perf report: dso, symbol, srcline, addr, "
        "each with _from and _to, mispredict, cycles, in_tx, abort; or by srccolumn (_from, _to), "
        "condition, case",
    )  # fmt: skip
    shown.add_argument(
        "--function",
        metavar="F",
        help="only this function, by its name (linkage or C++) or an address, with its code",
    )
    shown.add_argument(
        "--source", action="store_true",
        help="show functions (the program's hottest, or --function) line by line of their source",
    )  # fmt: skip
    shown.add_argument(
        "--full", action="store_true",
        help="all tables, with their notes, a screen at a time (PAGER)",
    )  # fmt: skip
    shown.add_argument(
        "--top", type=whole_number, metavar="N", help="rows of each table (20; 0: all)"
    )
    shown.add_argument("--format", choices=("table", *_FORMATS), default="table",
        help="for scripts and other programs: standard output, see docs/reports.md",
    )  # fmt: skip
    shown.add_argument(
        "--push", metavar="URL", help="send --format otlp to this OpenTelemetry collector, by HTTP"
    )
    shown.add_argument(
        "--against", type=Path, action="append", default=[], metavar="OLD",
        help="show what changed since this recording; may be repeated",
    )  # fmt: skip
    shown.add_argument(
        "--old-binary", type=executable, metavar="ELF",
        help="the program of --against, if it is another build",
    )  # fmt: skip
    shown.add_argument(
        "--html",
        type=Path,
        metavar="OUT",
        help="write one page (and nothing else, unless --format is given)",
    )
    add_page_functions(parser)
    add_shown(parser)
    parser.set_defaults(run=run)


def _tables(prefix: str, **_: object) -> list[str]:
    """What the word may become: the last name of a list of tables."""
    from lbr2pgo.analyses.registry import TABLES

    before = prefix[: prefix.rfind(",") + 1]
    return [before + name for name in TABLES]


def sort_keys(text: str) -> list[str]:
    """Keys as perf takes them; those of columns that every table has are left out.

    >>> sort_keys("overhead,sym_from,+mispredict")
    ['symbol_from', 'mispredict']
    """
    from lbr2pgo.analyses.grouping import ALIASES, IGNORED

    keys = [key.removeprefix("+") for key in names(text)]
    return [ALIASES.get(key, key) for key in keys if key not in IGNORED]


def run(args: argparse.Namespace) -> int:
    """Make the report and show it."""
    prepare()
    if args.push is not None:
        _settle_push(args)
    from lbr2pgo.support.output import refuse_overwriting, refuse_unwritable

    if args.html is not None:
        refuse_overwriting([args.html], [*expanded(args.profiles), *args.binaries])
        refuse_unwritable([args.html])
    form = None if args.format == "table" else _export(args)
    if args.against and form is not None and form.has_code:
        raise InputError(
            f"{args.format} holds one recording, and no comparison",
            cure="Write one file of each, and compare these.",
        )
    options = _options(args, form)
    report = read_report(args, options)
    if form is not None or args.html is not None:
        warn(report.notes)
    if form is not None:
        content = form.write(for_terminal(args, report) if form.is_shown else report)
        _print(content) if args.push is None else _push(content, args.push)
    if args.html is not None:
        from lbr2pgo.reports import html  # which takes time to import

        refuse_overwriting([args.html], [report.binary])
        give_back_memory()
        html.write(for_people(args, report), args.html)
        wrote(args.html, "open it in a browser")
    elif form is None:
        _show(args, report)
    return 0


def _settle_push(args: argparse.Namespace) -> None:
    from lbr2pgo.reports.exports.otlp_push import whole_url

    whole_url(args.push)
    if args.format not in ("table", "otlp"):
        raise InputError(
            f"a collector takes no {args.format}", cure="Leave out --format, or --push."
        )
    args.format = "otlp"


def _show(args: argparse.Namespace, report: Report) -> None:
    """In the terminal: what answers at first sight, or all that was asked for."""
    from lbr2pgo.cli.pager import paged  # which takes time to import
    from lbr2pgo.reports import terminal

    console = terminal.make_console()
    if report.first and not args.full and args.top is None:
        terminal.show_briefly(for_terminal(args, report), console)
        return
    with paged(console) as pages:
        terminal.show(for_terminal(args, report), pages, charts=args.function is not None)


def _export(args: argparse.Namespace) -> Export:
    from lbr2pgo.reports.exports import EXPORTS

    form = EXPORTS[args.format]
    if form.is_binary and args.push is None and sys.stdout.isatty():
        raise InputError(f"{args.format} is nothing for a terminal", cure="Redirect it: > FILE.")
    form.loaded()
    return form


def _options(args: argparse.Namespace, form: Export | None) -> ReportOptions:
    is_page = args.html is not None
    is_cut = form is None or not form.all_rows
    top = (PAGE_TOP if is_page else _TOP if is_cut else 0) if args.top is None else args.top
    has_code = form is not None and form.has_code
    return report_options(
        args,
        only=form.only if form and form.only and not is_page else tuple(args.only),
        exact=form is not None and form.one_table,
        sort=tuple(args.sort),
        function=args.function,
        top=top or None,
        views=max(args.functions, 1) if is_page else 0,
        tables=is_page or not has_code,
        code=has_code,
        source=args.source or is_page,
    )


def _print(content: bytes) -> None:
    """For scripts and other programs."""
    from lbr2pgo.support.output import write_pieces

    sys.stdout.flush()
    write_pieces("-", [content])


def _push(content: bytes, url: str) -> None:
    from lbr2pgo.reports.exports.otlp_push import push

    push(content, url)
    say(f"sent {len(content):,} bytes of profiles to {url}")
