"""From counted instructions to an LLVM sample profile, with LLVM's own definitions.

What `llvm-profgen` computes (LLVM: tools/llvm-profgen/ProfileGenerator.cpp), in arrays:

* A *context* is a function, or a function inlined at a location of another context.
* Each instruction adds its count, times its size in bytes, to the total of every context that
  it was inlined through.
* A location (line minus the function's first line, and base discriminator) of a context has the
  largest count among its instructions, times the duplication factor of each.
* Instructions of a function that ran are listed even where they did not: zero says "cold".
* A branch to a function's entry is a call: a target at the branch's location, and head samples
  of the callee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lbr2pgo.model.compat import OURS, Compat
from lbr2pgo.native.text_numbers import TextNumbers
from lbr2pgo.profiles.llvm._function_rows import (
    CallColumns,
    CodeColumns,
    FunctionRows,
    PlaceColumns,
    ScopeColumns,
)
from lbr2pgo.profiles.llvm.counted_code import CountedCode, counted_code, located, starts
from lbr2pgo.profiles.llvm.entry_calls import EntryCalls, calls_to_entries
from lbr2pgo.profiles.llvm.profile_table import Body, CallTargets, Contexts, ProfileTable
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.llvm.source_places import PlacesOfLines, places_of
from lbr2pgo.profiles.llvm.symbol_names import outermost_by
from lbr2pgo.program.dwarf.debug_info import DebugInfo
from lbr2pgo.program.dwarf.function import DwarfFunctions
from lbr2pgo.program.program import Program
from lbr2pgo.replay.replay import Flow
from lbr2pgo.support.addresses import PlacedAddresses
from lbr2pgo.support.arrays import I64, U64, Bools, Records
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.distinct import among, distinct
from lbr2pgo.support.intervals import offsets_of
from lbr2pgo.support.texts import Texts
from lbr2pgo.support.threads import made_of_each

_FS_DISCRIMINATOR_MARK = "__llvm_fs_discriminator__"


def sample_profile(
    flow: Flow, program: Program, debug: DebugInfo, compat: Compat = OURS
) -> tuple[SampleProfile, Bools]:
    """As `profile_table`, with the profile as a tree."""
    table, is_located = profile_table(flow, program, debug, compat)
    return table.tree(), is_located


def profile_table(
    flow: Flow,
    program: Program,
    debug: DebugInfo,
    compat: Compat = OURS,
    *,
    for_gcc: DwarfFunctions | None = None,
) -> tuple[ProfileTable, Bools]:
    """The sample profile of a replayed recording, in columns.

    Also returns, for each fall-through of `flow.judged`, whether its code has source locations.
    `for_gcc` are the
    functions by GCC's names; discriminators are whole then, and calls don't raise the count of
    their location.
    """
    functions = debug.functions_for(starts(flow)) if for_gcc is None else for_gcc
    calls = calls_to_entries(flow, program.symbols, functions, compat=compat)
    code = counted_code(flow, program, functions, calls)
    is_fs = for_gcc is not None or uses_fs_discriminators(program)
    found, place_of = debug.places(code.address)
    debug.release()
    if for_gcc is not None:
        found = outermost_by(found, functions, code.address, place_of)
    places = places_of(found, is_fs=is_fs)
    table = _table(code, place_of, places, _placed(calls, code, place_of, places.names))
    if for_gcc is None:
        table.raise_to_calls()
    table = table.without_ambiguous().with_used_names()
    is_located = places.scope[place_of] >= 0
    return replace(table, is_fs=is_fs), located(flow, code.address[is_located])


def counts_by_line(
    addresses: PlacedAddresses, counts: U64, program: Program, debug: DebugInfo
) -> ProfileTable:
    """Counts (n,) of instructions, whatever they count, by their places; addresses ascend.

    As by `profile_table`, with a total that is just the sum (LLVM: llvm-profgen of 2024,
    --leading-ip-only).
    """
    found, place_of = debug.places(addresses)
    is_fs = uses_fs_discriminators(program)
    each = np.ones(len(addresses), np.uint8)
    code = CountedCode(addresses, each, counts, each > 0)
    none = np.empty(0, np.int64)
    places = places_of(found, is_fs=is_fs)
    no_calls = _PlacedCalls(none, none, none.astype(np.uint64), Texts.of(places.names))
    table = _table(code, place_of, places, no_calls)
    return replace(table.without_ambiguous().with_used_names(), is_fs=is_fs)


def uses_fs_discriminators(program: Program) -> bool:
    """Whether the binary's discriminators are flow-sensitive, which are not packed."""
    symbols, mark = program.symbols, _FS_DISCRIMINATOR_MARK
    # Hardly any program has it, and to look for one name lists all.
    return mark.encode() in symbols.names.table and symbols.by_name(mark) is not None


