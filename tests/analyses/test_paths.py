from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from builders.evidence import evidence, gather, with_limits
from builders.perf_readings import stacks
from builders.recordings import TESTBINS
from builders.sources import Sample

from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.paths import crossing, paths_across_calls, segments
from lbr2pgo.evidence.path_counts import WAYS
from lbr2pgo.sources.perf_data.reader import PerfData

CALL, RETURN = (0x1000, 0x1040), (0x1041, 0x1005)
LONG, SHORT = [(0x1006, 0x1010), (0x1012, 0x1015)], [(0x1009, 0x1015)]
BACK = (0x1018, 0x1000)


def rounds(*ways: str) -> Sample:
    """Rounds of `main`, which calls `g` and takes one of two ways behind it, oldest first."""
    taken = [e for way in ways for e in (CALL, RETURN, *(LONG if way == "l" else SHORT), BACK)]
    return Sample([*reversed(taken), BACK])


def test_a_path_goes_into_what_is_called_and_back() -> None:
    found = evidence(*(rounds("l", "l", "l", "s") for _ in range(10)))
    row = next(paths_across_calls(found).records())
    assert row["chain"] == "0x1000 0x1040 0x1005 0x1010 0x1015 0x1018"
    assert row["instructions"] == "1 2 2 3 2 1"
    assert row["functions"] == "main → g → main"
    assert (row["blocks"], row["executions"], row["paths"]) == (6, 40, 30)
    assert row["path_share"] == 0.75
    assert row["path_low"] < 0.75 < row["path_high"]  # type: ignore[operator]


def test_paths_within_one_function_are_those_of_hyperblocks() -> None:
    found = evidence(Sample([(0x1016, 0x1005), *LONG[::-1], (0x1016, 0x1005)]))
    assert len(segments(found).first) > 2
    assert not len(paths_across_calls(found))


def test_without_samples_only_branches_tell() -> None:
    found = with_limits(evidence(rounds("l", "l", "s")), has_samples=False)
    row = next(paths_across_calls(found).records())
    assert row["functions"] == "main → g → main"
    assert (row["path_share"], row["paths"]) == (None, None)


def test_a_filtered_recording_says_why_there_are_none() -> None:
    table = paths_across_calls(evidence(rounds("l"), filters=1 << 10 | 1))
    assert not len(table)
    assert any("filtered" in note for note in table.notes)


def walks(found: Evidence, recording: Path) -> Iterator[list[int]]:
    """Blocks in the order in which they ran, of stretches without a gap; of a program that is
    loaded where it is linked."""
    code = found.flow.instructions
    starts = code.address[_starts(found)].tolist()
    judged = found.flow.judged
    runs = judged.runs
    valid = {
        (start, end): ok
        for start, end, ok in zip(
            runs.start.tolist(), runs.end.tolist(), judged.valid.tolist(), strict=True
        )
    }
    for stack in stacks(PerfData(recording)):
        walk: list[int] = []
        for older, newer in zip(stack[:0:-1], stack[-2::-1], strict=True):
            if not valid.get((older[1], newer[0])):
                yield walk
                walk = []
                continue
            first, past = np.searchsorted(starts, [older[1], newer[0] + 1])
            walk += starts[first:past]
        if stack and valid.get((stack[1][1], stack[0][0])) and stack[0][1] in starts:
            walk.append(stack[0][1])
        yield walk


def _starts(found: Evidence) -> list[int]:
    from lbr2pgo.analyses.paths import _starts as marked

    return np.flatnonzero(marked(found)).tolist()


def test_samples_that_went_a_whole_path_are_those_of_a_walk_block_by_block() -> None:
    recording = TESTBINS / "recordings" / "x86-64-shapes.static.perf.data"
    found = gather((recording,), TESTBINS / "x86-64" / "shapes.static").evidence
    rows = [
        (tuple(int(word, 16) for word in str(row["chain"]).split()), row["paths"])
        for row in paths_across_calls(found, None).records()
        if int(row["blocks"] or 0) <= WAYS
    ]
    walked = [*walks(found, recording)]
    assert len(rows) >= 10
    assert sum(int(times or 0) for _, times in rows) > 5
    for path, times in rows:
        whole = sum(
            tuple(walk[i : i + len(path)]) == path
            for walk in walked
            for i in range(len(walk) - len(path) + 1)
        )
        assert times == whole


def test_paths_are_of_the_hottest_functions_only() -> None:
    found = evidence(*(rounds("l") for _ in range(10)))
    assert len(crossing(found, 2)[1]) == 1
    assert len(crossing(found, 1)[1]) == 0
