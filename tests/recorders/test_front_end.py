"""The simulated front end: its presets, its linear model, and what the plugin counts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lbr2pgo.recorders.exact_streams import sum_front_end, sum_totals
from lbr2pgo.recorders.front_end import (
    MISSES,
    PRESETS,
    STRUCTURES,
    FrontEnd,
    FrontEndCounts,
    Structure,
    preset,
)
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.plugin_stream import Stream
from lbr2pgo.recorders.software import record_software
from lbr2pgo.support.errors import InputError

TESTBINS = Path(__file__).parents[2] / "testbins"
ONE = Structure(1, 1, 0)
TINY = replace(PRESETS["zen4"], l1i=Structure(2, 1, 0), itlb=ONE, btb=Structure(8, 8, 0))


@pytest.fixture
def missed(flow: Callable[..., Stream]) -> Callable[..., FrontEndCounts]:
    """`missed(front_end, *blocks)`: what it counts of the blocks of programs/fake_qemu.c."""

    def call(front_end: FrontEnd, *blocks: int) -> FrontEndCounts:
        script = "".join(f"run 0 {block}\n" for block in blocks)
        return sum_front_end(flow(script, **front_end.plugin_options).counters, front_end)

    return call


@pytest.mark.parametrize(("lines", "pages", "missing"), [(1, 1, 4), (2, 1, 2), (1, 2, 4)])
def test_lines_are_fetched_again_where_others_took_their_place(
    missed: Callable[..., FrontEndCounts], lines: int, pages: int, missing: int
) -> None:
    small = replace(TINY, l1i=Structure(2 * lines, lines, 0), itlb=Structure(pages, pages, 0))
    # All of 0x1000, 0x1003 and 0x1010 lie in a line, and 0x2000 in another one of the same set.
    found = missed(small, 1, 2, 4, 7, 1, 2, 4, 7)
    assert (found.l1i, found.l2) == (missing, 2)
    assert (found.itlb, found.stlb) == (4 if pages == 1 else 2, 2)


def test_a_block_over_two_lines_and_pages_fetches_both(
    missed: Callable[..., FrontEndCounts],
) -> None:
    found = missed(TINY, 12)  # from 0x5ffe to 0x6001
    assert found.l1i == found.itlb == 2


@pytest.mark.parametrize(("entries", "missing"), [(1, 5), (2, 2)])
def test_a_taken_branch_is_looked_up_by_its_address(
    missed: Callable[..., FrontEndCounts], entries: int, missing: int
) -> None:
    small = replace(TINY, btb=Structure(entries, entries, 0))
    assert missed(small, *[1, 3] * 3).btb == missing


TAKEN, PASSED = (1, 3), (1, 2, 4)  # the branch at 0x1001, and a way back to it


@pytest.mark.parametrize(
    ("outcomes", "most"),
    [("TTP" * 100, 15), ("T" * 20 + "P" + "T" * 20 + "PPTPT" * 50, 30)],
    ids=["every third", "changing"],
)
def test_directions_with_a_pattern_are_learned(
    missed: Callable[..., FrontEndCounts], outcomes: str, most: int
) -> None:
    found = missed(TINY, *(b for each in outcomes for b in (TAKEN if each == "T" else PASSED)))
    assert 0 < found.directions <= most


def test_directions_without_a_pattern_are_not(missed: Callable[..., FrontEndCounts]) -> None:
    chance = random.Random(1)
    outcomes = [chance.random() < 0.5 for _ in range(400)]
    found = missed(TINY, *(b for each in outcomes for b in (TAKEN if each else PASSED)))
    assert 120 < found.directions < 280


def test_targets_that_take_turns_are_learned(missed: Callable[..., FrontEndCounts]) -> None:
    # The jump at 0x1022 goes to the call at 0x1020, which comes back to it, or to a return there.
    assert 0 < missed(TINY, *[5, 6, 5, 6, 4] * 100).targets < 20


@pytest.mark.parametrize("name", ["skylake", "zen4"])
def test_calls_nested_deeper_than_the_return_stack_lose_so_many_returns(
    name: str, build: Callable[..., Path], record: Callable[..., Any]
) -> None:
    passes, more, front_end = 1000, 5, preset(name)
    program = build("nested")
    within, beyond = (
        record(program, depth, passes, front_end=front_end).result.front_end.returns
        for depth in (front_end.returns, front_end.returns + more)
    )
    # Once a run, what was called before is lost, too: at most all that the stack holds.
    assert within <= front_end.returns
    assert 0 <= beyond - within - passes * more <= front_end.returns


def test_cycles_are_a_sum_of_penalties() -> None:
    front_end = PRESETS["skylake"]
    none = FrontEndCounts(front_end, 400, 10, *[0] * len(MISSES))
    assert none.cycles == 400 / 4 + 10 * 0.5
    for name in MISSES:
        more = replace(none, **{name: 3}).cycles - none.cycles
        assert more == 3 * (
            front_end.structure(name).penalty if name in STRUCTURES else front_end.misprediction
        )


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_taken_by_the_plugin_and_change_no_other_count(
    name: str, flow: Callable[..., Stream]
) -> None:
    script = "run 0 1\nrun 0 4\n"
    found = flow(script, **preset(name).plugin_options).counters
    assert sum_totals(found).instructions == 4
    assert sum_front_end(found, preset(name)).l1i == 1


def test_an_unknown_preset_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InputError, match="no front end 'pentium'") as refused:
        preset("pentium")
    assert "neoverse-n1" in str(refused.value.cure)


def test_a_run_is_simulated_alike_each_time(tmp_path: Path) -> None:
    options = RecordOptions(
        output=tmp_path / "perf.data", command=(str(TESTBINS / "x86-64" / "shapes.pie"), "1"),
        emulate=True, front_end=preset("zen4"),
    )  # fmt: skip
    first, second = (record_software(options).front_end for _ in range(2))
    assert first == second
    assert first is not None
    assert min(first.l1i, first.itlb, first.btb, first.directions) > 10
