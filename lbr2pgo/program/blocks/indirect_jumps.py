"""Where the indirect jumps of some functions may lead.

Jump tables are found as BOLT finds them; labels whose address a program takes (`&&label` in C)
stand in its data, where the loader relocates them or, in a program that is not moved, as they are.
"""

from __future__ import annotations

import numpy as np

from lbr2pgo.program.blocks.binary_context import idioms_of
from lbr2pgo.program.blocks.binary_functions import discover
from lbr2pgo.program.blocks.disassembly import disassembled
from lbr2pgo.program.blocks.jump_tables import find_jump_tables, table_entries
from lbr2pgo.program.blocks.references import read_references
from lbr2pgo.program.code.code_graph import IndirectTargets
from lbr2pgo.program.elf.image import Image
from lbr2pgo.program.elf.relocations import dynamic_relocations, relative_targets
from lbr2pgo.program.program import Program
from lbr2pgo.support.addresses import ImageAddresses, PlacedAddresses, image_addresses
from lbr2pgo.support.arrays import I64
from lbr2pgo.support.distinct import among, distinct
from lbr2pgo.support.tables import table

_POINTER_SIZE = 8
_MANY = 1 << 62


def indirect_targets(program: Program, addresses: PlacedAddresses) -> IndirectTargets:
    """Places that indirect jumps of the functions that hold these addresses may lead to."""
    image, idioms = program.image, idioms_of(program.image)
    functions, references = discover(image, program.symbols), read_references(image)
    table = program.instructions_for(addresses)
    code = disassembled(image, functions, table, idioms.normalized)
    tables = find_jump_tables(image, code, references, idioms)
    labels = references.labels if image.layout.is_pie else _stored_addresses(image)
    labels = distinct(labels)
    labels = labels[~among(labels, program.regions.start)]
    anywhere = image_addresses(np.zeros(len(labels), np.uint64))
    return IndirectTargets(
        np.concatenate([tables.jump, anywhere]), np.concatenate([tables.target, labels])
    )


@table
class SwitchCases:
    """Where switches lead, one row for each value; columns of length n."""

    jump: ImageAddresses
    target: ImageAddresses
    value: I64
    default: ImageAddresses
    """Where the jump's switch goes for other values, and for holes in its table; 0: not known."""


def switch_cases(program: Program, addresses: ImageAddresses) -> SwitchCases:
    """The cases of the switches in the functions that hold these addresses, as code tells them."""
    image, idioms = program.image, idioms_of(program.image)
    functions, table = discover(image, program.symbols), program.instructions_for(addresses)
    code = disassembled(image, functions, table, idioms.normalized)
    found = table_entries(image, code, read_references(image), idioms)
    jumps, of = np.unique(found.jump, return_inverse=True)
    switches = [idioms.switch(code, row) for row in code.at(jumps).tolist()]
    first, count, default = (
        np.array(column, np.int64).reshape(-1)[of]
        for column in (
            [switch.first for switch in switches],
            [_MANY if switch.count is None else switch.count for switch in switches],
            [switch.default or 0 for switch in switches],
        )
    )
    kept = found.index < count
    return SwitchCases(
        found.jump[kept],
        found.target[kept],
        (first + found.index)[kept],
        image_addresses(default[kept].astype(np.uint64)),
    )


def labels_in_order(image: Image) -> ImageAddresses:
    """Addresses that data holds, by where it holds them, with others that may be none."""
    if not image.layout.is_pie:
        return _stored_addresses(image)
    rows = dynamic_relocations(image)
    return relative_targets(image, rows[np.argsort(rows["offset"], kind="stable")])


def _stored_addresses(image: Image) -> ImageAddresses:
    """What data holds that may be an address."""
    found = [image_addresses(np.empty(0, np.uint64))]
    for section in image.sections:
        content = image.contents(section) if section.is_alloc and not section.is_code else None
        if content is not None:
            words = np.frombuffer(content, "<u8", count=len(content) // _POINTER_SIZE)
            found.append(image_addresses(words))
    return np.concatenate(found)
