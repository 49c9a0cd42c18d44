"""What a function's DIE says of it: names, line of declaration, and where it was inlined.

A DIE of code often says only where its function is described: its abstract origin, and that one's
specification, maybe in another unit. An attribute is taken from the first DIE on that way that has
it (LLVM: DWARFDie.cpp findRecursively).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lbr2pgo.native import dwarf_forms as forms_of
from lbr2pgo.native import dwarf_units as slots
from lbr2pgo.program.dwarf.container import Container, Forms
from lbr2pgo.support.arrays import I64, U32, U64
from lbr2pgo.support.distinct import distinct

_CONSTANTS = (forms_of.DATA1, forms_of.DATA2, forms_of.DATA4, forms_of.DATA8, forms_of.UDATA,
              forms_of.IMPLICIT_CONST)  # fmt: skip
_RELATIVE = (forms_of.REF1, forms_of.REF2, forms_of.REF4, forms_of.REF8, forms_of.REF_UDATA)
_IN_SUPPLEMENT = (forms_of.GNU_REF_ALT, forms_of.REF_SUP4, forms_of.REF_SUP8)
_LONGEST_WAY = 64
"""DIEs that are followed from one to the next at most: compilers need three."""


@dataclass(frozen=True)
class Functions:
    """What (n,) DIEs say."""

    names: list[str]
    """Linkage names where there are any, else plain ones; empty where a DIE has none."""
    decl_line: U32
    call_file: U32
    call_line: U32
    discriminator: U32


class _Nodes(NamedTuple):
    """DIEs, in no order."""

    offsets: I64
    unit_of: I64
    forms: Forms
    values: U64


def describe(container: Container, offsets: I64) -> Functions:
    """Read what the DIEs at (n,) offsets of .debug_info say."""
    nodes = _reachable(container, offsets)
    order = np.argsort(nodes.offsets)
    ways = (_references(container, nodes, slot) for slot in (slots.SPECIFICATION, slots.ORIGIN))
    links = [_index(nodes.offsets, order, way) for way in ways]
    own = _index(nodes.offsets, order, offsets)
    names = _names(container, nodes, links, own)
    lines = np.maximum(_inherited(_constants(nodes, slots.DECL_LINE), links)[own], 0)
    _supplement(container, _inherited(_moved(nodes), links)[own], names, lines)
    return Functions(
        names=names,
        decl_line=lines.astype(np.uint32),
        call_file=_numbers(nodes, own, slots.CALL_FILE),
        call_line=_numbers(nodes, own, slots.CALL_LINE),
        discriminator=_numbers(nodes, own, slots.DISCRIMINATOR),
    )


def _reachable(container: Container, offsets: I64) -> _Nodes:
    """The DIEs at the offsets and those that they refer to, directly or not."""
    known = distinct(offsets)
    levels = [_read(container, known)]
    for _ in range(_LONGEST_WAY):
        ways = [_references(container, levels[-1], s) for s in (slots.SPECIFICATION, slots.ORIGIN)]
        found = distinct(np.concatenate(ways))
        found = np.setdiff1d(found[found >= 0], known, assume_unique=True)
        if len(found) == 0:
            break
        known = np.concatenate([known, found])
        levels.append(_read(container, found))
    return _Nodes(*(np.concatenate(column) for column in zip(*levels, strict=True)))


def _read(container: Container, offsets: I64) -> _Nodes:
    unit_of = container.unit_at(offsets)
    return _Nodes(offsets, unit_of, *container.function_attributes(unit_of, offsets))


def _references(container: Container, nodes: _Nodes, slot: int) -> I64:
    """Offset in .debug_info that each node's attribute refers to, -1 if none there."""
    forms = nodes.forms[:, slot]
    values = np.minimum(nodes.values[:, slot], len(container.sections.info)).astype(np.int64)
    relative = np.isin(forms, _RELATIVE)
    base = np.where(relative, container.units["offset"][nodes.unit_of], 0) if len(values) else 0
    return np.where(relative | (forms == forms_of.REF_ADDR), base + values, -1)


