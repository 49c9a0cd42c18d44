"""Which report inputs can have: a comparison, one by source lines alone, or a whole one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.analyses.line_tables import TABLES
from lbr2pgo.model.doubts import told_of
from lbr2pgo.replay.replaying import damage_of
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.compare import make_comparison
from lbr2pgo.reports.model import Report
from lbr2pgo.reports.placed_profiles import is_for_bolt
from lbr2pgo.sources import format_of, open_source
from lbr2pgo.sources.base import LineSource
from lbr2pgo.sources.repeated_files import repetitions
from lbr2pgo.support.errors import InputError
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.timings import Timings


def make_any_report(
    options: ReportOptions,
    against: Sequence[Path] = (),
    old_binary: Path | None = None,
    progress: Progress | None = None,
    timings: Timings | None = None,
) -> Report:
    """What changed since the recordings of `against`, or what those of `options` show.

    Inputs without addresses need no binary and have fewer tables. Raises as `make_report`.
    """
    if against:
        return make_comparison(options, against, old_binary, progress, timings)
    if holds_lines_only(options.profiles):
        return _line_report(options.profiles, options.only, options.top)
    return make_report(options, progress, timings)


def holds_lines_only(profiles: Sequence[Path]) -> bool:
    """Whether all of these files are such inputs; raises InputError where only some are.

    Standard input is taken for one with addresses.
    """
    lines = [path for path in profiles if str(path) != "-" and _has_lines_only(path)]
    if lines and len(lines) < len(profiles):
        raise InputError(
            "holds no addresses, and other profiles do",
            where=str(lines[0]),
            cure="Report on them apart from each other.",
        )
    return bool(lines)


def _has_lines_only(path: Path) -> bool:
    return not is_for_bolt(path) and not format_of(path).has_addresses


def _line_report(
    profiles: Sequence[Path], only: Sequence[str] = (), top: int | None = None
) -> Report:
    """Of source lines alone; raises InputError for bad input, or what needs addresses."""
    for name in only:
        if name not in TABLES:
            raise InputError(
                f"{name} can't be told without addresses",
                where=str(profiles[0]),
                cure=f"From such input follow: {', '.join(TABLES)}.",
            )
    sources = [source for source in map(open_source, profiles) if isinstance(source, LineSource)]
    branches = [source.line_branches() for source in sources]
    facts = {(k, v): None for source in sources for k, v in source.info.details.items()}
    damage = [told_of(source.info.path, note) for source in sources for note in damage_of(source)]
    names = [name for name in TABLES if not only or name in only]
    return Report(
        title="Branches by source line",
        binary="",
        build_id=None,
        profiles=tuple(map(str, profiles)),
        details=(("format", sources[0].info.format), *facts),
        waterfall=(),
        first=() if only else tuple(names),
        tables=tuple(TABLES[name](branches, top) for name in names),
        notes=(*repetitions(profiles), *damage),
    )
