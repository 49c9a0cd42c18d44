"""How many cycles code took: each block that starts at a recorded target, and each loop's round.

A recorder with cycle counts says with each entry how long it is since the one before: that is the
time of the fall-through in between.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbr2pgo.analyses.distributions import Distribution, kept_of
from lbr2pgo.analyses.evidence import TOP, Evidence
from lbr2pgo.analyses.modes import FEWEST
from lbr2pgo.analyses.source_lines import SourceLines
from lbr2pgo.analyses.table import FIGURE, SPARE, Column, Table, Unit, Value, build, empty
from lbr2pgo.evidence.cycle_counts import CYCLES, ITERATIONS, CycleCounts, merge
from lbr2pgo.model.branch_stacks import MISSING, SATURATED
from lbr2pgo.native.row_ids import RowIds
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.support.addresses import PlacedAddress, placed_array
from lbr2pgo.support.arrays import F64, I64, Bools
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import begins, distinct
from lbr2pgo.support.intervals import interval_of

NAME = "latency"
TITLE = "Cycles of blocks"

Columns = list[tuple[Column, list[Value]]]

_ALL = slice(None)
_PERCENTILES = (50, 90, 99)
_JUMPS = (Kind.COND, Kind.JUMP)
_COLUMNS = (
    Column("count", "measured", Unit.COUNT, FIGURE),
    Column("trimmed_mean", "trimmed mean", Unit.CYCLES, FIGURE, of_processor=True),
    Column("mean", "mean cycles", Unit.CYCLES, SPARE, of_processor=True),
    Column("left_out", "left out", Unit.SHARE, SPARE),
    *(Column(f"p{p}", f"{p} %", Unit.CYCLES, of_processor=True) for p in _PERCENTILES),
    Column("modes", "modes", Unit.TEXT, FIGURE, of_processor=True),
    Column("modes_mispredicted", "mispredicted", Unit.TEXT, of_processor=True),
    Column("missing", "missing", Unit.COUNT, SPARE),
    Column("saturated", "saturated", Unit.COUNT, SPARE),
)


@dataclass(frozen=True, slots=True)
class TimedRun:
    """Times of one fall-through, or of one loop's rounds."""

    start: PlacedAddress
    end: PlacedAddress
    times: Distribution


def timed_blocks(evidence: Evidence, top: int | None = TOP) -> list[TimedRun]:
    """Blocks from a recorded target to the next taken branch, most time altogether first."""
    return evidence.once(_ranked_blocks).first(top)


def timed_loops(evidence: Evidence, top: int | None = TOP) -> list[TimedRun]:
    """Rounds of loops, from one back edge to its next occurrence in a stack.

    `start` is the loop's head, `end` the branch that goes back to it.
    """
    return evidence.once(_ranked_loops).first(top)


def valid_cycles(evidence: Evidence) -> CycleCounts:
    """Cycles of runs that replay found valid, in the function that was asked for."""
    cycles = evidence.whole.once(_all_valid_cycles)
    if evidence.function is None:
        return cycles
    return cycles.take(np.flatnonzero(evidence.concerns(cycles.start)))


def _all_valid_cycles(evidence: Evidence) -> CycleCounts:
    cycles = evidence.found(CYCLES)
    if cycles is None:
        return merge(())
    judged, runs = evidence.flow.judged, RowIds()
    runs.number_rows(judged.runs.start[judged.valid], judged.runs.end[judged.valid])
    known = len(runs)
    is_valid = runs.number_rows(cycles.start, cycles.end) < known
    return cycles.take(np.flatnonzero(is_valid))


def _loop_cycles(evidence: Evidence) -> CycleCounts:
    """Cycles of back edges: direct jumps backwards within one loop of a function's graph.

    An indirect jump backwards, in an interpreter say, is no edge of one loop, and a jump back to
    code that never comes to it again, to a return say, is none of any.
    """
    cycles = evidence.found(ITERATIONS)
    if cycles is None:
        return merge(())
    code, regions = evidence.flow.instructions, evidence.program.regions
    row = code.index_of(cycles.end)
    is_jump = np.append(np.isin(code.kind, _JUMPS), False)[row]
    same = regions.containing(cycles.start) == regions.containing(cycles.end)
    back = cycles.take(np.flatnonzero(is_jump & same & evidence.concerns(cycles.end)))
    return back.take(np.flatnonzero(_are_loops(evidence, back)))


