"""Which samples are counted, against the same steps in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbr2pgo.counting import _selection
from lbr2pgo.counting._selection import count_entries, select

LOST = ("OTHER_EVENT", "OTHER_PROCESS", "NOT_CHOSEN", "NO_STACK", "NOT_MAPPED")
WANTED = np.array([True, False, True, False])  # the last for samples that don't say their event
flags = st.booleans()
samples = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(0, 9), flags, flags, flags, st.integers(-1, 3))
)


def columns(rows: list[tuple[int, ...]], *types: str) -> list[np.ndarray]:
    every = zip(*rows, strict=True) if rows else [()] * len(types)
    return [np.array(each, kind) for each, kind in zip(every, types, strict=True)]


@given(samples)
def test_a_sample_is_lost_at_the_first_step_it_does_not_pass(rows: list[tuple[int, ...]]) -> None:
    event, weight, own, chosen, stack, spaces = columns(rows, "i4", "u8", "?", "?", "?", "i8")
    steps = select(event, weight, WANTED, own, chosen, stack, spaces)
    expected, kept = dict.fromkeys(("READ", *LOST), 0), []
    for number, weighs, *passes, space in rows:
        tests = [WANTED[number], *passes, space >= 0]
        expected["READ"] += weighs
        lost = next((name for name, ok in zip(LOST, tests, strict=True) if not ok), None)
        kept.append(space if lost is None else -1)
        if lost:
            expected[lost] += weighs
    assert spaces.tolist() == kept
    assert {name: int(steps[getattr(_selection, name)]) for name in expected} == expected


@given(samples)
def test_samples_of_what_is_beside_are_neither_counted_nor_lost(
    rows: list[tuple[int, ...]],
) -> None:
    rest = [row for row in rows if row[0] != 1]
    steps, spaces = [], []
    for each, wanted in ((rows, np.array([1, _selection.BESIDE, 1, 0], np.uint8)), (rest, WANTED)):
        event, weight, own, chosen, stack, space = columns(each, "i4", "u8", "?", "?", "?", "i8")
        steps.append(select(event, weight, wanted, own, chosen, stack, space).tolist())
        spaces.append([*zip(event.tolist(), space.tolist(), strict=True)])
    assert steps[0] == steps[1]
    assert [each for each in spaces[0] if each[0] != 1] == spaces[1]
    assert all(space == -1 for event, space in spaces[0] if event == 1)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 5), flags)))
def test_entries_count_as_often_as_their_sample_weighs(rows: list[tuple[int, ...]]) -> None:
    rows = [(weight, max(a, b), min(a, b), counted) for weight, a, b, counted in rows]
    weight, whole, kept, counted = columns(rows, "u8", "i8", "i8", "?")
    offsets = [np.concatenate([[0], np.cumsum(each, dtype=np.int64)]) for each in (whole, kept)]
    found = count_entries(weight, *offsets, np.where(counted, 0, -1))
    counted_rows = [(w, a, b) for w, a, b, is_counted in rows if is_counted]
    assert found == (
        sum(w * a for w, a, _ in counted_rows),
        sum(w * (a - b) for w, a, b in counted_rows),
    )


def test_an_event_that_is_not_there_is_refused() -> None:
    one = np.ones(1, np.bool_)
    with pytest.raises(IndexError):
        select(np.array([4], np.int32), np.ones(1, np.uint64), WANTED, one, one, one,
               np.zeros(1, np.int64))  # fmt: skip
