"""Pseudo probes of a program: its functions with their checksums, and what is at each address."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from lbr2pgo.dumping.labels import BranchLabels
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import Descriptors, InlineTree, ProbeKind, ProbeTable
from lbr2pgo.support.errors import InputError

_KINDS = {
    ProbeKind.BLOCK: "block",
    ProbeKind.INDIRECT_CALL: "indirect call",
    ProbeKind.DIRECT_CALL: "direct call",
}


def lines(program: Program, function: int | None = None) -> Iterator[str]:
    """All probes, or those in a region of the program and in all that was split off it.

    Raises InputError if there are none.
    """
    probes = program.probes
    if not probes.present:
        raise InputError(
            "has no pseudo probes, and no debug file with them was found",
            where=program.image.path,
            cure="Build it with clang -fpseudo-probe-for-profiling.",
        )
    labels = BranchLabels(program)
    if function is None:
        yield from _descriptors(probes.descriptors)
        yield from _probes(probes.table(), labels)
        return
    for part in program.regions.families(np.array([function])).tolist():
        range_ = program.regions.ranges.take(np.array([part]))
        table = probes.table(probes.records().touching(range_))
        yield from _probes(table.within(*next(range_.pairs())), labels)


def _descriptors(descriptors: Descriptors) -> Iterator[str]:
    for row in range(len(descriptors)):
        differs = ", others of this name differ" if descriptors.is_ambiguous[row] else ""
        yield (
            f"{descriptors.name(row)}: GUID {descriptors.guid[row]}, "
            f"checksum {descriptors.checksum[row]}{differs}"
        )


def _probes(table: ProbeTable, labels: BranchLabels) -> Iterator[str]:
    """A line for each address, and one for each probe there."""
    shown = None
    for row, address in enumerate(table.address.tolist()):
        if address != shown:
            yield labels.of(address)
            shown = address
        yield f"    {probe(table, row)}"


def probe(table: ProbeTable, row: int) -> str:
    """`name:index.discriminator, kind, inlined at caller:index @ …`, outermost caller first."""
    *callers, node = table.tree.path(int(table.node[row]))
    discriminator = f".{table.discriminator[row]}" if table.discriminator[row] else ""
    kind = _KINDS.get(table.kind[row], f"kind {table.kind[row]}")
    where = " @ ".join(_calls(table.tree, [*callers, node]))
    place = f"{table.tree.name(node)}:{table.index[row]}{discriminator}"
    return f"{place}, {kind}" + (f", inlined at {where}" if callers else "")


def _calls(tree: InlineTree, path: list[int]) -> Iterator[str]:
    for caller, callee in pairwise(path):
        yield f"{tree.name(caller)}:{tree.site[callee]}"