def _are_loops(evidence: Evidence, back: CycleCounts) -> Bools:
    """(n,): whether each jump back, from `end` to `start`, can be reached from where it goes."""
    program = evidence.program
    functions = distinct(program.regions.parent[program.regions.containing(back.end)])
    cfgs = program.cfgs(functions, evidence.indirect_targets)
    order = np.argsort(cfgs.block_start)
    loop_of = np.append(cfgs.loop_of[order], -1)  # the last one: of no block
    start, end = cfgs.block_start[order], cfgs.block_end[order]
    head, latch = (loop_of[interval_of(start, end, place)] for place in (back.start, back.end))
    found: Bools = (head == latch) & (head >= 0)
    return found


_NOTES = (
    "Rows are ranked by their trimmed mean times count. It leaves out the slowest hundredth: an "
    "interrupt falls into some run. “left out” is the share of its cycles in all.",
    f"A mode has the share of the values near it; fewer than {FEWEST} are listed in its place. "
    "“Mispredicted” is, of each mode, the share with a mispredicted branch before, at the end of, "
    "or within the measured.",
)


def _time(cycles: CycleCounts, group: I64, groups: int) -> F64:
    """Cycles of each group (groups,): its trimmed mean times how often it was measured.

    group (n,): number of each row's group.
    """
    order = np.lexsort((cycles.cycles, group))
    value, of = cycles.cycles[order], group[order]
    is_measured = (value != MISSING) & (value != SATURATED)
    count = np.where(is_measured, cycles.count[order], np.uint64(0)).astype(np.int64)
    total = np.bincount(of, count, groups).astype(np.int64)
    before = np.cumsum(count) - count
    first = np.searchsorted(of, np.arange(groups))
    before -= np.append(before, 0)[first][of]
    kept = kept_of(total)
    part = np.clip(kept[of] - before, 0, count)
    sums = np.zeros(groups, np.float64)
    np.add.at(sums, of, part * value.astype(np.float64))
    time: F64 = sums / np.maximum(kept, 1) * total
    return time


