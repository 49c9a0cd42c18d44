"""Recordings of several runs, each with a period of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders.fixtures import TESTBINS
from builders.sources import MemorySource, Sample
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.registry import output
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.software import record_software
from lbr2pgo.sources.base import EventInfo, SizedSource, Source, StackSource
from lbr2pgo.sources.one_period import at_one_period
from lbr2pgo.sources.series import open_recordings


def source(period: int | None, samples: int, name: str = "branches") -> MemorySource:
    events = (EventInfo(name, period=period),)
    taken = [Sample([(number, 0)] * (number % 3), event=0) for number in range(samples)]
    return MemorySource(taken, events=events, batch_size=4)


def numbers(found: Source) -> list[int]:
    assert isinstance(found, StackSource)
    return [int(each) for batch in found.batches() for each in batch.from_]


def sizes(found: Source) -> list[int]:
    assert isinstance(found, StackSource)
    return [int(each) for batch in found.batches() for each in np.diff(batch.offsets)]


def test_of_a_period_a_third_as_long_each_third_sample_stays() -> None:
    dense, sparse = source(100, 9), source(300, 3)
    thinned, same = at_one_period([dense, sparse])
    assert same is sparse
    assert sizes(thinned) == [1, 1, 1]
    assert numbers(thinned) == [1, 4, 7]
    assert numbers(thinned) == [1, 4, 7]  # when it is read again
    assert (thinned.info, thinned.space_events()) == (dense.info, dense.space)  # type: ignore[union-attr]
    assert thinned.health() == {
        "samples left out, as another recording has one in 300 events, not in 100": 6
    }
    assert not isinstance(dense, SizedSource)
    assert isinstance(thinned, SizedSource)
    assert thinned.share_read == 0


@given(st.integers(1, 2**64 - 1), st.integers(1, 2**64 - 1), st.integers(0, 60))
def test_as_many_stay_as_the_longest_period_would_have_given(a: int, b: int, samples: int) -> None:
    found = at_one_period([source(a, samples), source(b, samples)])
    for each, period in zip(found, (a, b), strict=True):
        assert len(sizes(each)) == pytest.approx(samples * period / max(a, b), abs=0.51)


@pytest.mark.parametrize(
    "other",
    [source(None, 3), source(0, 3), source(300, 3, "cycles"), source(100, 3), MemorySource([])],
    ids=["unknown", "none", "another event", "the same", "no event"],
)
def test_others_stay_as_they_are(other: MemorySource) -> None:
    both = [source(100, 9), other]
    assert at_one_period(both) == both


def test_each_event_has_a_period_of_its_own() -> None:
    events = EventInfo("branches", period=100), EventInfo("loads", period=7)
    taken = [Sample([(number, 0)], event=number % 2) for number in range(8)]
    both = MemorySource(taken, events=events, batch_size=3)
    alone = source(200, 3)
    longer = MemorySource([], events=(replace(events[0], period=200), replace(events[1], period=7)))
    for other in (alone, longer):
        thinned = at_one_period([both, other])[0]
        assert numbers(thinned) == [0, 1, 3, 4, 5, 7]
        assert sum(thinned.health().values()) == 2  # type: ignore[union-attr]


def test_runs_weigh_what_they_weigh_in_recordings_of_any_period(tmp_path: Path) -> None:
    program = str(TESTBINS / "x86-64" / "interp.pie")

    def recorded(name: str, scale: str, period: int) -> Path:
        path = tmp_path / name
        record_software(
            RecordOptions(output=path, command=(program, scale), period=period, emulate=True)
        )
        return path

    def branches(*paths: Path) -> int:
        options = ConvertOptions(paths, Path(program), outputs=(output("llvm", tmp_path / "out"),))
        done = convert(options)
        found = [note for note in done.notes if "left out" in note]
        assert len(found) == (len({path.suffix for path in paths}) > 1)
        return done.counts.branch_total()

    dense, sparse = recorded("a.101", "3", 101), recorded("b.1009", "3", 1009)
    alike = recorded("a.1009", "3", 1009)
    assert branches(dense) > 9 * branches(alike)
    assert branches(dense, sparse) == pytest.approx(branches(alike, sparse), rel=0.02)
    first, second = (each.source.info.events[0].period for each in open_recordings([dense, sparse]))
    assert (first, second) == (101, 1009)
