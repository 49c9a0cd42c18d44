"""Samples of instructions, with and without the peaks behind slow ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.recordings import PIE, RECORDING

from lbr2pgo.analyses.accuracy import executions, measure
from lbr2pgo.analyses.judging import exact_edges_of
from lbr2pgo.model.instruction_counts import InstructionCounts, aggregate
from lbr2pgo.program.blocks.indirect_jumps import indirect_targets
from lbr2pgo.program.program import Program
from lbr2pgo.replay.inference.from_instructions import UNIT, counts_of_instructions
from lbr2pgo.replay.replay import replay
from lbr2pgo.support.arrays import F64

EXACT = RECORDING.with_name("x86-64-interp.pie.exact.npz")
PROGRAM = Program.open(PIE)
EDGES = exact_edges_of(EXACT, PROGRAM)
TARGETS = indirect_targets(PROGRAM, EDGES.source[EDGES.source > 0])
CODE = PROGRAM.instructions_for(EDGES.source[EDGES.source > 0])


def sampled(slow: float) -> InstructionCounts:
    """20,000 samples, of which every tenth instruction has so many times its part."""
    ran: F64 = executions(EDGES, CODE) * np.where(np.arange(len(CODE)) % 10 == 3, slow, 1.0)
    count = np.random.default_rng(1).multinomial(20_000, ran / ran.sum())
    return aggregate(CODE.address, count.astype(np.uint64))


def overlap(slow: float, *, is_imprecise: bool) -> float:
    counts = counts_of_instructions(sampled(slow), PROGRAM, TARGETS, is_imprecise=is_imprecise)
    return measure(replay(counts, PROGRAM), EDGES, PROGRAM).blocks.overlap


@pytest.mark.parametrize("slow", [5.0, 10.0])
def test_imprecise_samples_lose_the_peaks_behind_slow_instructions(slow: float) -> None:
    assert overlap(slow, is_imprecise=True) > overlap(slow, is_imprecise=False) + 0.02


DIVIDING = """
    .globl _start
_start:
    movl $9, %ecx
1:  divl %esi
    addl %eax, %edi
    xorl %edx, %edx
    decl %ecx
    jnz 1b
    ret
"""


@pytest.mark.parametrize("waiting", [100, 300, 5000])
def test_what_waits_for_a_division_tells_nothing(link: Callable[..., Path], waiting: int) -> None:
    program = Program.open(link(DIVIDING))
    code = program.instructions_for(program.regions.start)
    count = np.array([10, 100, waiting, 100, 100, 100, 10], np.uint64)
    inferred = counts_of_instructions(
        aggregate(code.address, count), program, is_imprecise=True
    ).branches()
    (loop,) = inferred.count[inferred.to == code.address[1]]
    assert loop == pytest.approx(90 * UNIT, rel=0.02)


def test_samples_without_peaks_lose_little() -> None:
    assert overlap(1.0, is_imprecise=True) > overlap(1.0, is_imprecise=False) - 0.01
