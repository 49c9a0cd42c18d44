"""Who calls whom as a networkx graph, with what each function cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from lbr2pgo.analyses.call_edges import called_regions
from lbr2pgo.analyses.evidence import Evidence
from lbr2pgo.analyses.hot_functions import function_totals
from lbr2pgo.analyses.table import SIMULATED
from lbr2pgo.program.code.instructions import CALLS, Kind
from lbr2pgo.replay.replay import INDIRECT
from lbr2pgo.support.addresses import in_file, placed_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.sums import sums_at

if TYPE_CHECKING:
    import networkx as nx

Attributes = Mapping[str, object]


def call_network(evidence: Evidence) -> nx.DiGraph:
    """The functions that ran, and the calls that were seen; see `lbr2pgo.call_graph`."""
    import networkx as nx

    caller, callee, rows = called_regions(evidence)
    totals = _totals(evidence)
    ran = np.flatnonzero(np.any(list(totals.values()), axis=0)) if totals else caller[:0]
    functions = np.unique(np.concatenate((ran, caller, callee)))
    places = [
        {**place, **{name: int(column[row]) for name, column in totals.items() if row >= 0}}
        for row, place in zip(functions.tolist(), _places(evidence, functions), strict=True)
    ]
    keys = _keys(places)
    graph = nx.DiGraph(
        file=PurePath(evidence.program.image.path).name, notes=tuple(_notes(evidence))
    )
    graph.add_nodes_from(zip(keys, places, strict=True))
    ends = np.searchsorted(functions, np.stack((caller, callee), axis=1))
    pairs, place = np.unique(ends, axis=0, return_inverse=True)
    for (source, target), attributes in zip(
        pairs.tolist(), _calls(evidence, rows, place.reshape(-1), len(pairs)), strict=True
    ):
        graph.add_edge(keys[source], keys[target], **attributes)
    return graph


def _totals(evidence: Evidence) -> dict[str, I64]:
    """What functions add up to, as far as it is known."""
    found = function_totals(evidence)
    columns = {
        "executed": (found.instructions, not evidence.run_notes()),
        "branches": (found.branches, True),
        "mispredicted": (found.mispredicted, evidence.says_predictions),
        "cycles": (found.cycles, bool(found.cycles.any())),
    }
    return {name: values.astype(np.int64) for name, (values, known) in columns.items() if known}


def _places(evidence: Evidence, functions: I64) -> Iterator[dict[str, object]]:
    """What is known of each function (n,); those below 0 are files outside the program."""
    inside = functions >= 0
    starts = np.append(evidence.program.regions.start, np.uint64(0))
    at = placed_addresses(starts[np.maximum(functions, -1)])
    found = evidence.names.of(at, inside, -1 - functions)
    own = PurePath(evidence.program.image.path).name
    files = found.file or [own if here else None for here in inside.tolist()]
    address = (None if a is None else in_file(a) for a in found.address)
    for row in zip(found.function, files, address, found.line, strict=True):
        known = zip(("function", "file", "address", "line"), row, strict=True)
        yield {name: value for name, value in known if value is not None}


def _keys(places: list[dict[str, object]]) -> list[str]:
    """Names of functions; of those that share one, with file and address."""
    uses = Counter(place["function"] for place in places)
    return [
        str(place["function"])
        if uses[place["function"]] == 1 or "address" not in place
        else f"{place['function']} ({place['file']} {place['address']:#x})"
        for place in places
    ]


def _calls(evidence: Evidence, rows: I64, pair: I64, pairs: int) -> Iterator[Attributes]:
    """What is known of each pair's calls: rows (c,) of `Flow.branches`, and the pair of each."""
    flow, branches = evidence.flow, evidence.flow.branches
    kind = np.append(flow.instructions.kind, np.uint8(Kind.CALL))[flow.branch_from[rows]]
    indirect = np.isin(kind, INDIRECT)

    def total(values: I64) -> list[int]:
        summed: list[int] = sums_at(pair, values, pairs).tolist()
        return summed

    count = branches.count[rows].astype(np.int64)
    missed = branches.mispredicted[rows].astype(np.int64)
    calls, by_pointer = total(count), total(np.where(indirect, count, 0))
    tail = total(np.where(np.isin(kind, CALLS), 0, count))
    mispredicted = total(np.where(indirect, missed, 0))
    for row in range(pairs):
        found = {"count": calls[row], "indirect": by_pointer[row], "tail": tail[row]}
        if by_pointer[row] and evidence.says_predictions:
            found["mispredicted"] = mispredicted[row]
        yield found


def _notes(evidence: Evidence) -> Iterator[str]:
    """What can't be known, and how to read the numbers."""
    yield from evidence.branch_notes()
    yield from evidence.run_notes()
    yield from evidence.line_notes()
    if evidence.limits.is_simulated:
        yield SIMULATED
