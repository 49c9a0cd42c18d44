"""The order in which processes first ran functions."""

from __future__ import annotations

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


def test_the_earliest_of_all_processes_counts() -> None:
    runs = FirstRuns(
        np.array([0, 0, 1, 1, 1]), np.array([2, 0, 0, 1, 2]),
        np.array([0, 7, 0, 5, 9], np.uint64),
    )  # fmt: skip
    rank, since = runs.earliest(4)
    assert rank[:3].tolist() == [0, 1, 0]
    assert since[:3].tolist() == [0, 5, 0]
    assert rank[3] == np.iinfo(np.int64).max
    assert since[3] == np.iinfo(np.uint64).max


def test_counts_without_samples_have_no_order(tmp_path: Path) -> None:
    exact = Path(str(RECORDING).replace(".perf.data", ".exact.npz"))
    with pytest.raises(OutputError, match="does not say when its samples were taken"):
        lbr2pgo.convert(exact, PIE, startup_order=tmp_path / "order")
