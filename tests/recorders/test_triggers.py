from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lbr2pgo.recorders.facility import find_facility
from lbr2pgo.recorders.machine import Machine
from lbr2pgo.recorders.options import RecordOptions
from lbr2pgo.recorders.triggers import CYCLES_PERIOD, find_triggers, instruction_triggers

Make = Callable[..., Machine]
Pmus = Mapping[str, Any]

TAKEN = "br_inst_retired.near_taken"
RAW = "cpu/event=0xc4,umask=0x20,name=br_inst_retired.near_taken/uppp"
CYCLES = ("cycles:u",)


@pytest.fixture
def events(make_options: Callable[..., RecordOptions]) -> Callable[..., list[tuple[str, ...]]]:
    """`events(machine, **options)`: those that may trigger, the best first."""

    def find(machine: Machine, **options: Any) -> list[tuple[str, ...]]:
        found = find_triggers(machine, find_facility(machine), make_options(**options))
        return [trigger.events for trigger in found]

    return find


def test_a_name_comes_before_its_encoding_and_cycles_are_last(
    make_machine: Make, pmus: Pmus, events
) -> None:
    skylake = make_machine("skylake", pmus["lbr32"])
    assert events(skylake) == [(f"{TAKEN}:uppp",), (RAW,), CYCLES]
    zen4 = make_machine("zen4", pmus["amd16"])
    assert events(zen4) == [
        ("ex_ret_brn_tkn:u",), ("cpu/event=0xc4,name=ex_ret_brn_tkn/u",), CYCLES,
    ]  # fmt: skip


def test_each_kind_of_core_has_its_encoding(make_machine: Make, pmus: Pmus, events) -> None:
    atom, core = (
        f"{pmu}/event=0xc4,umask={umask},name={TAKEN}/uppp"
        for pmu, umask in (("cpu_atom", "0xc0"), ("cpu_core", "0x20"))
    )
    assert events(make_machine("alderlake", pmus["hybrid"])) == [(atom, core), CYCLES]
    (_, (raw,), _) = events(make_machine("sierraforest", pmus["lbr32"]))
    assert "umask=0xc0" in raw


def test_old_atoms_trigger_on_cycles_alone(make_machine: Make, pmus: Pmus, events) -> None:
    assert events(make_machine("goldmont", pmus["lbr32"])) == [CYCLES]


def test_brs_has_one_event(make_machine: Make, pmus: Pmus, events) -> None:
    assert events(make_machine("zen3", pmus["brs16"])) == [("cpu/branch-brs/u",)]


def test_arm_counts_branches_where_all_its_cores_can(
    make_machine: Make, pmus: Pmus, events
) -> None:
    assert events(make_machine("neoverse-v3", pmus["brbe64"])) == [
        ("armv8_pmuv3_0/br_retired/u",), CYCLES,
    ]  # fmt: skip
    silent = {"armv9_neoverse_v3": {"caps/branches": "32"}}
    assert events(make_machine("neoverse-v3", silent)) == [CYCLES]


@pytest.mark.parametrize(("precise", "suffix"), [("0", "u"), ("2", "upp"), ("9", "uppp")])
def test_events_are_as_precise_as_the_pmu_grants(
    make_machine: Make, events, precise: str, suffix: str
) -> None:
    pmus = {"cpu": {"caps/branches": "32", "caps/max_precise": precise}}
    assert events(make_machine("skylake", pmus))[0] == (f"{TAKEN}:{suffix}",)


def test_privilege_levels_become_modifiers(make_machine: Make, pmus: Pmus, events) -> None:
    machine = make_machine("skylake", pmus["lbr32"])
    assert events(machine, filters=("hv", "k", "cond", "u"))[-1] == ("cycles:ukh",)


def test_default_periods_are_primes_and_others_are_taken_as_they_are(
    make_machine: Make, make_options, pmus: Pmus
) -> None:
    machine = make_machine("skylake", pmus["lbr32"])
    facility = find_facility(machine)
    for trigger in find_triggers(machine, facility, make_options()):
        assert all(trigger.period % n for n in range(2, int(trigger.period**0.5) + 1))
    chosen = find_triggers(machine, facility, make_options(period=17))
    assert {trigger.period for trigger in chosen} == {17}


@pytest.mark.parametrize(
    ("pmu", "expected"),
    [
        ({"cpu": {"caps/max_precise": "2\n"}},
         ["instructions:upp", "instructions:u", "cycles:upp", "cycles:u"]),
        ({"cpu": {"caps/max_precise": "0\n"}}, ["instructions:u", "cycles:u"]),
        ({"cpu": {}}, ["instructions:uppp", "instructions:u", "cycles:uppp", "cycles:u"]),
    ],
)  # fmt: skip
def test_precise_instructions_come_before_imprecise_ones_and_cycles(
    make_machine: Make, make_options, pmu: Pmus, expected: list[str]
) -> None:
    triggers = instruction_triggers(make_machine("skylake", pmu), make_options())
    assert [event for trigger in triggers for event in trigger.events] == expected
    assert {trigger.period for trigger in triggers} == {CYCLES_PERIOD}
