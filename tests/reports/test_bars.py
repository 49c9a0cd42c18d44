from __future__ import annotations

import pytest

from lbr2pgo.reports.bars import bars
from lbr2pgo.reports.model import Timing


def timing(cycles: tuple[int, ...], count: tuple[int, ...]) -> Timing:
    return Timing("f", "f.c:1", 1, 2, cycles, count, 0, 0, ())


def test_each_number_of_cycles_has_a_row_and_gaps_show() -> None:
    table = bars(timing((2, 3, 6), (50, 25, 25)))
    assert table.column("cycles") == ("2", "3", "4", "5", "6")
    assert table.column("count") == (50, 25, 0, 0, 25)
    assert table.column("rate") == (0.5, 0.25, 0, 0, 0.25)
    assert [len(str(bar)) for bar in table.column("bar")] == [40, 20, 0, 0, 20]


@pytest.mark.parametrize("last", [23, 24, 25, 1000])
def test_a_wide_range_takes_no_more_rows(last: int) -> None:
    table = bars(timing((0, last), (500, 500)))
    assert len(table) <= 25
    counts = table.column("count")
    assert (counts[0], counts[-1], sum(c for c in counts if isinstance(c, int))) == (500, 500, 1000)


def test_the_slowest_hundredth_shares_a_row() -> None:
    table = bars(timing((10, 12, 90_000), (500, 498, 2)))
    assert table.column("cycles") == ("10", "11", "12", "more, to 90,000")
    assert table.column("count")[-1] == 2


def test_without_cycles_there_is_nothing_to_draw() -> None:
    assert not len(bars(timing((), ())))
