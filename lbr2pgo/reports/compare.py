"""A `Report` of what changed between two recordings, of one build or of two."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lbr2pgo.analyses import hot_functions, latency, mispredictions, outcomes
from lbr2pgo.analyses.changes import Compared, changes, timed_pairs
from lbr2pgo.analyses.table import Table, percentage
from lbr2pgo.model import waterfall
from lbr2pgo.model.doubts import told_of
from lbr2pgo.reports.build import (
    CHARTS,
    ReportOptions,
    call_graph,
    details_of,
    report_of,
    timings_of,
)
from lbr2pgo.reports.gather import Gathered, gather, look_for_analyses
from lbr2pgo.reports.model import CallNode, Report, Timing
from lbr2pgo.reports.placed_profiles import read_inputs
from lbr2pgo.reports.summary import Sentence
from lbr2pgo.support.headway import Progress
from lbr2pgo.support.timings import Timings

_ANALYSES = (hot_functions.NAME, latency.NAME, mispredictions.NAME, outcomes.NAME)


def make_comparison(
    options: ReportOptions,
    against: Sequence[Path],
    old_binary: Path | None = None,
    progress: Progress | None = None,
    timings: Timings | None = None,
) -> Report:
    """What the recordings of `options` show that those of `against` don't, and the reverse.

    `old_binary` is the program of the old ones; by default that of the new ones, or what they
    name. Raises as `make_report`.
    """
    before = replace(options, profiles=tuple(against), binary=old_binary or options.binary)
    timings = timings or Timings()
    has_page = options.views > 0
    analyses = options.asked if has_page else ()
    new = _gathered(options, progress, timings, (*_ANALYSES, *analyses))
    old = _gathered(before, progress, timings, _ANALYSES)
    sides = _compared(new), _compared(old)
    found = new.evidence
    with timings.stage("compare"):
        tables = changes(*sides, options.top)
    if found.limits.is_simulated or old.evidence.limits.is_simulated:
        tables = tuple(table.as_simulated(in_title=False) for table in tables)
    name = os.path.basename(found.program.image.layout.path)
    sentences = [*_sentences(tables)]
    report = Report(
        title=f"{name}: what changed",
        binary=found.program.image.layout.path,
        build_id=found.program.image.layout.build_id,
        profiles=(*map(str, options.profiles), *(f"{path} (old)" for path in against)),
        details=details_of(new),
        waterfall=waterfall.rows(new.tallies),
        tables=tables,
        timings=tuple(_timings(*sides)),
        notes=(*new.notes, *(told_of("old", note) for note in old.notes)),
        summary=tuple(sentence.text for sentence in sentences),
        summary_places=tuple(sentence.place for sentence in sentences),
    )
    if not has_page:
        return report
    return _on_page(
        report, report_of(new, options, progress, timings), call_graph(old.evidence, options)
    )


def _on_page(changes: Report, new: Report, before: CallNode | None) -> Report:
    """All of the new recording, with what changed before it."""
    paired = {_key(each): each for each in changes.timings}
    unpaired = (each for each in new.timings if _key(each) not in paired)
    return replace(
        new,
        title=changes.title,
        profiles=changes.profiles,
        tables=(*changes.tables, *new.tables),
        timings=(*paired.values(), *unpaired),
        call_graph_before=before,
        notes=changes.notes,
        summary=(*changes.summary, *new.summary),
        summary_places=(*changes.summary_places, *new.summary_places),
    )


def _key(timing: Timing) -> tuple[int, int, bool]:
    return timing.placed_start, timing.placed_end, timing.is_loop


def _gathered(
    options: ReportOptions, progress: Progress | None, timings: Timings, analyses: Sequence[str]
) -> Gathered:
    found = read_inputs(options, progress, timings, look_for_analyses(analyses, options.top))
    found.refuse_nothing()
    return gather(found)


def _compared(gathered: Gathered) -> Compared:
    """Of counts each stands for itself."""
    branches = int(gathered.evidence.flow.branches.count.sum())
    return Compared(gathered.evidence, gathered.tallies.get("samples_mapped", branches))


def _timings(new: Compared, old: Compared) -> Iterator[Timing]:
    for timed, is_loop in ((latency.timed_blocks, False), (latency.timed_loops, True)):
        pairs = [*timed_pairs(new, old, timed, CHARTS)]
        runs = timings_of(new.evidence, [run for run, _ in pairs], is_loop=is_loop)
        before = timings_of(old.evidence, [run for _, run in pairs], is_loop=is_loop)
        for each, earlier in zip(runs, before, strict=True):
            yield replace(each, before=earlier)


def _sentences(tables: Sequence[Table]) -> Iterator[Sentence]:
    """One for each table of shares."""
    for table in tables:
        if not any(column.name == "sure" for column in table.columns):
            continue
        sure = [row for row in table.records() if row["sure"] == "yes"]
        if not sure:
            yield Sentence(f"{table.title}: nothing changed by more than chance.", table.name)
            continue
        row = sure[0]
        old, new, low, high = (
            float(row[name] or 0) for name in ("old", "new", "change_low", "change_high")
        )
        at = f" ({row['line']})" if row["line"] else ""
        yield Sentence(
            f"{table.title}: the most in {row['function']}{at}, from {percentage(old)} to "
            f"{percentage(new)} ({100 * low:+.1f} to {100 * high:+.1f} points).",
            table.name,
        )
