"""From counted instructions to a sample profile of pseudo probes, with LLVM's own definitions.

What `llvm-profgen` computes of a program with probes if it is to ignore call stacks (LLVM:
tools/llvm-profgen/ProfileGenerator.cpp, generateProbeBasedProfile), in arrays:

* A *context* is a function, or a function inlined at a call probe of another context.
* The count of an instruction is added to all probes there: to the probe's number in its context,
  and to the total of every context that it was inlined through.
* Head samples of a function are the count of its entry's probe.
* Probes of a function that ran are listed even where they did not: zero says "cold".
* A branch to a function's entry is a call: a target at the branch's call probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from lbr2pgo.model.compat import OURS, Compat
from lbr2pgo.profiles.llvm.calls_by_lines import with_calls
from lbr2pgo.profiles.llvm.counted_code import CountedCode, counted_code, covering_any, starts
from lbr2pgo.profiles.llvm.entry_calls import EntryCalls, calls_to_entries
from lbr2pgo.profiles.llvm.probe_functions import names_by_probes, probed_functions, probes_of
from lbr2pgo.profiles.llvm.profile_table import (
    Body,
    CallTargets,
    Contexts,
    ProfileTable,
    depths,
)
from lbr2pgo.program.dwarf.debug_info import DebugInfo, DwarfFunctions
from lbr2pgo.program.program import Program
from lbr2pgo.program.pseudo_probes import ENTRY_INDEX, InlineTree, ProbeTable
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I32, I64, U64, Bools
from lbr2pgo.support.distinct import distinct, distinct_rows, place_of
from lbr2pgo.support.sums import add_at, sums_at
from lbr2pgo.support.tables import taken


def probe_profile(
    flow: Flow, program: Program, debug: DebugInfo, compat: Compat = OURS
) -> tuple[ProfileTable, Bools]:
    """The probe profile of a replayed recording, in columns.

    Also returns, for each fall-through of `flow.judged`, whether its function has probes.
    """
    probes = program.probes
    reached = _reached(flow)
    known = probed_functions(debug, probes.symbols, reached)
    calls = calls_to_entries(flow, probes.symbols, known.functions, known.is_odd, compat=compat)
    sources = flow.branches.from_[flow.branch_from >= 0]
    table = with_calls(probes_of(probes, known, reached, compat), sources, debug, compat)
    is_called = np.zeros(len(calls.names), np.bool_)
    is_called[calls.callee] = True
    calls = replace(calls, names=names_by_probes(calls.names, is_called, known, table))
    counted = _counted(table, counted_code(flow, program, known.functions, calls))
    made = _made(table, calls)
    contexts = _contexts(table.tree, table.node[np.concatenate((counted.row, made.row))])
    counted, made = _of_known(contexts, table, counted), _of_known(contexts, table, made)
    profile = _profile(table, contexts, counted, made, calls.names)
    probed = table.address[counted.row]
    held = is_probed(known.functions, probed, flow.instructions.address)
    return profile, covering_any(flow, held)


def _reached(flow: Flow) -> PlacedAddresses:
    """Addresses in all functions that ran: starts of runs, and both ends of branches."""
    sources = flow.branches.from_[flow.branch_from >= 0]
    return distinct(np.concatenate((starts(flow), sources)))


# ---------------------------------------------------------------------------- probes


def is_probed(
    functions: DwarfFunctions, probed: PlacedAddresses, addresses: PlacedAddresses
) -> Bools:
    """Which of these addresses (n,) are in functions with probes at others (m,)."""
    function_of = np.append(functions.function, -1)  # the last one: of no function
    has_probes = np.zeros(len(functions.names) + 1, np.bool_)
    has_probes[function_of[functions.containing(probed)]] = True
    has_probes[-1] = False
    found: Bools = has_probes[function_of[functions.containing(addresses)]]
    return found


# ---------------------------------------------------------------------------- counts


@dataclass(frozen=True, slots=True)
class _Counted:
    """Probes of code that ran or might have; columns of equal length."""

    row: I64
    """In the table of probes."""
    count: U64


def _counted(table: ProbeTable, code: CountedCode) -> _Counted:
    """The probes at instructions of functions that ran."""
    place = place_of(table.address, code.address)
    row = np.flatnonzero(place >= 0)
    row = row[code.is_body[place[row]]]
    return _Counted(row, code.count[place[row]])


@dataclass(frozen=True, slots=True)
class _Made:
    """Calls that were made at call probes; columns of equal length."""

    row: I64
    """In the table of probes."""
    callee: I64
    count: U64


Rows = TypeVar("Rows", _Counted, _Made)


def _made(table: ProbeTable, calls: EntryCalls) -> _Made:
    row = np.full(len(calls.source), -1)
    row[calls.has_source] = table.call_at(calls.source[calls.has_source])
    at_probe = row >= 0
    return _Made(row[at_probe], calls.callee[at_probe], calls.count[at_probe])


def _of_known(contexts: _ProbeContexts, table: ProbeTable, rows: Rows) -> Rows:
    """Those at probes of functions that have a descriptor."""
    return taken(rows, contexts.of_node[table.node[rows.row]] >= 0)


def _profile(
    table: ProbeTable,
    contexts: _ProbeContexts,
    counted: _Counted,
    made: _Made,
    callees: Sequence[str],
) -> ProfileTable:
    """Counted probes and calls, each in the context that it is of."""
    names, name_of, callee_of = _names(table.tree, contexts.function, callees)
    body, targets = _body(table, contexts, counted, replace(made, callee=callee_of[made.callee]))
    total, head = _totals(table, contexts, counted)
    profile = ProfileTable(
        names=names,
        contexts=Contexts(
            parent=contexts.parent, line=contexts.site,
            discriminator=np.zeros_like(contexts.site), name=name_of, total=total, head=head,
        ),
        body=body,
        calls=targets,
        checksum=table.tree.descriptors.checksum[contexts.function],
    )  # fmt: skip
    profile.raise_to_calls()
    return profile.without_ambiguous().with_used_names()


@dataclass(frozen=True, slots=True)
class _ProbeContexts:
    """Functions, and functions inlined at a call probe of another context; columns of n rows."""

    parent: I64
    """-1 for functions that stand alone."""
    site: I64
    """Call probe in the parent at which it was inlined; 0 for functions that stand alone."""
    function: I64
    """Row of the descriptors."""
    of_node: I64
    """Context of each node of the tree; -1 where a function has no descriptor, or is unused."""


def _contexts(tree: InlineTree, nodes: I32) -> _ProbeContexts:
    """The contexts of these nodes, and those around them.

    A function that was inlined at an unknown probe stands alone (LLVM: getInlineContextForProbe).
    """
    caller = np.where(tree.site > 0, tree.parent, -1).astype(np.int64)
    used = _with_callers(caller, nodes)
    of_node = np.full(len(tree) + 1, -1)  # the last one: of no node
    depth = depths(caller)[used]
    parts, size = [np.empty((3, 0), np.int64)], 0
    for level in range(int(depth.max(initial=-1)) + 1):
        rows = used[depth == level]
        rows = rows[(tree.function[rows] >= 0) & ((level == 0) | (of_node[caller[rows]] >= 0))]
        parent, function = of_node[caller[rows]], tree.function[rows]
        site = tree.site[rows].astype(np.int64) * (level > 0)
        first, inverse = distinct_rows(parent, function, site)
        of_node[rows] = size + inverse
        parts.append(np.stack((parent[first], site[first], function[first])))
        size += len(first)
    parent, site, function = np.concatenate(parts, axis=1)
    return _ProbeContexts(parent, site, function, of_node[:-1])


def _with_callers(caller: I64, nodes: I32) -> I64:
    """These nodes and all around them, each once."""
    is_used = np.zeros(len(caller), np.bool_)
    is_used[nodes] = True
    inner = np.flatnonzero(is_used)
    while len(inner):
        is_used[inner] = True
        outer = caller[inner]
        inner = distinct(outer[(outer >= 0) & ~is_used[outer]])
    return np.flatnonzero(is_used)


def _names(
    tree: InlineTree, function: I64, callees: Sequence[str]
) -> tuple[tuple[str, ...], I64, I64]:
    """All names, each once; the number of each function's, and of each callee's."""
    used = distinct(function)
    numbers: dict[str, int] = {}
    of_used = [numbers.setdefault(n, len(numbers)) for n in tree.descriptors.names(used)]
    of_callee = [numbers.setdefault(name, len(numbers)) for name in callees]
    name_of = np.array(of_used, np.int64)[np.searchsorted(used, function)]
    return tuple(numbers), name_of, np.array(of_callee, np.int64)


def _body(
    table: ProbeTable, contexts: _ProbeContexts, counted: _Counted, made: _Made
) -> tuple[Body, CallTargets]:
    """Counts of probes, and the calls from them; a probe that only calls has a zero."""
    rows = np.concatenate((counted.row, made.row))
    context = contexts.of_node[table.node[rows]]
    index, discriminator = (
        column[rows].astype(np.int64) for column in (table.index, table.discriminator)
    )
    discriminator[len(counted.row) :] = 0  # whichever copy of the call it was
    first, row = distinct_rows(context, index, discriminator)
    count = np.zeros(len(first), np.uint64)
    add_at(count, row[: len(counted.row)], counted.count)
    at_row = row[len(counted.row) :]
    first_call, call = distinct_rows(at_row, made.callee)
    called = sums_at(call, made.count, len(first_call))
    body = Body(context[first], index[first], discriminator[first], count)
    return body, CallTargets(at_row[first_call], made.callee[first_call], called)


def _totals(table: ProbeTable, contexts: _ProbeContexts, counted: _Counted) -> tuple[U64, U64]:
    """Totals of contexts with all that is inlined into them, and head samples."""
    context = contexts.of_node[table.node[counted.row]]
    total = np.zeros(len(contexts.parent), np.uint64)
    head = np.zeros_like(total)
    add_at(total, context, counted.count)
    is_head = (table.index[counted.row] == ENTRY_INDEX) & (contexts.parent[context] < 0)
    add_at(head, context[is_head], counted.count[is_head])
    depth = depths(contexts.parent)
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero(depth == level)
        add_at(total, contexts.parent[rows], total[rows])
    return total, head
