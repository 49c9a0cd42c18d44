"""Traces in placed addresses, each with the verdict on its fall-through and the reason for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lbr2pgo.dumping.labels import BranchLabels
from lbr2pgo.model.branch_counts import BRANCH, END, FROM, OUTSIDE, RETURN, TO, BranchCounts, Runs
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow, JudgedRuns, ReplayOptions, Verdict, judge
from lbr2pgo.support.addresses import PlacedAddresses, placed_array
from lbr2pgo.support.arrays import Bools


def lines(
    flow: Flow, program: Program, options: ReplayOptions, function: int | None = None
) -> Iterator[str]:
    """One line a trace; only those that touch a region of the program, if one is given.

    `options` are those that the flow was replayed with.
    """
    counts, labels = flow.counts, BranchLabels(program)
    reasons = _Reasons(flow, options, labels)
    yield "count (mispredicted): branch -> target, and how far execution ran straight on from there"
    for row in np.flatnonzero(_touching(counts, program, function)).tolist():
        yield _row_text(counts, row, labels)
        if counts.known[row] & (TO | END) == TO | END:
            yield f"    {reasons.of(int(counts.to[row]), int(counts.end[row]))}"


def _touching(counts: BranchCounts, program: Program, function: int | None) -> Bools:
    if function is None:
        return np.ones(len(counts), dtype=np.bool_)
    regions = program.regions
    family = regions.families(np.array([function]))

    def inside(column: PlacedAddresses, bit: int) -> Bools:
        found: Bools = np.isin(regions.containing(column), family) & counts.has(bit)
        return found

    return inside(counts.from_, FROM) | inside(counts.to, TO) | inside(counts.end, END)


def _row_text(counts: BranchCounts, row: int, labels: BranchLabels) -> str:
    known = int(counts.known[row])
    target = labels.of(int(counts.to[row])) if known & TO else "outside"
    end = f", on to {labels.of(int(counts.end[row]))}" if known & END else ", end unknown"
    number = f"{counts.count[row]:,} ({_predictions_text(counts, row)})"
    return f"{number}: {_source_text(counts, row, labels)} -> {target}{end}"


def _predictions_text(counts: BranchCounts, row: int) -> str:
    missed, unknown = int(counts.mispredicted[row]), int(counts.prediction_unknown[row])
    return f"{missed:,}, {unknown:,} not known" if unknown else f"{missed:,}"


def _source_text(counts: BranchCounts, row: int, labels: BranchLabels) -> str:
    known = int(counts.known[row])
    kind = "return, " if known & RETURN else ""
    if known & FROM:
        return kind + labels.of(int(counts.from_[row]))
    if known & (BRANCH | OUTSIDE):
        return kind + "outside"
    return kind + "unknown"


class _Reasons:
    """Says of each fall-through whether it is valid, and which instruction speaks against it."""

    def __init__(self, flow: Flow, options: ReplayOptions, labels: BranchLabels) -> None:
        self._judged, self._labels = flow.judged, labels
        self._instructions, self._options = flow.instructions, options
        runs = flow.judged.runs
        pairs = zip(runs.start.tolist(), runs.end.tolist(), strict=True)
        self._rows = {pair: row for row, pair in enumerate(pairs)}

    def of(self, start: int, end: int) -> str:
        row = self._rows[start, end]
        verdict = Verdict(self._judged.verdict[row])
        if verdict is Verdict.VALID:
            if not self._judged.is_suspicious[row]:
                return "valid"
            return f"valid, but passes {self._culprit(row, suspicious=True)}, which was not logged"
        if verdict is Verdict.BACKWARDS:
            return "rejected: it ends before it starts"
        if verdict is Verdict.NOT_AN_INSTRUCTION:
            return f"rejected: {' and '.join(self._no_instruction(start, end))}"
        if verdict is Verdict.CROSSES_GAP:
            return f"rejected: behind {self._culprit(row)} stand bytes that are no code"
        return f"rejected: execution does not run past {self._culprit(row)}"

    def _no_instruction(self, start: int, end: int) -> Iterator[str]:
        for word, address in (("starts", start), ("ends", end)):
            place = placed_array([address])
            if self._instructions.index_of(place)[0] >= 0:
                continue
            inside = int(self._instructions.covering(place)[0])
            if inside < 0:
                yield f"{word} where there is no instruction"
            else:
                yield f"{word} inside {self._instruction(inside)}"

    def _culprit(self, row: int, *, suspicious: bool = False) -> str:
        """The last instruction of the longest beginning of the run that is without blame."""
        first, last = int(self._judged.first[row]), int(self._judged.last[row])
        prefixes = self._prefixes(first, last)
        blamed = prefixes.is_suspicious if suspicious else ~prefixes.valid
        return self._instruction(first + int(np.argmax(blamed)) - 1)

    def _prefixes(self, first: int, last: int) -> JudgedRuns:
        ends = self._instructions.address[first : last + 1]
        starts = np.repeat(self._instructions.address[first : first + 1], len(ends))
        runs = Runs(starts, ends, np.ones(len(ends), np.uint64))
        return judge(runs, self._instructions, self._options)

    def _instruction(self, row: int) -> str:
        kind = Kind(self._instructions.kind[row]).name.lower().replace("_", " ")
        where = self._labels.of(int(self._instructions.address[row]))
        return f"the instruction at {where}" if kind == "other" else f"the {kind} at {where}"
