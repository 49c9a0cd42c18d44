"""Which report inputs can have: a comparison, one by source lines alone, or a whole one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lbr2pgo.counting.count import Progress
from lbr2pgo.reports.build import ReportOptions, make_report
from lbr2pgo.reports.compare import make_comparison
from lbr2pgo.reports.line_report import holds_lines_only, make_line_report
from lbr2pgo.reports.model import Report
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
        return make_line_report(options.profiles, options.only, options.top)
    return make_report(options, progress, timings)
