"""How often pseudo probes ran in each calling context, function by function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.model.context_counts import ContextRuns
from lbr2pgo.profiles.llvm.contexts._probe_sums import sums_of_probes
from lbr2pgo.profiles.llvm.contexts.columns import location_of
from lbr2pgo.program.pseudo_probes import ProbeTable
from lbr2pgo.support.arrays import I64, U64
from lbr2pgo.support.distinct import distinct_rows
from lbr2pgo.support.intervals import first_at_or_above, last_at_or_below, offsets_of


@dataclass(frozen=True, slots=True)
class ProbeSlots:
    """The places in its function of each probe; those of a node of the tree stand together."""

    of_probe: I64
    """(k,)"""
    bounds: I64
    """(m + 1,): where those of each node of the tree begin."""
    inline: I64
    """(s,): the node of each."""
    index: I64
    """(s,): the index of its probes."""
    location: U64
    """(s,): its location, as `location_of` has it; ascending in each node."""

    @classmethod
    def of(cls, table: ProbeTable) -> ProbeSlots:
        """Those of a table."""
        columns = [
            column.astype(np.int64) for column in (table.node, table.index, table.discriminator)
        ]
        first, of_probe = distinct_rows(*columns)
        inline, index, discriminator = (column[first] for column in columns)
        bounds = offsets_of(np.bincount(inline, minlength=len(table.tree)))
        return cls(of_probe, bounds, inline, index, location_of(index, discriminator))


@dataclass(frozen=True, slots=True)
class ProbedRuns:
    """Functions of which probes of blocks ran in calling contexts; (p,) each, but for sums."""

    node: I64
    """Of the callers."""
    inline: I64
    """Node of the tree of inlined functions."""
    function: I64
    """The function around it, as DWARF has it."""
    offsets: I64
    """(p + 1,): where the sums of each are: one for each of its slots."""
    sums: U64
    """How often the probes of each slot ran."""


def probed_runs(
    runs: ContextRuns, table: ProbeTable, counted: I64, function: I64, slots: ProbeSlots
) -> ProbedRuns:
    """What ran of these rows (k,) of the table, whose functions are given."""
    address = table.address[counted]
    first = first_at_or_above(address, runs.start)
    last = last_at_or_below(address, runs.end)
    rows, offsets, sums = sums_of_probes(
        runs.node, first, last, runs.count, table.node[counted], function,
        slots.of_probe[counted], slots.bounds,
    )  # fmt: skip
    node, inline, around = map(np.ascontiguousarray, rows.T)
    return ProbedRuns(node, inline, around, offsets, sums)
