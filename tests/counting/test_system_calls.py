"""System calls of AArch64 stand at the instruction that made them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders.sources import BASE, LAYOUT, MemorySource, Sample, mapping

from lbr2pgo.counting.count import count_image
from lbr2pgo.counting.place import ImageFacts
from lbr2pgo.counting.system_calls import at_their_instructions
from lbr2pgo.model.branch_stacks import MISPREDICTED, PREDICTED, from_lists
from lbr2pgo.model.perf_abi import SIMULATED_CPU
from lbr2pgo.sources.base import SourceInfo

SYSCALL, ERET = 7 << 20 | 2, 11 << 20
ARM = replace(LAYOUT, machine="aarch64")
SVC, BEHIND, LOOP = BASE + 0x2900, BASE + 0x2904, BASE + 0x2920
STACK = [(LOOP, SVC - 8, 2), (0, BEHIND, ERET), (BEHIND, 0, SYSCALL), (LOOP, SVC - 8, 2)]
"""Newest first: a loop around a system call, as BRBE records it of user code."""


class Recorded(MemorySource):
    cpuid = ""

    @property
    def info(self) -> SourceInfo:
        return replace(super().info, details={"cpuid": self.cpuid})


def rows(layout: object = ARM, *, cpuid: str = "", as_llvm: bool = False) -> list[str]:
    source = Recorded([Sample(STACK)], [mapping()])
    source.cpuid = cpuid
    facts = ImageFacts(layout, believes_entries=as_llvm)
    found = count_image(source, facts)
    return list(found.counts.rows())


def test_a_system_call_is_its_instructions() -> None:
    assert rows() == [
        "from 0x2904 straight on to 0x2920: 1",
        "0x2900 -> outside, end unknown: 1, mispredicted 0",
        "0x2920 -> 0x28f8, end unknown: 1, mispredicted 0",
        "0x2920 -> 0x28f8, straight on to 0x2900: 1, mispredicted 0",
    ]


@pytest.mark.parametrize(
    ("layout", "options"),
    [(LAYOUT, {}), (ARM, {"cpuid": SIMULATED_CPU})],
    ids=["x86-64", "software LBR"],
)
def test_other_recorders_name_the_instruction_itself(
    layout: object, options: dict[str, str]
) -> None:
    assert "0x2904 -> outside, end unknown: 1, mispredicted 0" in rows(layout, **options)


def test_llvm_profgen_takes_it_as_it_is() -> None:
    assert any(row.startswith("0x2904 -> ") for row in rows(as_llvm=True))


def test_how_a_system_call_was_predicted_is_unknown() -> None:
    found = at_their_instructions(from_lists([STACK]))
    assert [flags & (MISPREDICTED | PREDICTED) for flags in found.flags.tolist()] == [2, 0, 0, 2]
    assert found.flags.tolist()[2] >> 20 & 15 == SYSCALL >> 20
