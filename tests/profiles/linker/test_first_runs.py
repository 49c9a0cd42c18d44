"""The order in which processes first ran functions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from builders.recordings import PIE, RECORDING

import lbr2pgo
from lbr2pgo.evidence.first_times import FIRST_TIMES
from lbr2pgo.evidence.second_look import SecondLook
from lbr2pgo.profiles.linker.first_runs import FirstRuns, first_runs
from lbr2pgo.profiles.linker.symbol_order import named_flow
from lbr2pgo.profiles.work import Work
from lbr2pgo.program.program import Program
from lbr2pgo.replay.recordings import Inputs, read_and_replay
from lbr2pgo.support.errors import OutputError
from lbr2pgo.support.timings import Timings


def work_of(*recordings: Path) -> Work:
    inputs = Inputs(profiles=recordings, binary=PIE)
    found = read_and_replay(inputs, asks=lambda found: SecondLook(found, [FIRST_TIMES]))
    return Work(found, Timings())


def functions_as_recorded() -> list[str]:
    """Names in the order in which entries of stacks, oldest first, come from or lead to them."""
    program = Program.open(PIE)
    (source,) = work_of(RECORDING).found.sources
    code = next(each for each in program.image.layout.segments if each.executable)
    (base,) = {
        each.start - each.file_offset + code.file_offset - code.address
        for each in source.space_events()
        if getattr(each, "path", "").endswith(PIE.name)
    }
    seen: dict[str, None] = {}
    for batch in source.batches(None):
        for sample in np.argsort(batch.time, kind="stable").tolist():
            for row in range(batch.offsets[sample + 1] - 1, batch.offsets[sample] - 1, -1):
                for end in (int(batch.from_[row]), int(batch.to[row])):
                    place = program.functions.containing(np.array([end - base], np.uint64))[0]
                    if 0 <= end - base < 1 << 32 and place >= 0:
                        start = int(program.functions.start[program.functions.parent[place]])
                        seen[program.symbols.function_at([start]).get(start, "")] = None
    return list(seen)


def test_functions_stand_as_their_branches_came() -> None:
    work = work_of(RECORDING)
    (order,) = work.once(first_runs).of_each_process()
    named = work.once(named_flow).names
    first = [named[place][0] for place in order.tolist()]
    known = {*first}
    assert first == [name for name in functions_as_recorded() if name in known]
    assert {"main", "run", "walk"} <= known


def test_each_recording_has_processes_of_its_own() -> None:
    alone, both = (work_of(*files).once(first_runs) for files in ([RECORDING], [RECORDING] * 2))
    first, second = both.of_each_process()
    assert first.tolist() == second.tolist() == alone.function.tolist()
    assert both.since.tolist() == [*alone.since.tolist()] * 2


def runs_of(*processes: Sequence[tuple[int, int]], recordings: int = 1) -> FirstRuns:
    """Processes, by turns of the recordings: functions, and how long after the beginning."""
    rows = [
        (process, process % recordings, function, since)
        for process, each in enumerate(processes)
        for function, since in each
    ]
    process, recording, function, since = np.array(rows, np.int64).T
    return FirstRuns(process, recording, function, since.astype(np.uint64), recordings)


def test_the_earliest_of_all_processes_counts() -> None:
    runs = runs_of([(2, 0), (0, 7)], [(0, 0), (1, 5), (2, 9)])
    rank, since = runs.earliest(4)
    assert rank[:3].tolist() == [0, 1, 0]
    assert since[:3].tolist() == [0, 5, 0]
    assert rank[3] == np.iinfo(np.int64).max
    assert since[3] == np.iinfo(np.uint64).max


def test_counts_without_samples_have_no_order(tmp_path: Path) -> None:
    exact = Path(str(RECORDING).replace(".perf.data", ".exact.npz"))
    with pytest.raises(OutputError, match="does not say when its samples were taken"):
        lbr2pgo.convert(exact, PIE, startup_order=tmp_path / "order")


def test_processes_that_start_alike_are_one_start() -> None:
    runs = runs_of([(2, 0), (0, 7)], [(0, 0), (1, 5), (2, 9)], [(2, 1), (0, 8), (1, 99)])
    starts = runs.starts(within=10)
    assert [trace.tolist() for trace in starts.traces] == [[2, 0], [0, 1, 2]]
    assert (starts.weights, starts.left_out) == ((2, 1), 0)
    weighed = runs_of(*([(each, 0)] for each in (2, 0, 2, 1)), recordings=2).starts(9, of=(3, 5))
    assert [trace.tolist() for trace in weighed.traces] == [[2], [0], [1]]
    assert weighed.weights == (6, 5, 5)


def test_there_is_a_weight_for_each_recording() -> None:
    runs = runs_of([(0, 0)], [(1, 0)], recordings=2)
    with pytest.raises(OutputError, match="3 weights can't be those of 2 recordings"):
        runs.weights((1, 2, 3))


def test_of_very_many_starts_the_frequent_ones_decide() -> None:
    runs = runs_of(*([(0, 0), (n, 1)] for n in range(1, 121)), [(0, 0), (120, 1)])
    starts = runs.starts(5)
    assert len(starts.traces) == 100
    assert starts.left_out == 20
    assert (starts.traces[0].tolist(), starts.weights[0]) == ([0, 120], 2)


def test_functions_of_one_start_stand_together() -> None:
    """By turns one for each start would do in no process."""
    even, odd = range(0, 128, 2), range(1, 128, 2)
    runs = runs_of(*([(f, n) for n, f in enumerate(each)] for each in (even, odd)))
    rank, since = runs.earliest(130)
    assert (since[:128] < 64).all()
    place = runs.starts(1000).together(rank)
    order = np.argsort(place, kind="stable")
    assert {frozenset(order[:64].tolist()), frozenset(order[64:128].tolist())} == {
        frozenset(even), frozenset(odd)
    }  # fmt: skip
    assert place[128:].tolist() == rank[128:].tolist()
    alone = runs_of([(f, n) for n, f in enumerate(even)])
    assert (alone.starts(1000).together(rank) == rank).all()
