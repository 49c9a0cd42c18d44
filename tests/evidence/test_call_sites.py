from __future__ import annotations

from dataclasses import replace

import pytest
from builders.evidence import gather_sources, program, source
from builders.sources import Sample

from lbr2pgo.analyses.call_stacks import folded
from lbr2pgo.evidence.call_sites import CALL_SITES, CallSites
from lbr2pgo.evidence.call_stacks import CALL_STACKS
from lbr2pgo.model.branch_stacks import BRANCH_FILTER_BITS
from lbr2pgo.reports.gather import Gathered

CALL_STACK = 1 << BRANCH_FILTER_BITS["call_stack"] | 1
IN_G = Sample([(0x1000, 0x1040)], ip=0x1040, weight=3)
IN_H = Sample([(0x1020, 0x1050), (0x1018, 0x1020)], ip=0x1051)
OUTSIDE = Sample([(0x7FFF0000, 0x7FFF1000), (0x7FFF2000, 0x7FFF0000), (0x1000, 0x7FFF2000)])
CHAIN = Sample([(0x1016, 0x1005)], chain=(0x1051, 0x7FFF0000, 0x7FFF1000, 0x1022, 0x1005))


def gathered(*samples: Sample, filters: int | None = CALL_STACK) -> Gathered:
    given = [samples] if isinstance(samples, Sample) else samples
    event = 0 if filters is not None else -1
    made = source(*(replace(each, event=event) for each in given), filters=filters)
    return gather_sources([made], program(), also=(CALL_STACKS, CALL_SITES))


def sites(found: Gathered) -> CallSites:
    told = found.evidence.found(CALL_SITES)
    assert told is not None
    return told


def by_function(found: Gathered) -> list[tuple[str, int]]:
    """Stacks of functions, from those of addresses."""
    told, names, total = sites(found), found.evidence.names, {}
    for stack, count in zip(told.stacks, told.count, strict=True):
        words = [
            names.functions(told.address[[frame]])[0] if told.is_inside[frame]
            else names.outside(int(told.file[frame]))
            for frame in stack
        ]  # fmt: skip
        total[";".join(words)] = total.get(";".join(words), 0) + count
    return sorted(total.items())


@pytest.mark.parametrize(
    ("samples", "filters"),
    [
        ((IN_G, IN_H), CALL_STACK),
        ((OUTSIDE, IN_G), CALL_STACK),
        ((replace(IN_G, ip=0x1050), replace(IN_H, ip=0), replace(IN_H, ip=1 << 63)), CALL_STACK),
        ((Sample([], ip=0x1040), IN_H), CALL_STACK),
        ((CHAIN, CHAIN, Sample([(0x1016, 0x1005)])), None),
    ],
)
def test_the_functions_are_those_of_call_stacks(
    samples: tuple[Sample, ...], filters: int | None
) -> None:
    found = gathered(*samples, filters=filters)
    assert by_function(found) == folded(found.evidence)
    assert folded(found.evidence)


def test_frames_are_the_calls_and_what_was_interrupted() -> None:
    told = sites(gathered(IN_G, IN_H))
    stacks = {
        tuple(told.address[list(stack)].tolist()): count
        for stack, count in zip(told.stacks, told.count, strict=True)
    }
    assert stacks == {(0x1000, 0x1040): 3, (0x1018, 0x1020, 0x1051): 1}


def test_the_caller_of_a_chain_is_the_call_before_its_return_address() -> None:
    told = sites(gathered(CHAIN, filters=None))
    assert told.address[told.is_inside].tolist() == [0x1004, 0x1021, 0x1051]


def test_other_recordings_have_none() -> None:
    assert gathered(Sample([(0x1016, 0x1005)]), filters=None).evidence.found(CALL_SITES) is None
