"""Filters of branches make other kinds of stacks."""

from __future__ import annotations

import pytest
from builders.counted_stacks import (
    A,
    B,
    C,
    D,
    counted,
    event,
    lost,
    of_stack,
    rows_of,
)
from builders.sources import MemorySource, Sample, mapping

from lbr2pgo.counting.branch_filters import kind_of_stacks
from lbr2pgo.native.walk import StackKind
from lbr2pgo.sources.base import EventInfo


@pytest.mark.parametrize(
    "bits",
    [("any_call",), ("user", "any_ret"), ("ind_call",), ("cond",), ("ind_jmp",), ("call",),
     ("any_call", "any_ret"), ("any", "in_tx"), ("any", "no_tx"), ("any", "abort_tx")],
)  # fmt: skip
def test_a_filtered_recording_has_branches_only(bits: tuple[str, ...]) -> None:
    counts = of_stack((B, C), (D, A), events=[event(*bits)])
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, A, None, 1)}


@pytest.mark.parametrize(
    "bits",
    [("any",), ("user", "any"), ("any", "any_call"), ("user", "any", "save_type", "hw_index"),
     ("kernel", "any"), ("any", "no_flags", "no_cycles", "priv", "counter")],
)  # fmt: skip
def test_all_branches_of_some_privilege_are_a_chain(bits: tuple[str, ...]) -> None:
    counts = of_stack((B, C), (D, A), events=[event(*bits)])
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, A, B, 1)}


@pytest.mark.parametrize("bits", [("call_stack",), ("user", "any", "call_stack")])
def test_a_call_stack_is_no_branch_stack(bits: tuple[str, ...]) -> None:
    counts = of_stack((B, C), (D, A), events=[event(*bits)])
    assert len(counts) == 0
    assert lost(counts) == {"call_stack": 2}


def test_a_silent_input_is_taken_for_all_branches() -> None:
    assert kind_of_stacks(EventInfo("cycles")) == StackKind.CONSECUTIVE


def test_single_branches_make_no_chains() -> None:
    """Arm SPE samples instructions one by one, whatever stands in one sample."""
    single = EventInfo("branch", records_single_branches=True)
    counts = of_stack((B, C), (D, A), events=[single])
    assert set(rows_of(counts)) == {(B, C, None, 1), (D, A, None, 1)}
    silent = MemorySource([Sample([(B, C), (D, A)])], [mapping(base=0)], (single,))
    assert set(rows_of(counted(silent))) == {(B, C, None, 1), (D, A, None, 1)}


def test_each_sample_is_judged_by_its_own_event() -> None:
    stack = [(B, C), (D, A)]
    events = (event("any_call"), event("any"), event("call_stack"))
    samples = [Sample(stack, event=number) for number in (0, 1, 2, -1)]
    counts = counted(MemorySource(samples, [mapping(base=0)], events))
    assert set(rows_of(counts)) == {(B, C, None, 3), (D, A, None, 1), (D, A, B, 2)}
