"""Periods that double while a program runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from builders.fixtures import TESTBINS

from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.plugin_stream import Stream
from lbr2pgo.recorders.software import RecordResult, record_software
from lbr2pgo.recorders.thinning import longest_period, thinned
from lbr2pgo.support.errors import InputError

LOOP = "run 0 1\nrun 0 3\n"  # two taken branches


def sampled(output: Path, *command: str, most: int | None = 500) -> RecordResult:
    options = RecordOptions(
        output=output / "perf.data", command=command, period=101, emulate=True, most_samples=most
    )
    return record_software(options)


@pytest.mark.parametrize(
    ("rounds", "period", "kept"), [(1, 1, 1), (5, 2, 5), (9, 4, 4), (50, 16, 6)]
)
def test_every_second_of_the_earlier_samples_stays(
    flow: Callable[..., Stream], rounds: int, period: int, kept: int
) -> None:
    stream = flow(LOOP * rounds, most=8)  # its period of 1 has no jitter
    assert longest_period([stream], 1) == period
    assert abs(len(thinned(stream, 1, period).samples_at) - kept) <= 1


def test_all_samples_stay_where_nothing_doubled(flow: Callable[..., Stream]) -> None:
    stream = flow(LOOP * 20)
    assert stream.periods == ()
    assert (thinned(stream, 1, 1).samples_at == stream.samples_at).all()
    assert len(thinned(stream, 1, 4).samples_at) == (len(stream.samples_at) + 1) // 4


def test_samples_stand_for_as_many_branches_as_there_were(tmp_path: Path) -> None:
    found = sampled(tmp_path, str(TESTBINS / "x86-64" / "interp.pie"), "5")
    assert found.period > 101
    assert found.period & (found.period - 1) or found.period % 101 == 0
    assert 200 < found.samples <= 510
    assert found.samples * found.period == pytest.approx(found.totals.taken, rel=0.1)


def test_threads_that_doubled_more_or_less_often_are_thinned_alike(
    tmp_path: Path, build: Callable[..., Path]
) -> None:
    found = sampled(tmp_path, str(build("threads")), most=100)
    assert 40 <= found.samples <= 110  # of all threads together
    assert found.samples * found.period == pytest.approx(found.totals.taken, rel=0.3)


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(InputError, match="3 samples tell too little"):
        RecordOptions(output=Path("x"), command=("true",), most_samples=3)
