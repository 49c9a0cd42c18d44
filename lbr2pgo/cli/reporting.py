"""What `report` and `view` have in common: options, and the report that they ask for."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.cli import messages
from lbr2pgo.cli.parser import moved_directory, section, whole_number
from lbr2pgo.cli.selection import (
    add_binaries,
    add_selection,
    add_sysroot,
    counting_options,
    only_binary,
)
from lbr2pgo.support.file_names import expanded

if TYPE_CHECKING:
    from lbr2pgo.reports.build import ReportOptions
    from lbr2pgo.reports.model import Report

SHOWN = "what is shown"
PAGE_VIEWS, PAGE_TOP = 50, 200
"""How many functions' code and rows a page holds where nobody says."""


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add recordings, --binary, and where sources are."""
    parser.add_argument("profiles", nargs="+", metavar="PROFILE", help="- is standard input")
    group = section(parser, "which program")
    add_binaries(group)
    group.add_argument(
        "--no-libraries", action="store_true",
        help="show only what --binary names, and not every file that its process had",
    )  # fmt: skip
    add_sysroot(group, "libraries")
    group.add_argument(
        "--jit", type=Path, action="append", default=[], metavar="FILE",
        help="jit-PID.dump or perf-PID.map of code that a recorded process made, where it is not "
        "found (may be repeated)",
    )  # fmt: skip
    group = section(parser, "which source")
    group.add_argument(
        "--source-dir", type=moved_directory, action="append", default=[], metavar="DIR",
        help="show source files below DIR, too; FROM=TO: those whose path begins with FROM are now "
        "in TO; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--changed-source", action="store_true",
        help="show source files that changed since the build, too",
    )  # fmt: skip


def add_shown(parser: argparse.ArgumentParser) -> None:
    """Add how names are shown, and which samples count."""
    section(parser, SHOWN).add_argument(
        "--no-demangle", action="store_true", help="show C++ functions by their linkage names"
    )
    add_selection(parser)


def add_page_functions(parser: argparse.ArgumentParser) -> None:
    """Add how many functions' code a page holds."""
    section(parser, SHOWN).add_argument(
        "--functions", type=whole_number, default=PAGE_VIEWS, metavar="N",
        help=f"code of so many functions in the page ({PAGE_VIEWS}); view --serve has all",
    )  # fmt: skip


def report_options(args: argparse.Namespace, **shown: Any) -> ReportOptions:
    """What the options of `add_inputs` and `add_shown` say, with what else is to be shown."""
    from lbr2pgo.program.elf.find import ImagePlaces
    from lbr2pgo.reports.build import ReportOptions

    return ReportOptions(
        profiles=expanded(args.profiles),
        binary=only_binary(args.binaries),
        binaries=tuple(args.binaries[1:]),
        libraries=not args.no_libraries,
        places=ImagePlaces(tuple(args.sysroots)),
        jit=tuple(args.jit),
        source_dirs=tuple(args.source_dir),
        changed_source=args.changed_source,
        counting=counting_options(args),
        strict=args.strict,
        **shown,
    )


def read_report(args: argparse.Namespace, options: ReportOptions) -> Report:
    """The report; shows the stage at hand, and with --verbose how long each took."""
    from lbr2pgo.cli.waterfall import show_losses
    from lbr2pgo.model.incomplete import EmptyProfileError

    try:
        return _timed(args, options)
    except EmptyProfileError as error:
        messages.warn(error.notes)
        show_losses(error.tallies, error.notes, sys.stderr)
        raise


def _timed(args: argparse.Namespace, options: ReportOptions) -> Report:
    from lbr2pgo.cli.progress import timed
    from lbr2pgo.reports.making import make_any_report

    against: list[Path] = getattr(args, "against", [])  # `view` compares nothing
    old = args.old_binary if against else None
    return timed([*options.profiles, *against], partial(make_any_report, options, against, old))


def for_people(args: argparse.Namespace, report: Report) -> Report:
    """With names of C++ as its source has them, unless linkage names are wanted."""
    if args.no_demangle:
        return report
    from lbr2pgo.reports.readable import readable

    return readable(report)


def for_terminal(args: argparse.Namespace, report: Report) -> Report:
    """The same, without the signatures of C++ functions unless --verbose asks for them."""
    if args.no_demangle or messages.is_verbose():
        return for_people(args, report)
    from lbr2pgo.program.demangle import short_name
    from lbr2pgo.reports.readable import readable

    return readable(report, short_name)