_PLACES_AT_ONCE = 1 << 14
"""Of functions with so many, about, a thread makes the rows together."""


@dataclass(frozen=True, slots=True)
class _PlacedCalls:
    """Calls by the place that they are made from, -1 for none; columns of one length."""

    place: I64
    callee: I64
    count: U64
    names: Texts
    """Of functions at places, and of callees."""


def _placed(
    calls: EntryCalls, code: CountedCode, place_of: I64, names: Sequence[str]
) -> _PlacedCalls:
    place = np.full(len(calls.source), -1)
    row = np.searchsorted(code.address, calls.source[calls.has_source])
    place[calls.has_source] = place_of[row]
    order = np.argsort(place, kind="stable")
    called, callee = np.unique(calls.callee[order], return_inverse=True)  # of all functions, a few
    known = TextNumbers()
    for each in (Texts.of(names), Texts.of(calls.names).take(called)):
        of_called = known.number_all(each.text, each.start, each.end)
    return _PlacedCalls(place[order], of_called[callee], calls.count[order], Texts(*known.texts()))


def _table(
    code: CountedCode, place_of: I64, places: PlacesOfLines, calls: _PlacedCalls
) -> ProfileTable:
    """The table, made of one function after the other; those of one name are one."""
    size, is_made = len(places.scope), calls.place >= 0
    locations, inlined = places.locations, places.calls
    functions = FunctionRows(
        ScopeColumns(places.parent, places.function, inlined.line, inlined.discriminator),
        PlaceColumns(
            scope=places.scope,
            line=locations.line,
            discriminator=locations.discriminator,
            factor=places.factor(slice(None)),
            code=offsets_of(np.bincount(place_of, minlength=size)),
            calls=offsets_of(np.bincount(calls.place[is_made], minlength=size)),
        ),
        CodeColumns(code.count, code.size, code.is_body.view(np.uint8)),
        CallColumns(calls.callee[is_made], calls.count[is_made]),
        len(places.names),
    )

    def of(piece: tuple[int, int]) -> tuple[_Columns, _Columns, _Columns]:
        contexts, rows, targets = map(_columns, functions.of(piece))
        return contexts, rows, targets

    made = made_of_each(of, functions.pieces(_PLACES_AT_ONCE))
    contexts, body, targets = _joined(*zip(*made, strict=True))
    return ProfileTable(calls.names, _with_heads(contexts, calls), body, targets)


_Columns = dict[str, npt.NDArray[Any]]


def _columns(rows: Records) -> _Columns:
    """Each for itself, as loops take them."""
    return {name: rows[name].copy() for name in rows.dtype.names or ()}


def _joined(
    contexts: Sequence[_Columns], rows: Sequence[_Columns], calls: Sequence[_Columns]
) -> tuple[Contexts, Body, CallTargets]:
    """What was made of functions, one part behind the other; of the parts nothing is left."""
    contexts_before = rows_before = 0
    for context, row, call in zip(contexts, rows, calls, strict=True):
        context["parent"][context["parent"] >= 0] += contexts_before
        row["context"] += contexts_before
        call["row"] += rows_before
        contexts_before += len(context["parent"])
        rows_before += len(row["context"])
    made, body, targets = map(_behind_each_other, (contexts, rows, calls))
    head = np.zeros(contexts_before, np.uint64)
    return Contexts(**made, head=head), Body(**body), CallTargets(**targets)


def _behind_each_other(parts: Sequence[_Columns]) -> _Columns:
    """Columns of all parts, which are taken out of them: all together are large."""
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}


def _with_heads(contexts: Contexts, calls: _PlacedCalls) -> Contexts:
    """The same with what called functions got; those of which nothing ran are added."""
    is_alone = contexts.parent < 0
    alone, called = contexts.name[is_alone], distinct(calls.callee)
    added = called[~among(called, np.sort(alone))]
    zeros = np.zeros(len(added), np.int64)
    place = np.full(len(calls.names), -1)
    place[alone] = np.flatnonzero(is_alone)
    place[added] = len(contexts) + np.arange(len(added))
    head = np.concatenate((contexts.head, zeros.astype(np.uint64)))
    np.add.at(head, place[calls.callee], calls.count)
    return Contexts(
        parent=np.concatenate((contexts.parent, zeros - 1)),
        line=np.concatenate((contexts.line, zeros)),
        discriminator=np.concatenate((contexts.discriminator, zeros)),
        name=np.concatenate((contexts.name, added)),
        total=np.concatenate((contexts.total, zeros.astype(np.uint64))),
        head=head,
    )