def _moved(nodes: _Nodes) -> I64:
    """Offset of the DIE in the supplementary file that each node refers to, -1 if none."""
    forms = nodes.forms[:, slots.ORIGIN]
    limit = np.uint64(np.iinfo(np.int64).max)
    values = np.minimum(nodes.values[:, slots.ORIGIN], limit).astype(np.int64)
    return np.where(np.isin(forms, _IN_SUPPLEMENT), values, -1)


def _supplement(container: Container, moved: I64, names: list[str], lines: I64) -> None:
    """Fill in what only the supplementary file says."""
    rows = np.flatnonzero(moved >= 0)
    if container.supplement is None or len(rows) == 0:
        return
    there = describe(container.supplement, moved[rows])
    for row, name, line in zip(rows.tolist(), there.names, there.decl_line, strict=True):
        names[row] = names[row] or name
        lines[row] = lines[row] or line


def _index(known: I64, order: I64, wanted: I64) -> I64:
    """Where each wanted offset stands among the known, which `order` sorts; -1 if it does not."""
    if len(known) == 0:
        return np.full(len(wanted), -1)
    at = np.searchsorted(known, wanted, sorter=order)
    at = order[np.minimum(at, len(known) - 1)]
    return np.where(known[at] == wanted, at, -1)


def _inherited(own: I64, links: list[I64]) -> I64:
    """Each node's value, or else that of the nodes it refers to; -1 where none has one."""
    values = own.copy()
    for _ in range(_LONGEST_WAY):
        before = values.copy()
        for link in links:
            rows = np.flatnonzero((values < 0) & (link >= 0))
            values[rows] = before[link[rows]]
        if np.array_equal(before, values):
            break
    return values


def _constants(nodes: _Nodes, slot: int) -> I64:
    """An attribute of each node, cut to 32 bits; -1 where it has none.

    0 if it is no unsigned constant, which LLVM does not look for elsewhere then
    (LLVM: DWARFFormValue.cpp getAsUnsignedConstant).
    """
    forms = nodes.forms[:, slot]
    values = (nodes.values[:, slot] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return np.where(forms == 0, -1, np.where(np.isin(forms, _CONSTANTS), values, 0))


def _numbers(nodes: _Nodes, own: I64, slot: int) -> U32:
    return np.maximum(_constants(nodes, slot)[own], 0).astype(np.uint32)


def _names(container: Container, nodes: _Nodes, links: list[I64], own: I64) -> list[str]:
    """The name of each DIE in `own`: as attribute slots of nodes first, text where it is used."""
    linkage = _with_slot(nodes, (slots.MIPS_LINKAGE_NAME, slots.LINKAGE_NAME))
    plain = _with_slot(nodes, (slots.NAME,))
    holders = [_inherited(column, links)[own] for column in (linkage, plain)]
    result = _texts(container, nodes, holders[0])
    missing = [i for i, text in enumerate(result) if text is None]
    for i, text in zip(missing, _texts(container, nodes, holders[1][missing]), strict=True):
        result[i] = text
    return [text or "" for text in result]


def _with_slot(nodes: _Nodes, wanted: tuple[int, ...]) -> I64:
    """Which attribute holds a node's name, as node * slots + slot; -1 if none of those wanted."""
    result = np.full(len(nodes.offsets), -1)
    for slot in reversed(wanted):
        present = nodes.forms[:, slot] != 0
        result[present] = np.flatnonzero(present) * slots.FUNCTION_SLOTS + slot
    return result


def _texts(container: Container, nodes: _Nodes, holders: I64) -> list[Any]:
    """Text of the attributes that `_with_slot` numbers, None where there is none."""
    used, back = np.unique(holders, return_inverse=True)
    node, slot = np.divmod(np.maximum(used, 0), slots.FUNCTION_SLOTS)
    forms = np.where(used < 0, 0, nodes.forms[node, slot])
    texts = container.texts(nodes.unit_of[node], forms, nodes.values[node, slot])
    return [texts[i] for i in back.tolist()]
