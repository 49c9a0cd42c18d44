"""The functions around places, as a forest."""

from __future__ import annotations

import numpy as np
from builders.frames import PlainFrame, frames_of, places_with
from hypothesis import given
from hypothesis import strategies as st

frames = st.tuples(st.sampled_from("fgh"), st.integers(0, 2), st.just(1), st.integers(0, 1))
some_places = st.lists(st.lists(frames, max_size=5), max_size=8)


@given(some_places)
def test_places_have_the_frames_of_the_functions_around_them(rows: list[list[PlainFrame]]) -> None:
    assert list(frames_of(places_with(rows))) == rows


@given(some_places, st.sampled_from("fgh"))
def test_the_outermost_function_of_several_that_give_a_value_counts(
    rows: list[list[PlainFrame]], name: str
) -> None:
    found = places_with([row[:depth] for row in rows for depth in range(1, len(row) + 1)])
    scopes = found.scopes
    gives = np.array([each == name for each in found.names], np.bool_)[scopes.function]
    passed = scopes.passed_on(np.where(gives, np.arange(len(scopes)), -1)).tolist()
    outermost = scopes.outermost().tolist()
    for scope in range(len(scopes)):
        around = [scope]
        while scopes.parent[around[0]] >= 0:
            around.insert(0, int(scopes.parent[around[0]]))
        assert passed[scope] == next((at for at in around if gives[at]), -1)
        assert outermost[scope] == around[0]


@given(some_places, st.integers(0, 8))
def test_functions_that_are_around_no_place_can_be_left_out(
    rows: list[list[PlainFrame]], left: int
) -> None:
    found = places_with(rows)
    scope = found.scope.copy()
    scope[left:] = -1
    fewer = type(found)(scope, found.line, found.discriminator, found.scopes, found.names)
    used = fewer.with_scopes(fewer.is_used())
    assert list(frames_of(used)) == [*rows[:left], *([] for _ in rows[left:])]
    assert used.is_used().all()
