from __future__ import annotations

import numpy as np

from lbr2pgo.profiles.llvm.contexts.columns import LineColumns, line_and_discriminator, location_of


def test_locations_are_ordered_as_lines_and_discriminators_are() -> None:
    pairs = [(0, 0), (0, 2**32 - 1), (1, 0), (65535, 7)]
    line, discriminator = np.array(pairs).T
    location = location_of(line, discriminator)
    assert (np.diff(location.astype(np.float64)) > 0).all()
    assert list(zip(*(c.tolist() for c in line_and_discriminator(location)), strict=True)) == pairs


def test_counts_and_calls_add_up_and_lines_are_ordered() -> None:
    lines = LineColumns()
    context, count = np.array([1, 0, 1]), np.array([5, 6, 7], np.uint64)
    lines.add(context, np.array([9, 9, 9], np.uint64), count)
    lines.add_calls(context, np.array([9, 8, 9], np.uint64), np.array([3, 3, 3]), count)
    body, calls = lines.columns()
    rows = zip(body.context.tolist(), body.discriminator.tolist(), body.count.tolist(), strict=True)
    assert list(rows) == [(0, 8, 0), (0, 9, 6), (1, 9, 12)]
    assert dict(zip(calls.row.tolist(), calls.count.tolist(), strict=True)) == {2: 12, 0: 6}


def test_what_only_calls_has_a_line() -> None:
    lines, one = LineColumns(), np.array([1])
    lines.add_calls(one, one.astype(np.uint64), one, one.astype(np.uint64))
    assert lines.columns()[0].count.tolist() == [0]
