"""Where BOLT puts labels, which are the places where its basic blocks begin.

Targets of direct branches and calls, of jump tables and of exceptions; symbols inside functions;
and addresses of code that other code or data holds (BOLT: BinaryFunction.cpp, BinaryContext.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbr2pgo.profiles.bolt.functions import BoltFunctions
from lbr2pgo.profiles.bolt.jump_tables import find_jump_tables
from lbr2pgo.profiles.bolt.lines import Lines
from lbr2pgo.profiles.bolt.relocations import CodeReferences
from lbr2pgo.profiles.bolt.x86_jump_tables import rip_relative_leas
from lbr2pgo.program.code.instructions import Kind
from lbr2pgo.program.elf.eh_frame import landing_pads
from lbr2pgo.program.elf.image import Image
from lbr2pgo.support.arrays import U64
from lbr2pgo.support.distinct import distinct


@dataclass(frozen=True, slots=True)
class Labels:
    """Addresses of labels, each column ascending and without repeats."""

    address: U64
    """All of them."""
    entries: U64
    """Those that code outside the function may know."""
    landing_pads: U64
    referred: U64
    """Those that relocated data holds: where an indirect jump may go if nothing else is known."""
    table_jump: U64
    """Address of a jump through a table, with…"""
    table_target: U64
    """…one of its targets; rows, not ascending."""


def find_labels(
    image: Image,
    functions: BoltFunctions,
    lines: Lines,
    callers: Lines,
    references: CodeReferences,
) -> Labels:
    """Labels of the functions that `lines` holds; `callers` are others that may enter them."""
    tables = find_jump_tables(image, functions, lines, references)
    own, foreign = _branch_targets(functions, lines)
    _, entered = _branch_targets(functions, callers)
    own_table = functions.containing(tables.target) == tables.function
    taken = _leas_of_code(functions, lines)
    outside = (functions.entries, foreign, entered, taken, tables.target[~own_table])
    entries = distinct(np.concatenate(outside))
    pads = _landing_pads(image, functions, lines)
    every = (entries, own, tables.target, pads, references.labels)
    return Labels(
        address=distinct(np.concatenate(every)),
        entries=entries,
        landing_pads=pads,
        referred=np.union1d(references.by_data, tables.target) if references.present else pads[:0],
        table_jump=tables.jump[own_table],
        table_target=tables.target[own_table],
    )


def _branch_targets(functions: BoltFunctions, lines: Lines) -> tuple[U64, U64]:
    """Targets of direct branches and calls: in the function itself, and in others."""
    direct = lines.is_kind(Kind.COND, Kind.JUMP, Kind.CALL) & lines.has_target
    target, function = lines.target[direct], lines.function[direct]
    hit = functions.containing(target)
    return target[hit == function], target[(hit >= 0) & (hit != function)]


def _leas_of_code(functions: BoltFunctions, lines: Lines) -> U64:
    """Addresses of code that instructions take; starts of functions do no harm here."""
    _, taken = rip_relative_leas(lines)
    return taken[functions.containing(taken) >= 0]


def _landing_pads(image: Image, functions: BoltFunctions, lines: Lines) -> U64:
    pads: list[int] = []
    for function in distinct(lines.function).tolist():
        start, size = int(functions.start[function]), int(functions.size[function])
        frame = functions.frames.index_at(start)
        if frame is not None and (lsda := int(functions.frames.lsda[frame])):
            pads += landing_pads(image, start, size, lsda)[0]
    return np.unique(np.array(pads, np.uint64))