def _distribution(cycles: CycleCounts, rows: slice | I64 = _ALL) -> Distribution:
    return Distribution.of(
        cycles.cycles[rows],
        cycles.count[rows],
        cycles.mispredicted[rows],
        cycles.prediction_unknown[rows],
    )


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Runs with any cycles at all by their time; each is made once, as its modes take long."""

    cycles: CycleCounts
    bounds: I64
    order: I64
    made: dict[int, TimedRun]

    def first(self, top: int | None) -> list[TimedRun]:
        return [self.made.get(i) or self._make(i) for i in self.order[:top].tolist()]

    def _make(self, i: int) -> TimedRun:
        first, past = self.bounds[i : i + 2].tolist()
        start, end = map(PlacedAddress, (self.cycles.start[first], self.cycles.end[first]))
        times = _distribution(self.cycles, slice(first, past))
        return self.made.setdefault(i, TimedRun(start, end, times))


def _ranked_blocks(evidence: Evidence) -> _Ranked:
    return _ranked(valid_cycles(evidence))


def _ranked_loops(evidence: Evidence) -> _Ranked:
    return _ranked(evidence.once(_loop_cycles))


def _ranked(cycles: CycleCounts) -> _Ranked:
    """Group by start and end."""
    first = begins(cycles.start, cycles.end)
    starts = np.flatnonzero(first)
    if not len(starts):
        return _Ranked(cycles, starts, starts, {})
    weight = _time(cycles, np.cumsum(first) - 1, len(starts))
    known = np.add.reduceat((cycles.cycles != MISSING).astype(np.int64), starts) > 0
    order = np.argsort(np.where(known, -weight, 1), kind="stable")[: int(known.sum())]
    return _Ranked(cycles, np.append(starts, len(cycles)), order, {})


def _timed_pairs(cycles: CycleCounts) -> int:
    """How many runs or loops have any cycles."""
    known = cycles.cycles != MISSING
    return int(begins(cycles.start[known], cycles.end[known]).sum())


def latency(evidence: Evidence, top: int | None = TOP) -> tuple[Table, ...]:
    """Tables of blocks, of source lines, of loop rounds, and of the rate of each cycle count."""
    cycles = valid_cycles(evidence)
    if not (cycles.cycles != MISSING).any():
        return (empty(NAME, TITLE, _COLUMNS, *evidence.run_notes(), _why_none(evidence)),)
    blocks = timed_blocks(evidence, top)
    notes = (*evidence.line_notes(), *_missing_notes(cycles), *_NOTES)
    found = _timed_pairs(cycles)
    return (
        _table(evidence, NAME, TITLE, blocks, notes, found),
        _by_line(evidence, cycles, top, notes),
        _loops(evidence, top, notes),
        _rates(evidence, blocks),
    )


def _why_none(evidence: Evidence) -> str:
    cycles = evidence.found(CYCLES)
    if cycles is not None and (cycles.cycles != MISSING).any():
        return "The recording has cycles, but none of valid runs of the code that is asked for."
    if not evidence.limits.has_samples:
        return "The input holds counts of branches, and no cycles: give the recording itself."
    if evidence.limits.no_cycles:
        return " ".join(evidence.limits.no_cycles)
    if cycles is not None and not len(cycles):
        return (
            "No two branches of a sample follow each other: cycles are those from one to the next."
        )
    return (
        "The recording has no cycles: Intel processors from Skylake on and Arm's BRBE count them, "
        "unless the filter says no_cycles; AMD's do not."
    )


def _missing_notes(cycles: CycleCounts) -> tuple[str, ...]:
    whole = _distribution(cycles)
    notes = []
    if whole.missing:
        notes.append(
            f"{whole.missing:,} of {whole.measured + whole.missing + whole.saturated:,} entries "
            "have no cycle count; they are left out of every figure but “missing”."
        )
    if whole.saturated:
        notes.append(
            f"{whole.saturated:,} counts are saturated (their counter was at its end); they are "
            "left out of every figure but “saturated”."
        )
    return tuple(notes)


def _statistics(distributions: Sequence[Distribution]) -> Columns:
    rows = [
        (
            each.measured,
            each.trimmed_mean,
            each.mean,
            each.left_out,
            *(each.percentile(p) for p in _PERCENTILES),
            each.told,
            each.told_mispredicted,
            each.missing,
            each.saturated,
        )
        for each in distributions
    ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_COLUMNS)
    return [(column, list(values)) for column, values in zip(_COLUMNS, columns, strict=True)]


def _table(
    evidence: Evidence,
    name: str,
    title: str,
    runs: Sequence[TimedRun],
    notes: tuple[str, ...],
    found: int,
) -> Table:
    places = evidence.names.of(placed_array(run.start for run in runs))
    columns = [
        *_statistics([run.times for run in runs]),
        *places.columns(),
        (Column("end_address", "ends at", Unit.ADDRESS, SPARE), [run.end for run in runs]),
    ]
    return build(name, title, columns, notes=notes, found=found)


def _by_line(
    evidence: Evidence, cycles: CycleCounts, top: int | None, notes: tuple[str, ...]
) -> Table:
    """Blocks together by the source line on which they start."""
    starts, place = np.unique(cycles.start, return_inverse=True)
    lines = SourceLines.of(evidence.names, starts)
    group = lines.group[place.reshape(-1)]
    weight = _time(cycles, group, len(lines))
    order = np.argsort(-weight, kind="stable")
    rows = order[(weight[order] > 0) & lines.known[order]]
    shown = rows[:top]
    members = [np.flatnonzero(group == line) for line in shown]
    columns: Columns = [
        *_statistics([_distribution(cycles, m) for m in members]),
        (Column("line", "source line", Unit.LOCATION, FIGURE), list(lines.texts(shown))),
    ]
    title = "Cycles of blocks by source line"
    notes += lines.notes(weight, "cycles")
    return build(f"{NAME}-by-line", title, columns, notes=notes, found=len(rows))


def _loops(evidence: Evidence, top: int | None, notes: tuple[str, ...]) -> Table:
    cycles = evidence.once(_loop_cycles)
    shown, found = timed_loops(evidence, top), _timed_pairs(cycles)
    note = (
        "A round is timed if the stack holds its back edge twice: rounds with more taken branches "
        "than the stack is deep are not seen."
    )
    title = "Cycles of loop rounds"
    return _table(evidence, f"{NAME}-loops", title, shown, (*notes, note), found)


def _rates(evidence: Evidence, blocks: Sequence[TimedRun]) -> Table:
    """How often each block took how many cycles: the numbers behind the charts."""
    names = evidence.names.functions(placed_array(run.start for run in blocks))
    rows = tuple(
        (name, run.start, run.end, cycles, count, rate)
        for name, run in zip(names, blocks, strict=True)
        for cycles, count, rate in zip(
            run.times.cycles.tolist(),
            run.times.count.tolist(),
            run.times.rates.tolist(),
            strict=True,
        )
    )
    columns = (
        Column("function", "function", Unit.FUNCTION),
        Column("address", "address", Unit.ADDRESS),
        Column("end_address", "ends at", Unit.ADDRESS, SPARE),
        Column("cycles", "cycles", Unit.CYCLES, FIGURE, of_processor=True),
        Column("count", "count", Unit.COUNT, FIGURE),
        Column("rate", "occurrence rate", Unit.SHARE, FIGURE),
    )
    return Table(f"{NAME}-rates", "Occurrence rates", columns, rows)
