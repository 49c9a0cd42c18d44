"""BOLT's fdata of samples without branches (`no_lbr`): what `perf2bolt -basic-events` makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lbr2pgo.model.instruction_counts import InstructionCounts
from lbr2pgo.profiles.bolt.fdata.fdata_tables import (
    GLOBAL_SYMBOL,
    Fdata,
    FdataSamples,
    in_bolt_order,
)
from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.program import Program
from lbr2pgo.support.sums import exact_sum

STEP = "fdata_samples"
"""The step of the waterfall that the tallies belong to."""


def fdata_of_samples(
    samples: InstructionCounts, program: Program, events: Sequence[str]
) -> tuple[Fdata, Mapping[str, int]]:
    """A row for each instruction that was sampled, and how many samples have one or have not.

    Events stand in the file as perf script prints them, with a colon behind each.
    """
    functions = discover(program.image, program.symbols)
    function = functions.containing(samples.address)
    outside = function < 0
    unwritable = ~outside & np.append(functions.has_line_break, False)[function]
    rows = np.flatnonzero(~outside & ~unwritable)
    used, name = np.unique(function[rows], return_inverse=True)
    table = FdataSamples(
        np.full(len(rows), GLOBAL_SYMBOL, np.uint8),
        name.astype(np.int32),
        samples.address[rows] - functions.start[function[rows]],
        samples.count[rows],
    )
    reason = "no_symbols" if program.image.is_stripped else "outside_functions"
    tallies = {
        STEP: exact_sum(samples.count[rows]),
        f"{STEP}/{reason}": exact_sum(samples.count[outside]),
        f"{STEP}/line_break": exact_sum(samples.count[unwritable]),
    }
    names = tuple(map(functions.name, used.tolist()))
    said = tuple(f"{event}:" for event in events)
    return in_bolt_order(Fdata(names, samples=table, events=said)), tallies
