from __future__ import annotations

from lbr2pgo.model import waterfall
from lbr2pgo.model.incomplete import EmptyProfileError, IncompleteError


def test_the_step_that_left_nothing_is_named_with_its_largest_loss() -> None:
    steps = (
        waterfall.Step("read", "read", "samples", None),
        waterfall.Step(
            "kept", "of this process", "samples", "read",
            {
                "few": waterfall.Reason("a few", "look elsewhere"),
                "many": waterfall.Reason("of another process", "leave out --pid"),
            },
        ),
        waterfall.Step("mapped", "inside the image", "samples", "kept"),
    )  # fmt: skip
    tallies = {"read": 7, "kept": 0, "kept/few": 2, "kept/many": 5, "mapped": 0}
    error = EmptyProfileError(tallies, ("a note",), steps=steps)
    assert error.what == (
        "the profile would be empty: no samples left at the step “of this process”"
    )
    assert error.cure == "of another process: leave out --pid."
    assert (error.tallies, error.notes) == (tallies, ("a note",))


def test_a_step_that_had_nothing_to_begin_with_is_not_named() -> None:
    steps = (
        waterfall.Step("mended", "that were mended", "samples", None),
        waterfall.Step("read", "read", "runs", None),
        waterfall.Step("whole", "that are whole", "runs", "read"),
        waterfall.Step("located", "with a location", "runs", "read"),
        waterfall.Step("written", "written", "runs", "located"),
    )
    tallies = {"mended": 0, "read": 3, "whole": 0, "located": 0, "written": 0}
    assert "step “with a location”" in EmptyProfileError(tallies, steps=steps).what


def test_without_a_step_that_is_empty_it_says_what_it_is_told() -> None:
    assert EmptyProfileError({}).what == "no count is left to write"
    assert EmptyProfileError({}, what="no probe ran").what == "no probe ran"
    assert "lbr2pgo dump" in (EmptyProfileError({}).cure or "")


def test_an_incomplete_result_is_told_as_any_error_is() -> None:
    error = IncompleteError("is full", {"read": 1}, [], cure="Free some space.", where="out.prof")
    assert str(error) == "out.prof: is full\nFree some space."
    assert error.exit_code == 2
